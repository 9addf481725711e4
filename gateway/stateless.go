package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
)

// ServeStdio serves one client of another program until its input has ended and its requests are answered, or until ctx ends. It
// returns when the client has left. Its scope, which is a new one, ends with it.
func (g *Gateway) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) {
	mcpserver.ServeStdio(ctx, in, out, g.accept)
}

// HTTP serves streamable HTTP to any number of clients. It is a [http.Handler], and Guard returns a handler for other pages that asks for
// the token, too. Set its fields before it is used. Close it before the gateway.
type HTTP = mcpserver.HTTP

// HTTP returns the handler for clients of other programs over HTTP. Each has a scope of its own. If token is not empty, requests
// must carry it as a bearer token. The handler refuses requests that pages of other sites send, and those to names that its Hosts do
// not have. A client of protocol 2026-07-28 has no connection that could end: what it has minted ends with [mcpbridge.Handle.Idle].
func (g *Gateway) HTTP(token string) *HTTP {
	return &mcpserver.HTTP{Token: token, Accept: g.accept, Return: g.returned}
}

// accept returns the handler of a client of another program that has connected. A scope that it asks for is not one of the gateway's own.
func (g *Gateway) accept(c *mcpserver.Client) mcpserver.Handler {
	o := *g.offers.Load()
	if c.Scope != "" {
		o.scope.Name = askedPrefix + c.Scope
	}
	return newPeer(g, c, o)
}

// returned returns the handler of a client that has been away, perhaps since before this process started, or nil if its id is not
// known. The error says that the records cannot be read now.
func (g *Gateway) returned(from *mcpserver.Client) (mcpserver.Handler, error) {
	if g.cfg.Clients == nil {
		return nil, nil
	}
	known, err := g.known(from.ID)
	if known == nil || err != nil {
		return nil, err
	}
	c := g.newClient(from, *g.offers.Load())
	c.own = c.ownTools()
	c.record, c.scope = *known, known.Scope
	c.readView()
	capabilities, err := c.introduce(known.Said)
	if err == nil {
		err = c.open(capabilities)
	}
	if err != nil {
		g.log.Warn().Str("scope", c.scope).Err(err).Msg("client could not return")
		return nil, nil
	}
	g.cfg.Clients.touch(from.ID)
	c.initialized()
	go c.catchUp(maps.Clone(known.Watched))
	return c, nil
}

// known returns the record of a client that has been away, or nil if there is none. The error says that the records cannot be read now.
func (g *Gateway) known(id string) (*record, error) {
	known, err := g.cfg.Clients.find(id)
	if err == nil {
		return known, nil
	}
	g.log.Warn().Err(err).Msg("client was not found")
	if errors.Is(err, errNoRecord) {
		return nil, nil
	}
	return nil, errors.New("what is kept of the session cannot be read: try again")
}

// peer is who has connected from another program: a client that sends initialize, or one that sends requests of protocol
// 2026-07-28. These are stateless: each says what capabilities the client has, and those that say the same are of one client, which
// has a scope as any other. So a server of an earlier protocol has one session for it. Over HTTP, a peer is everybody with the same
// token, see [mcpserver.HTTP.ClientHeader].
type peer struct {
	g     *Gateway
	from  *mcpserver.Client
	offer offer
	old   *client

	mu        sync.Mutex
	hasLeft   bool
	stateless map[string]*guest // by their capabilities
}

// guest is a stateless client, with what its peer notes about it.
type guest struct {
	*client
	requests int       // that run
	used     time.Time // last
	touched  time.Time // its file, last
}

func newPeer(g *Gateway, from *mcpserver.Client, o offer) *peer {
	old := g.newClient(from, o)
	old.own = old.ownTools()
	return &peer{g: g, from: from, offer: o, old: old, stateless: map[string]*guest{}}
}

// Handle returns the result of a request.
func (v *peer) Handle(r *mcpserver.Request) (any, error) {
	if !r.IsStateless() {
		return v.old.Handle(r)
	}
	if r.Method == "initialize" {
		return nil, noMethod(r.Method)
	}
	c, err := v.client(r)
	if err != nil {
		return nil, err
	}
	defer v.done(c)
	return c.Handle(r)
}

// done notes that a request of a client is over.
func (v *peer) done(c *guest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c.requests--
	c.used = time.Now()
	if c.store() != nil && c.used.Sub(c.touched) > touchEvery {
		c.touched = c.used
		go func() {
			c.store().touch(c.kept)
			c.store().touchView(c.kept)
		}()
	}
}

// maxAbsent is how long a client is shown what it was shown before: it has no connection that could end.
const maxAbsent = 24 * time.Hour

// touchEvery is the time after which the file of a client that sends requests says so again.
const touchEvery = 10 * time.Minute

// Notified takes a notification. None of a stateless client means anything here.
func (v *peer) Notified(m *mcpserver.Message) { v.old.Notified(m) }

// Left ends the clients.
func (v *peer) Left(forGood bool) {
	v.old.Left(forGood)
	v.mu.Lock()
	v.hasLeft = true
	all := slices.Collect(maps.Values(v.stateless))
	v.mu.Unlock()
	for _, c := range all {
		c.Left(forGood)
	}
}

// maxCapabilities bounds how many clients with different capabilities one peer is: each has sessions of its own. Beyond that, the one
// ends that was not used for longest.
const maxCapabilities = 16

// makeRoom ends a client that nobody uses, if there are too many. It reports whether there is room. The caller holds the mutex.
func (v *peer) makeRoom() bool {
	if len(v.stateless) < maxCapabilities {
		return true
	}
	busy := map[*client]bool{}
	v.g.waiting.Range(func(_, k any) bool { busy[k.(*waitingCall).c] = true; return true })
	oldest := ""
	for key, c := range v.stateless {
		if c.requests == 0 && !busy[c.client] && (oldest == "" || c.used.Before(v.stateless[oldest].used)) {
			oldest = key
		}
	}
	if oldest == "" {
		return false
	}
	go v.stateless[oldest].Left(false)
	delete(v.stateless, oldest)
	return true
}

// client returns the client of a stateless request, which the caller uses until done.
func (v *peer) client(r *mcpserver.Request) (*guest, error) {
	can := r.Meta()[mcp.MetaKeyClientCapabilities]
	key := string(mcpserver.Canonical(can))
	v.mu.Lock()
	defer v.mu.Unlock()
	switch c := v.stateless[key]; {
	case c != nil:
		if c.requests == 0 && time.Since(c.used) > maxAbsent {
			c.view.Forget()
			c.forgetView()
		}
		c.requests++
		return c, nil
	case v.hasLeft:
		return nil, errGone
	case !v.makeRoom():
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "requests with too many different capabilities have come: mcpactor keeps sessions for each"}
	}
	c := v.g.newClient(v.from, v.offer)
	c.isStateless, c.stateless, c.own = true, c.handleStateless, c.ownTools()
	c.inCall = c.askIn
	c.initialized() // it is asked by results
	said := mcpserver.Object{"capabilities": can}.With("protocolVersion", mcpserver.Revisions[0])
	if info := r.Meta()[mcp.MetaKeyClientInfo]; info != nil {
		said["clientInfo"] = info
	}
	if err := c.arrive(said, key); err != nil {
		return nil, err
	}
	v.stateless[key] = &guest{client: c, requests: 1, touched: time.Now()}
	return v.stateless[key], nil
}

// arrive opens the scope of a stateless client, which over HTTP may have been away, perhaps since before this process started. Its
// capabilities and its principal identify it. Then it has the sessions that are still open.
func (c *client) arrive(said mcpserver.Object, capabilities string) (err error) {
	var data json.RawMessage
	if data, err = mcpserver.Encode(said); err != nil {
		return err
	}
	if c.Principal != "" {
		if c.kept, err = c.g.key.SealName("client", []string{c.Principal, capabilities}); err != nil {
			return err
		}
	}
	var known *record
	if c.store() != nil {
		if known, err = c.g.known(c.kept); err != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		}
	}
	if known != nil { // servers are told what they were told before
		c.record, c.scope, data = *known, known.Scope, known.Said
		c.record.Watched, c.record.LogLevel = nil, "" // its requests say it again
		if time.Since(c.store().lastAsked(c.kept)) <= maxAbsent {
			c.readView()
			c.store().touchView(c.kept)
		}
	}
	can, err := c.introduce(data)
	if err == nil {
		c.version = mcpserver.Stateless
		err = c.open(can)
	}
	if err != nil {
		return err
	}
	c.note(func(k *record) bool {
		k.Scope, k.Said = c.scope, data
		return known == nil
	})
	c.keep()
	return nil
}

// asked are the methods whose result may ask for input.
var asked = []string{"tools/call", "prompts/get", "resources/read"}

// handleStateless returns the result of a stateless request. It has the members that each result has.
func (c *client) handleStateless(r *mcpserver.Request) (any, error) {
	level := r.Meta()[mcp.MetaKeyLogLevel]
	switch {
	case level != nil && !slices.Contains(levels, r.Meta().Text(mcp.MetaKeyLogLevel)):
		return nil, mcpserver.Invalid("_meta: " + mcp.MetaKeyLogLevel + ": use one of " + strings.Join(levels, ", "))
	case r.Method == "server/discover":
		return c.discover(r)
	case r.Method == "subscriptions/listen":
		return c.listen(r)
	case slices.Contains(asked, r.Method):
		return c.inRounds(r)
	case kinds[r.Method].items != "":
		result, err := c.list(r, r.Members())
		if err != nil {
			return nil, err
		}
		fresh := c.freshFor(r.Method)
		if c.g.cfg.Find > 0 && r.Method == "tools/list" { // the client may find more
			fresh = 0
		}
		return cacheable(completed(result), fresh), nil
	case strings.HasPrefix(r.Method, "tasks/"):
		return completedOr(c.task(r))
	case r.Method == "completion/complete":
		return completedOr(c.complete(r, r.Members()))
	case slices.Contains(ofInitialize, r.Method):
		return nil, noMethod(r.Method)
	}
	return completedOr(c.custom(r))
}

// ofInitialize are the methods that protocol 2026-07-28 no longer has.
var ofInitialize = []string{"initialize", "ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"}

// freshFor returns for how long the list with a method is fresh: until it is due, if all servers say how long theirs is. A client that
// listens is told of changes before.
func (c *client) freshFor(method string) time.Duration {
	fresh := time.Duration(0)
	for i, s := range c.servers() {
		known := s.lists[method].last()
		if known == nil || known.until.IsZero() {
			return 0
		}
		if left := max(0, time.Until(known.until)); i == 0 || left < fresh {
			fresh = left
		}
	}
	return fresh
}

// discover answers server/discover as initialize is answered: from what is kept of the servers, without starting any, or else as soon as
// they have said it.
func (c *client) discover(r *mcpserver.Request) (any, error) {
	r.Pass()
	c.meet(r.Context)
	if r.Context.Err() != nil {
		return nil, errGone
	}
	said := c.introduction()
	can := mcpserver.ObjectOf(said["capabilities"])
	result := mcpserver.Object{}.With("supportedVersions", []string{mcpserver.Stateless}).With("capabilities", can)
	if said["instructions"] != nil {
		result["instructions"] = said["instructions"]
	}
	result.With("_meta", mcpserver.Object{mcp.MetaKeyServerInfo: said["serverInfo"]})
	return cacheable(completed(result), c.freshFor("tools/list")), nil
}
