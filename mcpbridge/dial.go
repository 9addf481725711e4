package mcpbridge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

const (
	// protocolLegacy is asked for of a server that ignores server/discover.
	protocolLegacy = "2025-11-25"
	// discoverLimit is how long a server may take to answer server/discover,
	// once it has read it.
	discoverLimit = 5 * time.Second
	// dialCleanup bounds what has to be cleaned up after a dial that failed.
	dialCleanup = 2 * time.Second
	// maxIdlePerHost keeps the connections of a busy session warm: the default
	// of net/http, 2, halves the throughput at 64 callers.
	maxIdlePerHost = 256
	// idleTimeout is below the 5 s after which Node closes an idle connection:
	// a call sent at that moment would be lost.
	idleTimeout = 4 * time.Second
)

// DialRequest says what to dial.
type DialRequest struct {
	Key messages.Key
	// Resume is the session to attach to, if the server still knows it. If
	// not, a new one is made. Nil always makes a new one.
	Resume *Resume
	// Down is called at most once, from any goroutine, when the session ends
	// by itself: [Error.Session] says how. Not called for what an operation
	// reports, nor after Close has begun. It must not block.
	Down func(*Error)
	// Heard is called with what the server says by itself, in its order; the stamp
	// is not set. With a [messages.Progress] comes the operation that it is of. It
	// must not block. With nil, nobody listens.
	Heard func(n messages.Notification, of messages.Operation)
	// Ask is called with what the server asks, in a goroutine of its own; the origin
	// is not set. It may block until ctx ends. With nil, all is refused.
	Ask func(ctx context.Context, req messages.Request) messages.Answer
	// Roots are what the server gets to know as roots from the beginning, or nil.
	Roots *messages.SetRoots

	credentials Credentials // of the key, once they were asked for
}

// Dialer opens sessions. Wrap one to inject faults, or to observe.
type Dialer interface {
	// Dial opens a session, or fails with an [*Error] soon after ctx ends;
	// then nothing is left open.
	Dial(ctx context.Context, req DialRequest) (Conn, error)
}

// Bridge is the Dialer for a list of servers. It shares one HTTP client per
// server and one SDK client among all sessions.
type Bridge struct {
	client       *mcp.Client
	send         mcp.MethodHandler // of client
	capabilities *mcp.ClientCapabilities

	mu      sync.Mutex
	servers map[string]*endpoint
	retired []*endpoint // that a Set has replaced
}

// endpoint is a server with what its sessions share.
type endpoint struct {
	Server
	bridge      *Bridge
	base        http.RoundTripper // nil but for URLs
	own         *http.Transport   // base, where it is ours
	url         *url.URL
	fingerprint string
	sent        recent // credentials

	mu     sync.Mutex
	legacy bool            // it speaks only protocols that are older than server/discover
	known  string          // who that was
	hints  map[string]bool // tool to whether it may run twice; nil: not listed yet
}

// New returns the Bridge for servers, which have been validated. capabilities are
// what the servers are told that they can ask for; nil is nothing.
func New(servers []Server, capabilities *mcp.ClientCapabilities) *Bridge {
	if capabilities == nil {
		capabilities = &mcp.ClientCapabilities{}
	}
	b := &Bridge{capabilities: capabilities}
	b.client, b.send = newClient(capabilities)
	b.Set(servers)
	return b
}

// Set replaces the list of servers, which have been validated. Those that are the
// same keep their connections; sessions that are open are not touched.
func (b *Bridge) Set(servers []Server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.servers
	b.servers = make(map[string]*endpoint, len(servers))
	for _, srv := range servers {
		if at := before[srv.Name]; at != nil && at.Same(&srv) {
			b.servers[srv.Name] = at
			delete(before, srv.Name)
			continue
		}
		b.servers[srv.Name] = newEndpoint(b, srv)
	}
	for _, at := range before {
		b.retired = append(b.retired, at)
	}
}

func newEndpoint(b *Bridge, srv Server) *endpoint {
	at := &endpoint{Server: srv, bridge: b}
	if srv.URL == "" {
		return at
	}
	at.url, _ = url.Parse(srv.URL)
	at.fingerprint = fingerprintOf(srv.URL)
	if srv.HTTPClient != nil && srv.HTTPClient.Transport != nil {
		at.base = srv.HTTPClient.Transport
		return at
	}
	at.own = http.DefaultTransport.(*http.Transport).Clone()
	at.own.MaxIdleConns = 0
	at.own.MaxIdleConnsPerHost = maxIdlePerHost
	at.own.IdleConnTimeout = idleTimeout
	at.base = at.own
	return at
}

// Prune closes the idle HTTP connections to servers that a Set has replaced. Call it
// when their sessions are closed.
func (b *Bridge) Prune() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, at := range b.retired {
		if at.own != nil {
			at.own.CloseIdleConnections()
		}
	}
	b.retired = nil
}

// Close closes idle HTTP connections. Call it when all sessions are closed.
func (b *Bridge) Close() {
	b.Set(nil)
	b.Prune()
}

// Dial opens a session.
func (b *Bridge) Dial(ctx context.Context, req DialRequest) (result Conn, err error) {
	defer recovered(&err)
	b.mu.Lock()
	at := b.servers[req.Key.Server]
	b.mu.Unlock()
	if at == nil {
		return nil, &Error{Class: Invalid, Detail: "no such server"}
	}
	creds, err := at.credentials(ctx, req.Key)
	if err != nil {
		return nil, err
	}
	req.credentials = creds
	if req.Resume != nil && req.Resume.Endpoint == at.fingerprint {
		c, err := at.attach(ctx, req)
		if err == nil {
			return c, nil
		}
		if err.Session != Gone {
			return nil, err
		}
	}
	req.Resume = nil
	c, e := at.dial(ctx, req)
	if e != nil {
		return nil, e
	}
	return c, nil
}

// attach goes on with a session that the server may still know. A ping tells
// whether it does: any answer to it is a yes.
func (at *endpoint) attach(ctx context.Context, req DialRequest) (*conn, *Error) {
	var attached atomic.Bool // else it is not this session whose end matters
	down := req.Down
	req.Down = func(e *Error) {
		if attached.Load() {
			down(e)
		}
	}
	c, e := at.dial(ctx, req)
	if e != nil {
		return nil, e
	}
	_, err := c.Do(ctx, &messages.Ping{})
	e = AsError(err)
	if e == nil || e.Session == Alive && e.Class != Cancelled && e.Class != Deadline && e.Class != ServerError {
		attached.Store(true)
		c.info.Attached = true
		return c, nil
	}
	c.discard()
	if e.Session != Gone {
		e = unavailable(e)
	}
	return nil, e
}

// dial opens a session. A server that ignores server/discover is asked again
// in the old way, and remembered.
func (at *endpoint) dial(ctx context.Context, req DialRequest) (*conn, *Error) {
	c, e := at.open(ctx, req)
	if e != nil && errors.Is(e, errSilent) && ctx.Err() == nil && at.version(req.Resume) == "" {
		at.mu.Lock()
		at.legacy = true
		at.mu.Unlock()
		return at.open(ctx, req)
	}
	return c, e
}

// version returns the protocol version to ask for; empty is the newest.
func (at *endpoint) version(resume *Resume) string {
	at.mu.Lock()
	defer at.mu.Unlock()
	switch {
	case resume != nil:
		return resume.Server.ProtocolVersion
	case at.ProtocolVersion == "" && (at.legacy || at.Transport == TransportSSE):
		return protocolLegacy
	}
	return at.ProtocolVersion
}

// met remembers that a server speaks only older protocols, so that not every
// session asks it with server/discover first. Another server, or another version of
// it, is asked again.
func (at *endpoint) met(asked string, server *mcp.InitializeResult) {
	var who string
	if server.ServerInfo != nil {
		who = server.ServerInfo.Name + " " + server.ServerInfo.Version
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	at.legacy = server.ProtocolVersion <= protocolLegacy && (asked == "" || at.known == "" || at.known == who)
	at.known = who
}

// unmet forgets that: the server has refused.
func (at *endpoint) unmet() {
	at.mu.Lock()
	defer at.mu.Unlock()
	at.legacy = false
}

// errSilent is why a handshake ended whose first request was ignored.
var errSilent = errors.New("the server does not answer server/discover")

// open does one handshake.
func (at *endpoint) open(ctx context.Context, req DialRequest) (*conn, *Error) {
	seen, version := new(discovery), at.version(req.Resume)
	connecting, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	c := &conn{at: at, closed: make(chan struct{}), heard: req.Heard, ask: req.Ask}
	c.roots.Store(req.Roots)
	c.cut, c.cancel = context.WithCancel(context.Background())
	inner, ex := withExchange(c.cut, c)

	transport, err := c.transport(connecting, abort, req, seen)
	give := context.AfterFunc(connecting, c.giveUp)
	go c.listen(connecting, abort, seen)
	if err == nil {
		c.cs, err = at.bridge.client.Connect(inner, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	}
	if !give() && err == nil {
		err = connecting.Err() // it was cut when it had just succeeded
	}
	if err == nil && c.tap != nil {
		abort(nil)
		if over := c.tap.over(); over != nil { // it ended before anybody would have been told
			err = &Error{Class: Lost, Session: Broken, Detail: describe(over, c.secrets()...)}
		}
	}
	if err == nil {
		c.info.Server = c.cs.InitializeResult()
		if req.Resume == nil {
			at.met(version, c.info.Server)
		}
		c.info.Stateless = c.x != nil && !c.x.sse && c.cs.ID() == ""
		return c, nil
	}
	e := c.explainDial(ctx, context.Cause(connecting), ex, err)
	c.discard()
	return nil, e
}

// listen ends a handshake whose first request was read, and is ignored. A server
// that takes its time to start has not read it yet.
func (c *conn) listen(connecting context.Context, abort context.CancelCauseFunc, seen *discovery) {
	tick := time.NewTicker(discoverLimit / 5)
	defer tick.Stop()
	for quiet := 0; quiet < 5; {
		select {
		case <-connecting.Done():
			return
		case <-tick.C:
			if seen.unanswered() && (c.proc == nil || c.proc.hasRead()) {
				quiet++
			}
		}
	}
	abort(&Error{Class: Unavailable, Detail: errSilent.Error(), Err: errSilent})
}

// transport makes the SDK's transport for the server.
func (c *conn) transport(connecting context.Context, abort context.CancelCauseFunc, req DialRequest, seen *discovery) (mcp.Transport, error) {
	srv, limit := &c.at.Server, c.at.MaxResult
	if limit == 0 {
		limit = DefaultMaxResult
	}
	if limit > 0 {
		limit += maxRefusal // ours comes first, and says what it was
	}
	lost := func(err error) {
		if connecting.Err() != nil { // else it is the dial that fails
			go func() {
				e := c.broke(err) // it may wait for the process
				if !c.tap.closed() {
					req.Down(e)
				}
			}()
		}
	}
	if srv.URL != "" {
		authorizer := &authorizer{
			base: c.at.base, srv: srv, url: c.at.url, credentials: req.credentials, seen: seen, sentByAll: &c.at.sent,
			cut: c.cut, connecting: connecting,
		}
		c.x = &exchanger{
			srv: srv, auth: authorizer, url: c.at.url, sse: srv.Transport == TransportSSE,
			conn: c, seen: seen, down: req.Down, cut: c.cut, connecting: connecting, abort: abort, resume: req.Resume,
		}
		client := &http.Client{Transport: c.x}
		if srv.HTTPClient != nil {
			client.Jar, client.CheckRedirect = srv.HTTPClient.Jar, srv.HTTPClient.CheckRedirect
		}
		if c.x.sse {
			c.tap = &tap{Transport: &mcp.SSEClientTransport{Endpoint: srv.URL, HTTPClient: client, MaxEventSize: limit}, down: lost, seen: seen, progress: &c.progress}
			return c.tap, nil
		}
		return &mcp.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: client, MaxEventSize: limit, MaxRetries: 2 * maxResumes}, nil
	}
	if srv.InMemory != nil {
		near, far := mcp.NewInMemoryTransports()
		if _, err := srv.InMemory.Connect(c.cut, far, nil); err != nil {
			return nil, err
		}
		c.tap = &tap{Transport: near, down: lost, seen: seen, progress: &c.progress}
		return c.tap, nil
	}
	proc, err := startProcess(srv)
	if err != nil {
		return nil, err
	}
	c.proc = proc
	c.tap = &tap{Transport: &mcp.IOTransport{Reader: io.NopCloser(proc), Writer: nopCloser{proc}, MaxLineLength: limit}, down: lost, seen: seen, progress: &c.progress, proc: proc}
	return c.tap, nil
}

// nopCloser keeps the SDK from closing what [process.stop] closes in its order.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// giveUp cuts a handshake short.
func (c *conn) giveUp() {
	c.cancel()
	if c.proc != nil {
		c.proc.kill()
	}
}

// discard closes what a failed handshake has left. A session that was to be
// attached to stays: it is not ours, and may be attached to the next time.
func (c *conn) discard() {
	ctx, cancel := context.WithTimeout(context.Background(), dialCleanup)
	defer cancel()
	if c.x != nil && c.x.resume == nil {
		c.x.settled(ctx)
		c.x.delete(ctx) //nolint:errcheck // the error that led here is the one to report
	}
	if c.cs != nil {
		c.Detach(ctx) //nolint:errcheck // as above
		return
	}
	c.cancel()
	if c.proc != nil {
		c.proc.kill()
		c.proc.stop(ctx) //nolint:errcheck // as above
	}
}

// explainDial says why a handshake failed.
func (c *conn) explainDial(ctx context.Context, cause error, ex *exchange, err error) *Error {
	var aborted *Error
	if errors.As(cause, &aborted) {
		return unavailable(aborted)
	}
	secrets := c.secrets()
	e := ex.explain(ctx, err, secrets...)
	nonsense := c.tap != nil && c.tap.nonsense() != nil
	switch e.Class {
	case Invalid, ServerError, Protocol, Expired:
		c.at.unmet()
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Class, e.Detail = Unavailable, "timed out while connecting"
	case c.proc == nil && c.x == nil && c.tap == nil:
		e.Class = Unavailable
	case strings.Contains(err.Error(), "unsupported protocol version"):
		e.Class, e.Session, e.Detail = Protocol, Alive, describe(err, secrets...)
	case nonsense:
		e.Class = Protocol
	}
	if c.proc != nil && e.Class != Cancelled && (e.Session == Broken || nonsense) {
		e.Detail = c.lastWords()
	}
	return unavailable(e)
}

// unavailable turns what became of a request of the handshake into what became
// of the dial.
func unavailable(e *Error) *Error {
	dial := *e
	dial.Session = Alive // there is none
	switch e.Class {
	case Lost, NotSent, Expired, Invalid, ServerError, Deadline:
		dial.Class = Unavailable
	}
	return &dial
}

// learn remembers which tools may run twice.
func (at *endpoint) learn(tools []*mcp.Tool) {
	hints := make(map[string]bool, len(tools))
	for _, tool := range tools {
		if a := tool.Annotations; a != nil {
			hints[tool.Name] = a.ReadOnlyHint || a.IdempotentHint
		}
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	at.hints = hints
}

// hint returns what is known of a tool.
func (at *endpoint) hint(tool string) (safe, known bool) {
	at.mu.Lock()
	defer at.mu.Unlock()
	return at.hints[tool], at.hints != nil
}

func isClosedFile(err error) bool { return errors.Is(err, os.ErrClosed) }
