package serve

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// link carries messages to a client. Its methods may be called from any goroutine.
type link interface {
	// send sends a message. of is the id of the request of the client that it belongs to, or nil: over HTTP, the message
	// goes where the response goes.
	send(m *message, of json.RawMessage)
	// finish says that a request gets no response, because the client has cancelled it.
	finish(of json.RawMessage)
}

// client is one client with its scope: it owns one session on each server that it has called.
type client struct {
	g    *gateway
	link link
	ctx  context.Context // ends with the client
	end  context.CancelFunc

	opening sync.Mutex  // while initialize opens the scope, or the client leaves
	ready   atomic.Bool // initialize has set the fields below, which do not change any more
	scope   string
	version string // of the protocol
	info    *mcp.Implementation
	owner   *actor.PID // the scope belongs to it
	servers []*served

	serial atomic.Uint64 // of operations and of questions

	mu         sync.Mutex
	running    map[string]*request      // by the id of the client
	operations map[string]*request      // by the id of the operation
	asked      map[string]chan *message // questions to the client, by our id
	pending    map[string]func()        // ends a question, by the id of the library
	watched    map[string]*served       // the servers of subscribed resources
	logLevel   string                   // that the client has set
}

// request is a request of the client that has no response yet.
type request struct {
	*message
	ctx       context.Context
	cancel    context.CancelFunc
	cancelled atomic.Bool // by the client
}

func newClient(g *gateway, l link) *client {
	c := &client{
		g: g, link: l, running: map[string]*request{}, operations: map[string]*request{}, asked: map[string]chan *message{},
		pending: map[string]func(){}, watched: map[string]*served{},
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c
}

// receive takes a message of the client. It does not wait for anything.
func (c *client) receive(m *message) {
	switch {
	case m.isRequest():
		r := &request{message: m}
		r.ctx, r.cancel = context.WithCancel(c.ctx)
		c.mu.Lock()
		c.running[string(m.ID)] = r
		c.mu.Unlock()
		go c.respond(r)
	case m.Method != "":
		c.onNotification(m)
	case m.ID != nil:
		c.mu.Lock()
		answer := c.asked[string(m.ID)]
		delete(c.asked, string(m.ID))
		c.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

// respond runs a request, and sends its response.
func (c *client) respond(r *request) {
	defer r.cancel()
	result, err := c.handle(r)
	c.mu.Lock()
	delete(c.running, string(r.ID))
	c.mu.Unlock()
	if r.cancelled.Load() {
		c.link.finish(r.ID)
		return
	}
	response := &message{ID: r.ID}
	if err == nil {
		if response.Result, err = encode(result); err == nil {
			c.link.send(response, r.ID)
			return
		}
	}
	response.Result, response.Error = nil, rpcError(err)
	c.link.send(response, r.ID)
}

// handle returns the result of a request.
func (c *client) handle(r *request) (any, error) {
	switch r.Method {
	case "ping":
		return struct{}{}, nil
	case "initialize":
		return c.initialize(r)
	}
	if refused := refuseRevision(r); refused != nil {
		return nil, refused
	}
	if !c.ready.Load() {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "send initialize first"}
	}
	params := objectOf(r.Params)
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

// onNotification takes a notification of the client.
func (c *client) onNotification(m *message) {
	params := objectOf(m.Params)
	switch m.Method {
	case "notifications/cancelled":
		c.mu.Lock()
		r := c.running[string(params["requestId"])]
		c.mu.Unlock()
		if r != nil && r.Method != "initialize" {
			r.cancelled.Store(true)
			r.cancel()
		}
	case "notifications/roots/list_changed":
		go c.replaceRoots()
	}
}

// The revisions of the protocol that clients may speak. Those after 2025-11-25 have no sessions, and no requests of
// servers.
var revisions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// metaRevision is where a client of a later revision names it.
const metaRevision = "io.modelcontextprotocol/protocolVersion"

// refuseRevision returns the error for a request of a client that speaks a later revision, or nil.
func refuseRevision(r *request) error {
	asked := objectOf(objectOf(r.Params)["_meta"]).text(metaRevision)
	if r.Method != "server/discover" && (asked == "" || slices.Contains(revisions, asked)) {
		return nil
	}
	data, err := json.Marshal(&mcp.UnsupportedProtocolVersionData{Supported: revisions, Requested: asked})
	if err != nil {
		return err
	}
	return &jsonrpc.Error{Code: mcp.CodeUnsupportedProtocolVersion, Message: "Unsupported protocol version: use initialize", Data: data}
}

// nextID returns an id for an operation or a question.
func (c *client) nextID() string { return strconv.FormatUint(c.serial.Add(1), 10) }

// notify sends a notification that belongs to a request of the client, or to none.
func (c *client) notify(method string, params any, of json.RawMessage) {
	m := &message{Method: method}
	if params != nil {
		var err error
		if m.Params, err = encode(params); err != nil {
			return
		}
	}
	c.link.send(m, of)
}

// rpcError returns the error of a response. That of a server is passed on as it is.
func rpcError(err error) *jsonrpc.Error {
	var said *jsonrpc.Error
	var failure *messages.Failure
	switch {
	case errors.As(err, &failure) && failure != nil:
		if said = saidBy(failure); said != nil {
			return said
		}
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: failure.Error()}
	case errors.As(err, &said):
		return said
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// saidBy returns the error that the server itself has answered to a request, or nil.
func saidBy(f *messages.Failure) *jsonrpc.Error {
	var said *jsonrpc.Error
	if errors.As(f.Cause, &said) && (f.Code == messages.CodeServerError || f.Code == messages.CodeInvalid) {
		return said
	}
	return nil
}
