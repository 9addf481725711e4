package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/gateway/internal/view"
	"github.com/mcpactor/mcpactor/internal/shown"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// client is one client: it calls in a scope, with one session on each server.
type client struct {
	*mcpserver.Client
	g      *Gateway
	ctx    context.Context // ends with the client
	offer  offer
	prefix string // of the ids of its operations
	kept   string // identifies its record, or is empty: then it cannot return

	opening     sync.Mutex  // while initialize opens the scope, or the client leaves
	ready       atomic.Bool // initialize has set the fields below, which do not change afterwards
	scope       string
	of          *scope
	version     string // of the protocol
	info        *mcp.Implementation
	told        map[string]json.RawMessage            // what it has said of itself; the SDK does not know all of it
	set         *tools                                // what it gets of a toolset, or nil
	isStateless bool                                  // it sends requests of protocol 2026-07-28, and has no initialize
	stateless   func(*mcpserver.Request) (any, error) // handles these
	inCall      func(*messages.Origin) asking         // asks it in the reply to a round of the call that a question belongs to
	unwatch     func()                                // the toolset, or nil

	serial      atomic.Uint64 // counts the operations
	initialized func()        // ends the wait of questions
	mayAsk      chan struct{} // closed when the client may be asked: it has sent notifications/initialized, or a request

	mu         sync.Mutex
	operations map[string]operation // by their ids
	record     record
	unwritten  bool // the record was changed, and is to be written
	hasLeft    bool // the record is that of another connection, or of nobody

	writing sync.Mutex // while the record is written

	following sync.Mutex // while the servers are replaced
	now       atomic.Pointer[[]*served]
	toldOf    atomic.Pointer[offer] // the client was told of the servers that this leaves out

	view    *view.View
	own     map[string]handler // answer calls of tools of the gateway itself, by name
	listens listens            // of a client that is stateless
}

// asking asks a client, for a request or for none, and returns the answer. The end of ctx withdraws the question.
type asking func(ctx context.Context, method string, params json.RawMessage, of *mcpserver.Request) (json.RawMessage, error)

// askedPrefix begins the names of scopes that clients ask for.
const askedPrefix = "?scope="

func (g *Gateway) newClient(c *mcpserver.Client, o offer) *client {
	mayAsk := make(chan struct{})
	one := &client{
		Client: c, g: g, ctx: c.Context, offer: o, kept: c.ID, prefix: idPrefix + newID() + "-", scope: o.scope.Name,
		operations: map[string]operation{}, mayAsk: mayAsk, initialized: sync.OnceFunc(func() { close(mayAsk) }),
	}
	one.view = view.New(g.viewConfig(o), view.Client{
		Tools: one.tools,
		Keeps: func(t view.Tool) bool { s := one.server(t.Server); return s != nil && s.keeps(t) },
		Used: func(server string) map[string]time.Time {
			if s := one.server(server); s != nil { // or else it was just removed
				return s.endpoint.used.times()
			}
			return nil
		},
		Changed: func() { one.Notify(kinds["tools/list"].changed, nil, nil) },
		Keep:    one.keepView,
	})
	return one
}

// handler answers a request.
type handler func(r *mcpserver.Request, params mcpserver.Object) (any, error)

// viewConfig returns how the lists of a client with an offer are made.
func (g *Gateway) viewConfig(o offer) view.Config {
	cfg := view.Config{Mode: shown.Mode(g.cfg.Stability)}
	if !o.isHere() {
		cfg.Find, cfg.FindCalls = g.cfg.Find, g.cfg.FindCalls
	}
	return cfg
}

// open opens the scope of a client, which is a new one unless it was named, or the client has returned.
func (c *client) open(capabilities *mcp.ClientCapabilities) error {
	if c.scope == "" {
		c.scope = nameOf(c)
	}
	if err := (messages.Key{Scope: c.scope}).Validate(); err != nil {
		return mcpserver.Invalid(err.Error())
	}
	if from := c.offer.tools; from != nil {
		c.set = &tools{c: c, from: from}
	}
	if err := c.follow(); err != nil {
		return err
	}
	if err := c.g.join(c, capabilities); err != nil {
		stopFetching(c.servers())
		c.now.Store(nil)
		return err
	}
	if c.set != nil {
		c.unwatch = c.set.from.OnChange(c.set.review)
	}
	c.ready.Store(true)
	c.tryFollow() // a Reload has not seen the client if it came before join
	c.g.log.Info().Str("scope", c.scope).Str("protocol", c.version).Msg("client connected")
	return nil
}

// servers returns the servers that the client has. The list is read-only.
func (c *client) servers() []*served {
	if now := c.now.Load(); now != nil {
		return *now
	}
	return nil
}

// tryFollow is follow for a client that has its servers. A client in this process keeps a server that is gone: its calls fail.
func (c *client) tryFollow() {
	if err := c.follow(); err != nil && !errors.Is(err, errGone) {
		c.g.log.Warn().Str("scope", c.scope).Err(err).Msg("client keeps its servers")
	}
}

// follow gives the client the servers that are wanted now, unless it has left. One that is the same stays. If one is not configured or not
// prepared, nothing changes.
func (c *client) follow() error {
	c.following.Lock()
	defer c.following.Unlock()
	if c.ctx.Err() != nil {
		return errGone
	}
	wanted := c.offer.wanted()
	if !c.offer.isHere() {
		wanted = c.g.offers.Load().wanted()
	}
	before, after := c.servers(), []*served{}
	for _, filter := range wanted {
		s, err := c.served(filter)
		if err != nil && c.offer.prefixed && !c.offer.isHere() { // it has just been removed: Reload is about to say so
			continue
		}
		if err != nil {
			stopFetching(without(after, before))
			return err
		}
		after = append(after, s)
	}
	if c.now.Load() != nil && slices.Equal(before, after) {
		return nil
	}
	added, removed := without(after, before), without(before, after)
	c.g.mu.Lock()
	if c.of != nil && slices.Contains(c.of.clients, c) {
		c.g.countShared(before, -1)
		c.g.countShared(after, 1)
	}
	c.now.Store(&after)
	c.g.mu.Unlock()
	stopFetching(removed)
	for _, s := range removed {
		if now := find(after, s.name); now != nil && now.key() != s.key() && !s.isShared() {
			go c.g.closeSession(s.key())
		}
	}
	if c.ready.Load() {
		c.tell(before, added, removed)
	}
	return nil
}

// served returns the server for a filter that the client has, unless it has changed, or else a new one.
func (c *client) served(filter toolset.Filter) (*served, error) {
	filters := c.filters(filter)
	if s := c.server(filter.Name); s != nil && reflect.DeepEqual(s.filters, filters) {
		srv, err := preparedServer(c.g.backend, filter.Name)
		if err == nil && s.of.Same(srv) {
			return s, nil
		}
	}
	return newServed(c, filters)
}

// filters returns the filters for the tools of a server: first its entry in the offer, then those of [Config.Filters].
func (c *client) filters(entry toolset.Filter) []toolset.Filter {
	all := []toolset.Filter{entry}
	if further := c.g.cfg.Filters; further != nil && !c.offer.isHere() {
		all = append(all, further(c.info.Name, entry.Name)...)
	}
	return all
}

// without returns the servers that are not among others.
func without(servers, others []*served) (left []*served) {
	for _, s := range servers {
		if !slices.Contains(others, s) {
			left = append(left, s)
		}
	}
	return left
}

// tell tells the client which lists have changed with its servers, if it has asked for them: at once what is gone, and what is new when it
// is there.
func (c *client) tell(before, added, removed []*served) {
	shown := func(name, method string) (digest *[32]byte) {
		if s := find(before, name); s != nil {
			digest = s.lists[method].digestShown()
		}
		return digest
	}
	gone := map[string]bool{}
	for method, kind := range kinds {
		for _, s := range removed {
			digest := shown(s.name, method)
			gone[kind.changed] = gone[kind.changed] || find(added, s.name) == nil && digest != nil && *digest != noItems && *digest != [32]byte{}
		}
		if len(before) > 0 && !slices.ContainsFunc(before, func(s *served) bool { return shown(s.name, method) != nil }) {
			continue // the client has not asked for this list
		}
		for _, s := range added {
			s.lists[method].take(*cmp.Or(shown(s.name, method), &noItems))
		}
	}
	if c.view.Has() { // what it was shown may be of a server whose list is not known
		isGone := slices.ContainsFunc(removed, func(s *served) bool { return find(added, s.name) == nil })
		gone[kinds["tools/list"].changed] = isGone && c.view.News()
	}
	for notification, isGone := range gone {
		if isGone {
			c.Notify(notification, nil, nil)
		}
	}
	c.mu.Lock()
	watched := maps.Clone(c.record.Watched)
	c.mu.Unlock()
	for _, s := range added {
		if old := find(before, s.name); old == nil || old.key() != s.key() || !old.of.Same(s.of) { // its session is another one
			go s.subscribeAgain(watched)
		}
	}
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
			c.close(false)
		})
	}
	g.mu.Unlock()
	if !lingers {
		c.close(c.isStateless && !forGood)
	}
}

// close ends what a client has. One that is away may come back for its handles.
func (c *client) close(away bool) {
	if c.unwatch != nil {
		c.unwatch()
	}
	c.following.Lock() // no server is added afterwards
	stopFetching(c.servers())
	c.following.Unlock()
	c.of.part(c, away)
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
	if c.isStateless {
		return c.stateless(r)
	}
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
	case "tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update":
		return c.task(r)
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

// Notify tells the client something. To a stateless client, what belongs to no request goes to those that listen for it.
func (c *client) Notify(method string, params any, of *mcpserver.Request) {
	if c.isStateless && of == nil {
		c.listens.tell(c.Client, method, params)
		return
	}
	c.Client.Notify(method, params, of)
}
