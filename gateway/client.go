package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/messages"
)

// client is one client: it calls in a scope, with one session on each server.
type client struct {
	*mcpserver.Client
	g      *Gateway
	ctx    context.Context // ends with the client
	offer  offer
	prefix string // of the ids of its operations

	opening sync.Mutex  // while initialize opens the scope, or the client leaves
	ready   atomic.Bool // initialize has set the fields below, which do not change afterwards
	scope   string
	of      *scope
	version string // of the protocol
	info    *mcp.Implementation
	told    map[string]json.RawMessage // what it has said of itself; the SDK does not know all of it
	servers []*served
	set     *tools // what it gets of a toolset, or nil
	unwatch func() // the toolset, or nil

	serial      atomic.Uint64 // counts the operations
	leftOut     sync.Once     // tells the client of servers that are left out
	initialized func()        // ends the wait of questions
	mayAsk      chan struct{} // closed when the client may be asked: it has sent notifications/initialized, or a request

	mu         sync.Mutex
	operations map[string]*mcpserver.Request // by the id of the operation
	record     record
	unwritten  bool // the record was changed, and is to be written
	hasLeft    bool // the record is that of another connection, or of nobody

	writing sync.Mutex // while the record is written
}

// accept returns the handler of a client of another program that has connected.
func (g *Gateway) accept(c *mcpserver.Client) mcpserver.Handler { return g.newClient(c, g.offered()) }

// offered is what clients of other programs get, each in a scope of its own.
func (g *Gateway) offered() offer {
	return offer{servers: g.cfg.Servers, leftOut: g.cfg.LeftOut, prefixed: g.cfg.Prefixed, scope: Scope{Ends: true}}
}

func (g *Gateway) newClient(c *mcpserver.Client, o offer) *client {
	mayAsk := make(chan struct{})
	return &client{
		Client: c, g: g, ctx: c.Context, offer: o, prefix: idPrefix + newID() + "-", scope: o.scope.Name,
		operations: map[string]*mcpserver.Request{}, mayAsk: mayAsk, initialized: sync.OnceFunc(func() { close(mayAsk) }),
	}
}

// open opens the scope of a client, which is a new one unless it was named, or the client has returned.
func (c *client) open(capabilities *mcp.ClientCapabilities) error {
	if c.scope == "" {
		c.scope = nameOf(c)
	}
	if from := c.offer.tools; from != nil {
		c.set = &tools{c: c, from: from}
	}
	c.servers = nil
	for _, filter := range c.offer.servers {
		s, err := newServed(c, filter)
		if err != nil {
			c.stopFetching()
			return err
		}
		c.servers = append(c.servers, s)
	}
	if err := c.g.join(c, capabilities); err != nil {
		c.stopFetching()
		return err
	}
	if c.set != nil {
		c.unwatch = c.set.from.OnChange(c.set.review)
	}
	c.ready.Store(true)
	c.g.log.Info().Str("scope", c.scope).Str("protocol", c.version).Msg("client connected")
	return nil
}

// Left ends a client, and cancels its calls. A client that has left for good is forgotten. With [Config.Lingers], its scope ends
// only after the first starts of its servers.
func (c *client) Left(forGood bool) {
	c.opening.Lock()
	defer c.opening.Unlock()
	if !c.ready.Load() {
		return
	}
	c.release(forGood)
	g := c.g
	g.mu.Lock()
	lingers := forGood && g.cfg.Lingers && !c.offer.isHere() && g.life.Err() == nil
	if lingers {
		g.leaving.Go(func() { // before Close waits, because of the mutex
			c.linger()
			c.close()
		})
	}
	g.mu.Unlock()
	if !lingers {
		c.close()
	}
}

// stopFetching ends all fetches of lists.
func (c *client) stopFetching() {
	for _, s := range c.servers {
		s.stopFetching()
	}
}

// close ends what a client has.
func (c *client) close() {
	if c.unwatch != nil {
		c.unwatch()
	}
	c.stopFetching()
	c.of.part(c)
	c.g.log.Info().Str("scope", c.scope).Msg("client gone")
}

// Handle returns the result of a request.
func (c *client) Handle(r *mcpserver.Request) (any, error) {
	result, err := c.handle(r)
	if _, is := errors.AsType[*told](err); is {
		return nil, err
	}
	if failure, is := errors.AsType[*messages.Failure](err); is {
		said := saidBy(failure)
		switch {
		case c.offer.isHere():
			return nil, &told{failure, explain(failure, err)}
		case said != nil: // passed on as it is
			return nil, said
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: failure.Error()}
	}
	return result, err
}

// told is the failure of a request of a client in this process. Its text is for a model: many frameworks show it.
type told struct {
	failure *messages.Failure
	text    string
}

func (t *told) Error() string { return t.text }
func (t *told) Unwrap() error { return t.failure }

func (c *client) handle(r *mcpserver.Request) (any, error) {
	if r.Method == "initialize" {
		return c.initialize(r)
	}
	if !c.ready.Load() {
		return nil, refused("send initialize first")
	}
	c.initialized() // some clients do not say so
	params := r.Members()
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

// idPrefix begins the ids of operations of all clients.
const idPrefix = "client#"

// operationID returns an id for an operation.
func (c *client) operationID() string { return c.prefix + strconv.FormatUint(c.serial.Add(1), 10) }

// isOfAnother reports whether an operation belongs to another client, which shares a session with this one.
func (c *client) isOfAnother(operation string) bool {
	return strings.HasPrefix(operation, idPrefix) && !strings.HasPrefix(operation, c.prefix)
}

// saidBy returns the error with which the server itself has answered a request, or nil.
func saidBy(f *messages.Failure) *jsonrpc.Error {
	if said, is := errors.AsType[*jsonrpc.Error](f.Cause); is && (f.Code == messages.CodeServerError || f.Code == messages.CodeInvalid) {
		return said
	}
	return nil
}
