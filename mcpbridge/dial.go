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
	servers map[string]*endpoint
}

// endpoint is a server with what its sessions share.
type endpoint struct {
	Server
	client *mcp.Client
	base   http.RoundTripper // nil but for URLs
	own    *http.Transport   // base, where it is ours
	url    *url.URL
	sent   recent // credentials

	mu     sync.Mutex
	legacy bool            // it ignores server/discover
	hints  map[string]bool // tool to whether it may run twice; nil: not listed yet
}

// New returns the Bridge for servers, which have been validated.
func New(servers []Server) *Bridge {
	client := mcp.NewClient(
		&mcp.Implementation{Name: "mcpactor", Version: "0.1.0"},
		&mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}},
	)
	client.AddSendingMiddleware(begin)
	b := &Bridge{servers: make(map[string]*endpoint, len(servers))}
	for _, srv := range servers {
		at := &endpoint{Server: srv, client: client}
		if srv.URL != "" {
			at.url, _ = url.Parse(srv.URL)
			switch {
			case srv.HTTPClient != nil && srv.HTTPClient.Transport != nil:
				at.base = srv.HTTPClient.Transport
			default:
				at.own = http.DefaultTransport.(*http.Transport).Clone()
				at.own.MaxIdleConns = 0
				at.own.MaxIdleConnsPerHost = maxIdlePerHost
				at.own.IdleConnTimeout = idleTimeout
				at.base = at.own
			}
		}
		b.servers[srv.Name] = at
	}
	return b
}

// Close closes idle HTTP connections. Call it when all sessions are closed.
func (b *Bridge) Close() {
	for _, at := range b.servers {
		if at.own != nil {
			at.own.CloseIdleConnections()
		}
	}
}

// Dial opens a session.
func (b *Bridge) Dial(ctx context.Context, req DialRequest) (result Conn, err error) {
	defer recovered(&err)
	at := b.servers[req.Key.Server]
	if at == nil {
		return nil, &Error{Class: Invalid, Detail: "no such server"}
	}
	creds, err := at.credentials(ctx, req.Key)
	if err != nil {
		return nil, err
	}
	if req.Resume != nil {
		c, err := at.attach(ctx, req, creds)
		if err == nil {
			return c, nil
		}
		if err.Session != Gone {
			return nil, err
		}
	}
	c, e := at.dial(ctx, req.Down, nil, creds)
	if e != nil {
		return nil, e
	}
	return c, nil
}

// attach goes on with a session that the server may still know. A ping tells
// whether it does: any answer to it is a yes.
func (at *endpoint) attach(ctx context.Context, req DialRequest, creds Credentials) (*conn, *Error) {
	var attached atomic.Bool // else it is not this session whose end matters
	down := func(e *Error) {
		if attached.Load() {
			req.Down(e)
		}
	}
	c, e := at.dial(ctx, down, req.Resume, creds)
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
func (at *endpoint) dial(ctx context.Context, down func(*Error), resume *Resume, creds Credentials) (*conn, *Error) {
	seen := new(discovery)
	c, e := at.open(ctx, down, resume, creds, seen)
	if e != nil && errors.Is(e, errSilent) && ctx.Err() == nil && at.version(resume) == "" {
		at.mu.Lock()
		at.legacy = true
		at.mu.Unlock()
		return at.open(ctx, down, resume, creds, new(discovery))
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
	case at.ProtocolVersion == "" && at.legacy:
		return protocolLegacy
	}
	return at.ProtocolVersion
}

// errSilent is why a handshake ended whose first request was ignored.
var errSilent = errors.New("the server does not answer server/discover")

// open does one handshake.
func (at *endpoint) open(ctx context.Context, down func(*Error), resume *Resume, creds Credentials, seen *discovery) (*conn, *Error) {
	connecting, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	c := &conn{at: at, closed: make(chan struct{})}
	c.cut, c.cancel = context.WithCancel(context.Background())
	inner, ex := withExchange(c.cut)

	transport, err := c.transport(connecting, abort, down, resume, creds, seen)
	give := context.AfterFunc(connecting, c.giveUp)
	go c.listen(connecting, abort, seen)
	if err == nil {
		c.cs, err = at.client.Connect(inner, transport, &mcp.ClientSessionOptions{ProtocolVersion: at.version(resume)})
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
func (c *conn) transport(connecting context.Context, abort context.CancelCauseFunc, down func(*Error), resume *Resume, creds Credentials, seen *discovery) (mcp.Transport, error) {
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
					down(e)
				}
			}()
		}
	}
	if srv.URL != "" {
		authorizer := &authorizer{
			base: c.at.base, srv: srv, url: c.at.url, credentials: creds, seen: seen, sentByAll: &c.at.sent,
			cut: c.cut, connecting: connecting,
		}
		c.x = &exchanger{
			srv: srv, auth: authorizer, url: c.at.url, sse: srv.Transport == TransportSSE,
			seen: seen, down: down, cut: c.cut, connecting: connecting, abort: abort, resume: resume,
		}
		client := &http.Client{Transport: c.x}
		if srv.HTTPClient != nil {
			client.Jar, client.CheckRedirect = srv.HTTPClient.Jar, srv.HTTPClient.CheckRedirect
		}
		if c.x.sse {
			c.tap = &tap{Transport: &mcp.SSEClientTransport{Endpoint: srv.URL, HTTPClient: client, MaxEventSize: limit}, down: lost, seen: seen}
			return c.tap, nil
		}
		return &mcp.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: client, MaxEventSize: limit, MaxRetries: 2 * maxResumes}, nil
	}
	if srv.InMemory != nil {
		near, far := mcp.NewInMemoryTransports()
		if _, err := srv.InMemory.Connect(c.cut, far, nil); err != nil {
			return nil, err
		}
		c.tap = &tap{Transport: near, down: lost, seen: seen}
		return c.tap, nil
	}
	proc, err := startProcess(srv)
	if err != nil {
		return nil, err
	}
	c.proc = proc
	c.tap = &tap{Transport: &mcp.IOTransport{Reader: io.NopCloser(proc), Writer: nopCloser{proc}, MaxLineLength: limit}, down: lost, seen: seen, proc: proc}
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
