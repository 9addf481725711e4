package bridge

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"

	"github.com/mcpactor/mcpactor/internal/bridge/redact"
	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
)

const (
	// protocolLegacy is asked for of a server that ignores server/discover.
	protocolLegacy = "2025-11-25"
	// discoverLimit is how long a server may take to answer server/discover,
	// once it has read it.
	discoverLimit = 5 * time.Second
	// connectDefault bounds the opening of a second session when the first was opened
	// without a bound.
	connectDefault = 30 * time.Second
	// sseLimit bounds the attempt to speak HTTP+SSE to a server that refuses streamable
	// HTTP.
	sseLimit = 5 * time.Second
	// dialCleanup bounds what has to be cleaned up after a dial that failed.
	dialCleanup = time.Second
)

// Dial opens a session.
func (b *Bridge) Dial(ctx context.Context, req mcpbridge.DialRequest) (result mcpbridge.Conn, err error) {
	defer recovered(&err)
	b.mu.Lock()
	at := b.servers[req.Key.Server]
	b.mu.Unlock()
	if at == nil {
		return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "no such server"}
	}
	creds, err := at.credentials(ctx, req.Key)
	shown := fingerprint(ctx, creds, err)
	if req.Refused != nil && refusedWith(req.Refused) == shown {
		return nil, req.Refused
	}
	if err != nil {
		return nil, refusal401(err, shown)
	}
	c, e := b.dial(ctx, at, attempt{DialRequest: req, credentials: creds})
	if e != nil {
		return nil, refusal401(e, shown)
	}
	return c, nil
}

// dial opens a session, attaches to one, or adopts one that a control has opened.
func (b *Bridge) dial(ctx context.Context, at *endpoint, req attempt) (*conn, *mcpbridge.Error) {
	if c := b.adopt(ctx, at, req); c != nil {
		return c, nil
	}
	if req.Resume != nil && at.owns(req.Resume, req.credentials) {
		c, e := at.attach(ctx, req)
		if e == nil || e.Session != mcpbridge.Gone || req.Only {
			return c, e
		}
	}
	if req.Only {
		return nil, &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Detail: "the session is of another endpoint or identity"}
	}
	req.Resume = nil
	return at.dial(ctx, req)
}

// attempt is a request to dial with what is found out on the way.
type attempt struct {
	mcpbridge.DialRequest
	credentials mcpbridge.Credentials // of the key, or nil
	control     bool                  // the session is opened to settle doubt about another
}

// refusedFor is the error behind a refusal of credentials. It remembers which those were.
type refusedFor struct {
	credentials uint64 // their fingerprint
	err         error  // the error behind it, or nil
}

func (r *refusedFor) Error() string {
	if r.err == nil {
		return "the credentials were refused"
	}
	return r.err.Error()
}

func (r *refusedFor) Unwrap() error { return r.err }

// refusal401 returns the error of a dial. A refusal of credentials remembers which
// those were.
func refusal401(err error, shown uint64) error {
	e := mcpbridge.AsError(err)
	if e.Class != mcpbridge.Unauthorized {
		return err
	}
	refused := *e
	refused.Err = &refusedFor{shown, e.Err}
	return &refused
}

// refusedWith returns the fingerprint of the credentials that a dial was refused for.
func refusedWith(e *mcpbridge.Error) uint64 {
	var r *refusedFor
	if errors.As(e.Err, &r) {
		return r.credentials
	}
	return noCredentials
}

// attach goes on with a session that the server may still know. The question of [doubts]
// tells whether it does; where that is in doubt the control tells, and the session that
// it has opened is what comes of it.
func (at *endpoint) attach(ctx context.Context, req attempt) (*conn, *mcpbridge.Error) {
	quiet := req
	quiet.Down = nil // it is not this session yet whose end matters
	c, e := at.dial(ctx, quiet)
	if e != nil {
		return nil, e
	}
	var asked replied
	if !req.Only {
		if asked = c.question(ctx); asked.refusal != nil && asked.refusal.Doubt { // with credentials that are new by now
			asked = c.question(withoutRefresh(ctx))
		}
		e = asked.refusal
	}
	switch {
	case e == nil:
		c.belongsTo(req.DialRequest)
		c.info.Attached = true
		if req.Answered != nil {
			req.Answered()
		}
		return c, nil
	case e.Doubt && c.controlUntil(ctx, asked) == verdictDead:
		go c.x.endQuietly(1) // whoever dials does not wait for it
		c.discard()
		if second := at.bridge.adopt(ctx, at, req); second != nil {
			return second, nil
		}
		return nil, unavailable(e)
	}
	c.discard()
	if e.Session != mcpbridge.Gone {
		e = unavailable(e)
	}
	return nil, e
}

// dial opens a session. A server that ignores server/discover is asked again in the old
// way, and remembered. So is one that has HTTP+SSE only, which the specification has
// clients try when streamable HTTP is refused.
func (at *endpoint) dial(ctx context.Context, req attempt) (*conn, *mcpbridge.Error) {
	c, e := at.open(ctx, req)
	switch {
	case e == nil || ctx.Err() != nil:
		return c, e
	case errors.Is(e, errSilent) && at.version(req.Resume) == "":
		at.mu.Lock()
		at.legacy, at.asked = true, time.Now()
		at.mu.Unlock()
		return at.open(ctx, req)
	case at.url == nil || at.Transport == mcpbridge.TransportSSE || e.Status < 400:
	case at.onlySSE.Load():
		at.onlySSE.Store(false) // it may have learned more
	case req.Resume == nil && (e.Status == http.StatusBadRequest || e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed):
		at.onlySSE.Store(true)
		limited, cancel := context.WithTimeout(ctx, sseLimit)
		defer cancel()
		if c, failed := at.open(limited, req); failed == nil {
			return c, nil
		}
		at.onlySSE.Store(false)
	}
	return nil, e
}

// errSilent is why a handshake ended whose first request was ignored.
var errSilent = errors.New("the server does not answer server/discover")

// open does one handshake.
func (at *endpoint) open(ctx context.Context, req attempt) (*conn, *mcpbridge.Error) {
	seen, version := new(discovery), at.version(req.Resume)
	connecting, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	c := &conn{at: at, key: req.Key, connectLimit: connectDefault}
	if deadline, ok := ctx.Deadline(); ok {
		c.connectLimit = time.Until(deadline)
	}
	c.belongsTo(req.DialRequest)
	c.second.Store(req.control)
	c.roots.Store(req.Roots)
	c.cut, c.cancel = context.WithCancel(context.Background())
	inner, ex := withExchange(c.cut, c)
	h := &handshake{abort: abort, ctx: inner}
	c.dialing.Store(h)

	transport, err := c.transport(req, seen)
	give := context.AfterFunc(connecting, c.giveUp)
	go c.listen(connecting, seen)
	if err == nil {
		c.cs, err = at.bridge.client.Connect(kept{c.cut, c}, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	}
	if err == nil && req.Resume == nil && req.Answered != nil {
		req.Answered()
	}
	if err == nil && h.stream != nil {
		c.await(connecting, h.stream)
		err = connecting.Err()
	}
	if !give() && err == nil {
		err = connecting.Err() // it was cut when it had just succeeded
	}
	if err == nil && c.tap != nil {
		c.dialing.Store(nil)
		if over := c.tap.over(); over != nil { // it ended before anybody would have been told
			err = &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Detail: redact.Describe(over, c.secrets()...)}
		}
	}
	if err == nil {
		c.info.Server = c.cs.InitializeResult()
		if req.Resume == nil && seen.tells() {
			at.met(version, c.info.Server)
		}
		c.info.Stateless = c.x != nil && !c.x.sse && c.cs.ID() == ""
		c.dialing.Store(nil)
		return c, nil
	}
	e := c.explainDial(ctx, context.Cause(connecting), ex, err)
	c.discard()
	return nil, e
}

// kept is the context that a session is connected with. The SDK keeps its values for
// as long as the session lasts, and this does not keep those of the handshake.
type kept struct {
	context.Context
	conn *conn
}

// Value finds what belongs to the handshake until that is over, and then only the
// connection.
func (k kept) Value(key any) any {
	if h := k.conn.dialing.Load(); h != nil {
		return h.ctx.Value(key)
	}
	if key == (exchangeKey{}) {
		return &exchange{Context: k.Context, conn: k.conn}
	}
	return k.Context.Value(key)
}

// listen ends a handshake whose first request was read, and is ignored. A server
// that takes its time to start has not read it yet.
func (c *conn) listen(connecting context.Context, seen *discovery) {
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
	c.abort(&mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: errSilent.Error(), Err: errSilent})
}

// transport makes the SDK's transport for the server.
func (c *conn) transport(req attempt, seen *discovery) (mcp.Transport, error) {
	srv, limit := &c.at.Server, c.at.MaxResult
	if limit == 0 {
		limit = mcpbridge.DefaultMaxResult
	}
	if limit > 0 {
		limit += maxRefusal // ours comes first, and says what it was
	}
	lost := func(err error) {
		if c.isOpen() { // else it is the dial that fails
			go func() {
				e := c.broke(err) // it may wait for the process
				if !c.tap.closed() {
					c.tellDown(e)
				}
			}()
		}
	}
	if srv.URL != "" {
		out := newSender(c, req, seen)
		c.x = &exchanger{
			conn: c, srv: srv, out: out, sse: c.at.usesSSE(), seen: seen, resume: req.Resume,
			cancelling: make(chan struct{}, maxCancelling),
		}
		ids := rpc.NewIDs(&c.at.bridge.strays)
		client := &http.Client{Transport: c.x, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		if c.x.sse {
			c.tap = &tap{Transport: &mcp.SSEClientTransport{Endpoint: srv.URL, HTTPClient: client, MaxEventSize: limit}, down: lost, seen: seen, progress: &c.progress, ids: ids}
			return c.tap, nil
		}
		c.x.ids = ids
		return &mcp.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: client, MaxEventSize: limit, MaxRetries: 2 * maxResumes, DisableStandaloneSSE: srv.NoStream}, nil
	}
	if srv.InMemory != nil {
		near, far := net.Pipe()
		if _, err := srv.InMemory.Connect(c.cut, &mcp.IOTransport{Reader: far, Writer: far}, nil); err != nil {
			return nil, err
		}
		in := &input{Writer: near}
		c.tap = &tap{Transport: &mcp.IOTransport{Reader: near, Writer: nopCloser{in}}, down: lost, seen: seen, progress: &c.progress, input: in}
		return c.tap, nil
	}
	proc, err := startProcess(srv)
	if err != nil {
		return nil, err
	}
	c.proc = proc
	c.tap = &tap{Transport: &mcp.IOTransport{Reader: io.NopCloser(proc), Writer: nopCloser{proc}, MaxLineLength: limit}, down: lost, seen: seen, progress: &c.progress, input: &proc.input, ids: rpc.NewIDs(&c.at.bridge.strays)}
	return c.tap, nil
}

// nopCloser keeps the SDK from closing what [process.stop] closes in its order, or
// what closes with the other end.
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
func (c *conn) explainDial(ctx context.Context, cause error, ex *exchange, err error) *mcpbridge.Error {
	var aborted *mcpbridge.Error
	if errors.As(cause, &aborted) {
		return unavailable(aborted)
	}
	secrets := c.secrets()
	e := ex.explain(ctx, err, secrets...)
	nonsense := c.tap != nil && c.tap.nonsense() != nil
	switch e.Class {
	case mcpbridge.Invalid, mcpbridge.ServerError, mcpbridge.Protocol, mcpbridge.Expired:
		c.at.unmet()
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Class, e.Detail = mcpbridge.Unavailable, "timed out while connecting"
	case c.proc == nil && c.x == nil && c.tap == nil:
		e.Class = mcpbridge.Unavailable
	case strings.Contains(err.Error(), "unsupported protocol version"):
		e.Class, e.Session, e.Server, e.Detail = mcpbridge.Protocol, mcpbridge.Alive, mcpbridge.Present, redact.Describe(err, secrets...)
	case nonsense:
		e.Class = mcpbridge.Protocol
	}
	if c.proc != nil && e.Class != mcpbridge.Cancelled && (e.Session == mcpbridge.Broken || nonsense) {
		e.Detail, e.Quote = c.obituary()
	}
	e.Server = c.presence(e, ex, err)
	return unavailable(e)
}

// unavailable turns what became of a request of the handshake into what became
// of the dial. A refusal may be another one the next time.
func unavailable(e *mcpbridge.Error) *mcpbridge.Error {
	if e.Class == mcpbridge.Cancelled {
		return e
	}
	dial := mcpbridge.AsDialError(e)
	if dial.Class == mcpbridge.Invalid || dial.Class == mcpbridge.ServerError {
		dial.Class = mcpbridge.Unavailable
	}
	return dial
}

func isClosedFile(err error) bool { return errors.Is(err, os.ErrClosed) }
