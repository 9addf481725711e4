package bridge

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/identity"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/hold"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/stderr"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// connectTimeout bounds the opening of a control if the dial of the first had no deadline.
	connectTimeout = 30 * time.Second
	// olderTimeout bounds the attempt over the older transport after the server has refused the newer one.
	olderTimeout = 5 * time.Second
)

// attempt is a request to dial, with the credentials of its key.
type attempt struct {
	dial.Request
	credentials mcpbridge.Credentials // of the key, or nil
	control     bool                  // the session is opened to settle doubt about another
}

// opener opens sessions.
type opener struct {
	client   *sdkClient
	strays   *atomic.Uint64 // see [dial.Bridge]
	holds    *hold.Book
	log      *bridgeLog
	sdkLog   slog.Handler
	life     context.Context // ends with the bridge
	stderr   *stderr.Writers
	controls controlOpener
}

// dial opens a session. If the server refuses the transport, dial tries the older one.
func (o *opener) dial(ctx context.Context, at *endpoint, req attempt) (*conn, *mcpbridge.Error) {
	c, e := o.open(ctx, at, req)
	switch {
	case e == nil || ctx.Err() != nil:
		return c, e
	case at.older == nil || e.Status < 400:
	case at.usesOlder.Load():
		at.usesOlder.Store(false) // the next dial tries the newest: the server may have been updated
	case req.Resume == nil && (e.Status == http.StatusBadRequest || e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed):
		at.usesOlder.Store(true)
		limited, cancel := context.WithTimeout(ctx, olderTimeout)
		defer cancel()
		c, failed := o.open(limited, at, req)
		if failed == nil {
			return c, nil
		}
		at.usesOlder.Store(false)
		if failed.Status == 0 && errors.Is(limited.Err(), context.DeadlineExceeded) { // the older transport may be the right one
			e.Detail, e.Remedy = e.Detail+"; over HTTP+SSE: "+failed.Detail, ""
		}
	}
	return nil, e
}

// open opens a session. If that fails because of server/discover or initialize, open tries again in another way.
func (o *opener) open(ctx context.Context, at *endpoint, req attempt) (*conn, *mcpbridge.Error) {
	c, again, e := o.shakeHands(ctx, at, req)
	if !again {
		return c, e
	}
	c, _, e = o.shakeHands(ctx, at, req)
	if e != nil && at.URL == "" { // initialize ends the process as well
		at.dialect.unlearn()
	}
	if e != nil { // the reason may not have been that
		at.dialect.setStateless(false)
	}
	return c, e
}

// shakeHands opens a session with one handshake. again is true if that has failed because of server/discover, or initialize.
func (o *opener) shakeHands(ctx context.Context, at *endpoint, req attempt) (c *conn, again bool, e *mcpbridge.Error) {
	connecting, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	c = o.prepare(ctx, at, req)
	ex := c.newExchange(c.Cut)
	ex.WithValues(ctx)
	h := &handshake{ctx: ex, abort: abort, session: &c.Session, server: &at.Server, dialect: at.dialect}
	c.callbacks.dialing.Store(h)

	err := o.connect(connecting, c, h, req)
	if err == nil {
		return c, false, nil
	}
	e = c.explainDial(ctx, context.Cause(connecting), ex, err)
	again = ctx.Err() == nil && (h.failedAtDiscovery(ex, e) || h.refusedInitialize(e))
	left := c.discard()
	timedOut := errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(left, dial.ErrOpening) // nobody has cancelled it
	if left != nil && !timedOut {
		e = dial.LeaveOpen(*e, c)
	}
	return nil, again, e
}

// connect makes the connection of a session, and does the handshake.
func (o *opener) connect(connecting context.Context, c *conn, h *handshake, req attempt) error {
	link, err := c.at.transport().Connect(&c.Session)
	if err != nil {
		return err
	}
	c.link, h.link = link, link
	stop := context.AfterFunc(connecting, c.giveUp)
	defer stop()
	if c.at.URL != "" {
		go h.abortIfSilent(connecting)
	}

	version, record := c.at.version(req.Resume), c.at.record(req.Store)
	c.cs, err = c.client.Connect(connectContext{c.Cut, c}, link.SDK(), &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return err
	}
	if req.Resume == nil && req.Answered != nil {
		req.Answered()
	}
	link.AwaitStream(connecting)
	if !stop() {
		return connecting.Err() // giveUp has cut it in the meantime
	}
	c.info = dial.Info{
		Server: c.cs.InitializeResult(), AsSent: messages.AsSent{Verbatim: h.verbatim}, Odd: h.odd, Declared: c.client.declaredWith(req.Introduction),
		Stateless: link.Resumable() != nil && !c.hasID(),
	}
	if req.Resume != nil {
		c.info.Declared = req.Resume.Declared
	}
	spoken := c.info.Server.ProtocolVersion
	isModern := spoken > protocolLegacy
	c.callbacks.uses = protocol{
		version: spoken, isModern: isModern, followsTasks: isModern && declaresTasks(c.client.capabilities), carriesParams: !isModern && link.CarriesParams(),
	}
	c.callbacks.dialing.Store(nil)
	c.IsOpen.Store(true)
	if ended := link.Ended(); ended != nil { // Broke was called before the session was open, and has not told the owner
		return &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Detail: redact.Describe(ended, c.secrets()...)}
	}
	if req.Resume == nil && c.Discovery.IsConclusive() {
		h.dialect.learn(version, h.gaveUp, c.info.Server)
		h.dialect.remember(connecting, record)
	}
	if h.gaveUp {
		go h.learnLate(context.WithoutCancel(connecting), record)
	}
	return nil
}

// clientFor returns the client for a session that declares capabilities, or those of the bridge if they are nil.
func (o *opener) clientFor(at *endpoint, capabilities *mcp.ClientCapabilities) *sdkClient {
	shared := cmp.Or(at.client, o.client)
	if capabilities == nil {
		capabilities = shared.capabilities
	}
	if identity.OfCapabilities(capabilities) == shared.declared && reflect.DeepEqual(at.ClientInfo, shared.info) {
		return shared
	}
	return cmp.Or(newClientOf(&at.Server, capabilities, o.sdkLog), newClient(nil, capabilities, o.sdkLog))
}

// prepare returns a session that is not open yet.
func (o *opener) prepare(ctx context.Context, at *endpoint, req attempt) *conn {
	c := &conn{at: at, client: o.clientFor(at, req.Capabilities), key: req.Key, controls: o.controls}
	at.acquire()
	c.Cut, c.cancel = context.WithCancel(context.Background())
	c.Session.Resume, c.Credentials, c.Identity, c.Strays, c.Watcher = req.Resume, req.credentials, identityOf(req.credentials), o.strays, c
	c.Life, c.Holds = o.life, o.holds
	if at.Stderr != nil {
		c.Stderr = func() *stderr.Writer { return o.stderr.Open(req.Key, at.Stderr) }
	}
	c.Skipped = func(bytes int) {
		c.wroteText.Store(true)
		o.log.noteSkipped(at.Name, bytes)
	}
	c.Panicked = func(p *guard.Panic) { o.log.panicked(at.Name, "handler of an in-memory server", p) }
	c.Session.Custom = c.callbacks.heardOnWire
	c.ConnectTimeout = connectTimeout
	if deadline, ok := ctx.Deadline(); ok {
		c.ConnectTimeout = time.Until(deadline)
	}
	c.IsControl.Store(req.control)
	c.callbacks.session, c.callbacks.server = &c.Session, &at.Server
	c.callbacks.owner.set(req.Request)
	c.callbacks.roots.Store(req.Roots)
	c.introduction = req.Introduction
	c.doubts.about = c
	return c
}

// connectContext is the context that a session is connected with. The SDK keeps it as long as the session
// lasts. Therefore it drops the context of the handshake when the session is open.
type connectContext struct {
	context.Context
	conn *conn
}

// Value returns the values of the handshake until the session is open, and then an exchange that has only the
// session.
func (k connectContext) Value(key any) any {
	if h := k.conn.callbacks.dialing.Load(); h != nil {
		return h.ctx.Value(key)
	}
	if wire.IsExchangeKey(key) {
		return &wire.Exchange{Context: k.Context, Owner: &k.conn.callbacks}
	}
	return k.Context.Value(key)
}

// giveUp cuts a handshake.
func (c *conn) giveUp() {
	c.cancel()
	if c.link != nil {
		c.link.Kill()
	}
}
