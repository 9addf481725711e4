package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

const (
	// patience bounds the wait of a call for a server that is down.
	patience = 20 * time.Second
	// startPatience bounds the wait of a call for a server that is starting. Most SDKs give a call 60 s.
	startPatience = 55 * time.Second
	// startTimeout bounds the time that a process takes to answer initialize. Its program may have to be downloaded.
	startTimeout = 5 * time.Minute
	// closePatience bounds the end of a session. Many clients kill their servers after 2 s.
	closePatience = 1500 * time.Millisecond
)

// Backend runs the calls of clients: a *[supervisor.Supervisor], or a Member of package cluster.
type Backend interface {
	toolset.Backend
	// Server returns the configuration of a server, or nil. It is read-only.
	Server(name string) *mcpbridge.Server
	// Flush waits until the handlers of Subscribe have returned from the events so far, or ctx ends.
	Flush(ctx context.Context)
}

var _ Backend = (*supervisor.Supervisor)(nil)

// Pins says which definitions are accepted, such as a [github.com/mcpactor/mcpactor/pin.Lock]. Each method returns nil for one that is, and
// otherwise why it is not, for people and models. A name is the one that the server gives, and a digest that of package pin: it is
// empty if a server has no instructions.
type Pins interface {
	Tool(server, name, digest string) error
	Prompt(server, name, digest string) error
	Instructions(server, digest string) error
}

// Config is the configuration of a gateway. The zero value is for clients in this process. It is read-only once given to [New].
type Config struct {
	// Servers are what clients of other programs get until [Gateway.Reload]: the names of servers, with filters for their tools. If an
	// entry has a scope, all clients share the session of that scope, where each is named as the holder of its handles, see
	// [messages.HolderAttribute].
	Servers []toolset.Filter
	// Filters returns further filters for the tools of a server that a client of another program gets. A tool has to pass Allow, Deny and
	// ReadOnly of all of them, beside those in Servers. client is the name that the client gives itself: anybody can give it. Filters is called when a client
	// connects and by [Gateway.Reload], from any goroutine, and must not block. Defaults to none.
	Filters func(client, server string) []toolset.Filter
	// Prefixed is true if the names of tools and prompts get the name of their server. It must be true for several servers.
	Prefixed bool
	// Stability says how the list of tools that a client of this gateway is shown follows what its servers have, for as long as the client
	// is connected. A client that is stateless is shown what it was shown before for 24 h after its last request, and a client of Clients
	// also after a restart. With [Gateway.Tools], the toolset has a Stability of its own. Defaults to [toolset.Append].
	Stability toolset.Stability
	// Find makes clients of other programs that are offered more tools than this find them: tools/list has the tool find_tools, at most as
	// many tools as this, which clients have used last, and those that the client has found or called. A tool that it finds is added at the end, and
	// the client is told of the change. All tools can be called by their names, also those that are not listed. Defaults to 0: all tools are
	// listed.
	Find int
	// FindCalls offers the tool call_tool beside find_tools, for clients that do not ask for a list that has changed. It calls a tool by its name, if
	// the annotations of that say that it only reads. The permissions that a client has for tools by name do not apply to such calls. Defaults
	// to false.
	FindCalls bool
	// Pins says which tools, prompts and instructions clients get. Lists are without what it refuses, a log message says why, and a call of it
	// fails and is not sent: also one of a tool that its server does not list. Each call waits until the session of its client has listed.
	// Pins is asked whenever a list is fetched and before each call, from any goroutine, and must not block. If its answers change, call
	// [Gateway.Review]. The tools of [Gateway.Tools] have [toolset.Policy] instead. Defaults to nil: clients get everything.
	Pins Pins
	// LeftOut has a line for each server that is left out, with the reason. Clients of other programs get them as log messages.
	LeftOut []string
	// Quiet is the [messages.Header.Quiet] of requests of clients. Defaults to that of the supervisor.
	Quiet time.Duration
	// Wait bounds the wait of initialize for servers that have not answered yet. Defaults to 25 s in front of several servers,
	// and to no bound in front of one.
	Wait time.Duration
	// Lingers is true if the start of a server continues after its client has left, so that the next client finds its lists.
	Lingers bool
	// Lists remembers between runs which servers were silent, and which tools were used last. Defaults to nowhere.
	Lists mcpbridge.Store
	// Clients keeps clients of other programs between runs: they can return, and their sessions stay open on their servers if
	// the supervisor has LeaveOpen and the store Sessions. Defaults to none: clients do not return.
	Clients *ClientStore
	// Sessions is where the supervisor keeps the sessions of Clients. Sessions of other scopes there are closed.
	Sessions mcpbridge.Store
	// Key is the secret with which the gateway seals what clients keep for it, such as the ids of tasks. Gateways with the same key
	// understand each other's, as do a gateway and the next one after a restart. Use 32 random bytes. Defaults to a random key of this
	// gateway.
	Key []byte
	// Logger logs what concerns clients. Defaults to no log.
	Logger zerolog.Logger
}

// errGone is the error for a request whose client has left.
var errGone = errors.New("the client has left")

// errClosed is the error for a client that comes after [Gateway.Close].
var errClosed = errors.New("the gateway is closed")

// noMethod returns the error for a method that is not known.
func noMethod(method string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not known", method)}
}
