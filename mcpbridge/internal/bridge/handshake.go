package bridge

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

const (
	// discoverTimeout is how long a server may take to answer server/discover,
	// once it has read it.
	discoverTimeout = 5 * time.Second
	// connectTimeout bounds the opening of a second session if the first was opened
	// without a bound.
	connectTimeout = 30 * time.Second
	// olderTimeout bounds the attempt to use the older transport of a server that refuses the
	// newer one.
	olderTimeout = 5 * time.Second
)

// attempt is a request to dial, with what is found out on the way.
type attempt struct {
	mcpbridge.DialRequest
	credentials mcpbridge.Credentials // of the key, or nil
	control     bool                  // the session is opened to settle doubt about another
}

// opener opens sessions.
type opener struct {
	client *sdkClient
	strays *atomic.Uint64 // see [mcpbridge.Bridge]
	log    *bridgeLog
	seconds
}

// dial opens a session. A server that refuses a transport is tried over the older one, where there
// is one.
func (o *opener) dial(ctx context.Context, at *endpoint, req attempt) (*conn, *mcpbridge.Error) {
	c, e := o.open(ctx, at, req)
	switch {
	case e == nil || ctx.Err() != nil:
		return c, e
	case at.older == nil || e.Status < 400:
	case at.usesOlder.Load():
		at.usesOlder.Store(false) // it may have learned more
	case req.Resume == nil && (e.Status == http.StatusBadRequest || e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed):
		at.usesOlder.Store(true)
		limited, cancel := context.WithTimeout(ctx, olderTimeout)
		defer cancel()
		c, failed := o.open(limited, at, req)
		if failed == nil {
			return c, nil
		}
		at.usesOlder.Store(false)
		if failed.Status == 0 && errors.Is(limited.Err(), context.DeadlineExceeded) { // it may be an older server
			e.Detail, e.Remedy = e.Detail+"; over HTTP+SSE: "+failed.Detail, ""
		}
	}
	return nil, e
}

// errSilent is why a handshake ended whose first request was ignored.
var errSilent = errors.New("the server does not answer server/discover")

// open opens a session. A server that ignores server/discover is tried again in the old way, and remembered.
func (o *opener) open(ctx context.Context, at *endpoint, req attempt) (*conn, *mcpbridge.Error) {
	c, e := o.shakeHands(ctx, at, req)
	if e != nil && ctx.Err() == nil && errors.Is(e, errSilent) && at.version(req.Resume) == "" {
		at.setLegacy()
		return o.shakeHands(ctx, at, req)
	}
	return c, e
}

// shakeHands opens a session with one handshake.
func (o *opener) shakeHands(ctx context.Context, at *endpoint, req attempt) (*conn, *mcpbridge.Error) {
	connecting, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	c := o.prepare(ctx, at, req)
	ex := c.newExchange(c.Cut)
	ex.WithValues(ctx)
	c.dialing.Store(&handshake{abort, ex})

	err := o.connect(connecting, c, req)
	if err == nil {
		return c, nil
	}
	e := c.explainDial(ctx, context.Cause(connecting), ex, err)
	c.discard()
	return nil, e
}

// connect connects a session, and does the handshake.
func (o *opener) connect(connecting context.Context, c *conn, req attempt) error {
	link, err := c.at.transport().Connect(&c.Session)
	if err != nil {
		return err
	}
	c.link = link
	stop := context.AfterFunc(connecting, c.giveUp)
	defer stop()
	go c.abortIfSilent(connecting)

	version := c.at.version(req.Resume)
	c.cs, err = c.client.Connect(connectContext{c.Cut, c}, link.SDK(), &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return err
	}
	if req.Resume == nil && req.Answered != nil {
		req.Answered()
	}
	link.AwaitStream(connecting)
	if !stop() {
		return connecting.Err() // it was cut when it had just succeeded
	}
	c.info.Server = c.cs.InitializeResult()
	c.info.Stateless = c.isResumable() && !c.hasID()
	c.opened()
	if ended := link.Ended(); ended != nil { // before the owner would have been told
		return &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Detail: redact.Describe(ended, c.secrets()...)}
	}
	if req.Resume == nil && c.Discovery.IsConclusive() {
		c.at.learn(version, c.info.Server)
	}
	return nil
}

// prepare returns a session that is not open.
func (o *opener) prepare(ctx context.Context, at *endpoint, req attempt) *conn {
	c := &conn{at: at, client: o.client, key: req.Key, identity: identityOf(req.credentials), seconds: o.seconds}
	at.acquire()
	c.Cut, c.cancel = context.WithCancel(context.Background())
	c.Session.Resume, c.Credentials, c.Strays, c.Watcher = req.Resume, req.credentials, o.strays, c
	c.Stderr = req.Stderr
	c.Skipped = func(bytes int) {
		c.wroteText.Store(true)
		o.log.noteSkipped(at.Name, bytes)
	}
	c.Panicked = func(p *guard.Panic) { o.log.panicked(at.Name, p) }
	if at.client != nil {
		c.client = at.client
	}
	c.Session.Custom = c.heardOnWire
	c.ConnectTimeout = connectTimeout
	if deadline, ok := ctx.Deadline(); ok {
		c.ConnectTimeout = time.Until(deadline)
	}
	c.IsControl.Store(req.control)
	c.belongsTo(req.DialRequest)
	c.roots.Store(req.Roots)
	c.doubts.about = c
	return c
}

// connectContext is the context that a session is connected with. The SDK keeps its values for
// as long as the session lasts, and this does not keep those of the handshake.
type connectContext struct {
	context.Context
	conn *conn
}

// Value finds what belongs to the handshake until the handshake is over, and then only the
// session.
func (k connectContext) Value(key any) any {
	if h := k.conn.dialing.Load(); h != nil {
		return h.ctx.Value(key)
	}
	if wire.IsExchangeKey(key) {
		return &wire.Exchange{Context: k.Context, Owner: k.conn}
	}
	return k.Context.Value(key)
}

// abortIfSilent ends a handshake whose first request was read, and is ignored. A server
// that takes its time to start has not read it yet.
func (c *conn) abortIfSilent(connecting context.Context) {
	tick := time.NewTicker(discoverTimeout / 5)
	defer tick.Stop()
	for quiet := 0; quiet < 5; {
		select {
		case <-connecting.Done():
			return
		case <-tick.C:
			if c.Discovery.IsUnanswered() && c.link.HasRead() {
				quiet++
			}
		}
	}
	if h := c.dialing.Load(); h != nil {
		h.abort(&mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: errSilent.Error(), Err: errSilent})
	}
}

// giveUp cuts a handshake short.
func (c *conn) giveUp() {
	c.cancel()
	if c.link != nil {
		c.link.Kill()
	}
}
