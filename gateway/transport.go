package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// Server returns a transport for a client of the SDK to one server as it is: what the server lists, answers and asks passes through
// unchanged, by the names that the server gives. Only a result after the loss of a session ends with a note that its state is gone.
// Each Connect is a new client.
//
// A request that fails is an error that [errors.As] turns into a [*messages.Failure], and whose text tells a model what has become of
// the request. When the context of a call ends, or the client is closed, the call is cancelled, and its error is that of the
// SDK: the call may have run. A call has the timeout that the supervisor or the server is configured with, even if its context
// has a later deadline.
//
// After a [supervisor.Supervisor.Reload], call [Gateway.Reload]: until then a client that is connected has the old lists of a server that
// was changed.
func (g *Gateway) Server(name string, scope Scope) mcp.Transport {
	return &transport{g, offer{servers: []toolset.Filter{{Name: name}}, scope: scope}}
}

// Tools returns a transport for a client of the SDK to all servers of a toolset, with its tools: their names, filters, approval, and
// bounds of results, for which there is [toolset.ReadTool]. Structured content comes as text, and tools have no output schemas.
// Prompts have the names of their servers as well, and resources their URIs. Servers that are called in a scope of their own, see [toolset.Filter], cannot ask the client.
//
// A call that waits for [toolset.Toolset.Answer] has a result that IsError, with a [toolset.Pending] in its Meta: see [PendingOf].
// Other requests that fail are errors as those of [Gateway.Server].
//
// If the scope ends with the client, close the toolset first: a list that it fetches meanwhile would open a session in the scope
// again.
func (g *Gateway) Tools(tools *toolset.Toolset, scope Scope) mcp.Transport {
	return &transport{g, offer{prefixed: true, tools: tools, scope: scope}}
}

// errNoTools is the error for a client without a toolset.
var errNoTools = errors.New("gateway: toolset: is nil")

// transport connects clients in this process.
type transport struct {
	g     *Gateway
	offer offer
}

// Connect returns the connection of a new client. The error says that a server is not configured, or not prepared.
func (t *transport) Connect(context.Context) (mcp.Connection, error) {
	o := t.offer
	switch {
	case o.prefixed && o.tools == nil:
		return nil, errNoTools
	case o.tools != nil:
		if o.scope.Name != "" && o.scope.Name != o.tools.Scope() {
			return nil, fmt.Errorf("gateway: scope: %q is not that of the toolset: leave it empty", o.scope.Name)
		}
		o.scope.Name = o.tools.Scope()
	}
	o.scope.Ends = o.scope.Ends || o.scope.Name == ""
	if err := (messages.Key{Scope: o.scope.Name}).Validate(); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	var errs []error
	for _, filter := range o.wanted() {
		_, err := preparedServer(t.g.backend, filter.Name)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	var connection mcp.Connection
	connection = mcpserver.Connect(func(c *mcpserver.Client) mcpserver.Handler {
		o.close = func() { connection.Close() } //nolint:errcheck // it has no error
		return t.g.newClient(c, o)
	})
	return connection, nil
}
