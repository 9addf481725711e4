package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/mcpserver"
	"github.com/mcpactor/mcpactor/messages"
)

// client is one client with its scope: it owns one session on each server that it has called.
type client struct {
	*mcpserver.Client
	g   *Gateway
	ctx context.Context // ends with the client

	opening sync.Mutex  // while initialize opens the scope, or the client leaves
	ready   atomic.Bool // initialize has set the fields below, which do not change afterwards
	scope   string
	version string // of the protocol
	info    *mcp.Implementation
	told    map[string]json.RawMessage // what it has said of itself; the SDK does not know all of it
	owner   *actor.PID                 // the scope belongs to it
	servers []*served

	serial      atomic.Uint64 // counts the operations
	leftOut     sync.Once     // tells the client of servers that are left out
	initialized func()        // ends the wait of questions
	mayAsk      chan struct{} // closed when the client may be asked: it has sent notifications/initialized, or a request

	mu         sync.Mutex
	operations map[string]*mcpserver.Request // by the id of the operation
	pending    map[string]func()             // ends a question, by the id of the library
	record     record
	unwritten  bool // the record was changed, and is to be written
	hasLeft    bool // the record is that of another connection, or of nobody

	writing sync.Mutex // while the record is written
}

// Accept returns the handler of a client that has connected.
func (g *Gateway) Accept(c *mcpserver.Client) mcpserver.Handler { return g.accept(c) }

func (g *Gateway) accept(c *mcpserver.Client) *client {
	mayAsk := make(chan struct{})
	return &client{
		Client: c, g: g, ctx: c.Context, operations: map[string]*mcpserver.Request{}, pending: map[string]func(){},
		mayAsk: mayAsk, initialized: sync.OnceFunc(func() { close(mayAsk) }),
	}
}

// Handle returns the result of a request.
func (c *client) Handle(r *mcpserver.Request) (any, error) {
	result, err := c.handle(r)
	if failure, is := errors.AsType[*messages.Failure](err); is {
		if said := saidBy(failure); said != nil { // passed on as it is
			return nil, said
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: failure.Error()}
	}
	return result, err
}

func (c *client) handle(r *mcpserver.Request) (any, error) {
	if r.Method == "initialize" {
		return c.initialize(r)
	}
	if !c.ready.Load() {
		return nil, refused("send initialize first")
	}
	c.initialized() // some clients do not say so
	params := mcpserver.ObjectOf(r.Params)
	switch r.Method {
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return c.list(r, params)
	case "tools/call":
		return c.callTool(r, params)
	case "prompts/get":
		return c.getPrompt(r, params)
	case "resources/read":
		return c.readResource(r, params)
	case "resources/subscribe":
		return c.subscribe(r, params)
	case "resources/unsubscribe":
		return c.unsubscribe(r, params)
	case "completion/complete":
		return c.complete(r, params)
	case "logging/setLevel":
		return c.setLevel(r, params)
	}
	return c.custom(r)
}

// refused returns the error for a request that comes at the wrong time.
func refused(text string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: text}
}

// Notified takes a notification of the client.
func (c *client) Notified(m *mcpserver.Message) {
	switch m.Method {
	case "notifications/initialized":
		c.initialized()
	case "notifications/roots/list_changed":
		go c.replaceRoots()
	}
}

// operationID returns an id for an operation.
func (c *client) operationID() string { return c.scope + "#" + strconv.FormatUint(c.serial.Add(1), 10) }

// isOfAnother reports whether an operation belongs to another client, which shares a session with this one.
func (c *client) isOfAnother(operation string) bool {
	scope, _, ofClient := strings.Cut(operation, "#")
	return ofClient && scope != c.scope
}

// saidBy returns the error with which the server itself has answered a request, or nil.
func saidBy(f *messages.Failure) *jsonrpc.Error {
	if said, is := errors.AsType[*jsonrpc.Error](f.Cause); is && (f.Code == messages.CodeServerError || f.Code == messages.CodeInvalid) {
		return said
	}
	return nil
}
