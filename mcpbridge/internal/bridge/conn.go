package bridge

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// cleanupTimeout bounds what has to be cleaned up after a dial that failed.
const cleanupTimeout = time.Second

// conn is the [mcpbridge.Conn] over every transport.
type conn struct {
	transport.Session
	at     *endpoint
	leave  sync.Once // for the release of at
	client *sdkClient
	link   transport.Conn     // nil if Connect of the transport has failed
	cs     *mcp.ClientSession // nil until the handshake has succeeded
	info   mcpbridge.Info     // read-only once the session is open

	key      messages.Key
	identity string // of the owner of the credentials
	owner    atomic.Pointer[owner]
	begun    atomic.Uint64 // how many operations have begun
	result   atomic.Uint64 // the number of the last one that had a result
	doubts   doubts
	seconds  seconds

	discovery discovery
	record    *record // of the dialect

	wroteText atomic.Bool // the server has written text that is no message

	asked atomic.Int32 // requests of the server that are not answered yet
	roots atomic.Pointer[messages.SetRoots]

	mu    sync.Mutex
	hints map[string]bool // by tool: whether it may run twice; nil: not listed yet
	edits int             // how often the server has said that the tools have changed
	level string          // the log level that requests name, for protocol 2026-07-28; or empty

	cancel  context.CancelFunc // ends Cut, and with it all waiting
	dialing atomic.Pointer[handshake]

	isClosing atomic.Bool // the bridge itself ends the connection
	closing   sync.Once
	closed    chan struct{} // closed when the SDK has closed; made by closing
}

// seconds opens second sessions: see [controls].
type seconds interface {
	open(ctx context.Context, first *conn, p permit) (controlled, *mcpbridge.Error)
	// endFor ends the second session that is kept for a first one.
	endFor(ctx context.Context, first *conn) error
}

// permit is the permit for a second session: see [mcpbridge.DialRequest.Admit].
type permit struct{ opened, ended func() }

// freePermit is for a second session that needs no permit.
var freePermit = permit{func() {}, func() {}}

// owner has the functions of the [mcpbridge.DialRequest] that a session was dialed with.
type owner struct {
	down  func(*mcpbridge.Error)
	admit func(context.Context) (opened, ended func(), err error) // or nil
	heard func(messages.Notification, messages.Operation)         // or nil
	ask   func(context.Context, messages.Request, messages.Operation) messages.Answer
}

// handshake is the state of a session until it is open.
type handshake struct {
	abort context.CancelCauseFunc
	ctx   context.Context // of its requests, with their exchange
}

// belongsTo sets the owner of the session.
func (c *conn) belongsTo(req mcpbridge.DialRequest) {
	c.owner.Store(&owner{req.Down, req.Admit, req.Heard, req.Ask})
}

// reportDown tells the owner that the session has ended by itself.
func (c *conn) reportDown(e *mcpbridge.Error) {
	if o := c.owner.Load(); o != nil && o.down != nil {
		o.down(e)
	}
}

// newExchange returns a new exchange for the session.
func (c *conn) newExchange(ctx context.Context) *wire.Exchange {
	return wire.NewExchange(ctx, c, c.at.URL != "")
}

// isModern reports whether the session has a protocol after 2025-11-25.
func (c *conn) isModern() bool { return c.info.Server.ProtocolVersion > protocolLegacy }

// hasID reports whether the server has given the session an id.
func (c *conn) hasID() bool { return c.cs != nil && c.cs.ID() != "" }

// isResumable reports whether the server keeps the session without its connection.
func (c *conn) isResumable() bool { return c.link.Resumable() != nil }

// hasExpired reports whether the session has expired.
func (c *conn) hasExpired() bool {
	session := c.link.Resumable()
	return session != nil && session.HasExpired()
}

// sessionID returns the id by which the server knows the session, or nothing.
func (c *conn) sessionID() string {
	session := c.link.Resumable()
	if session == nil {
		return ""
	}
	return session.SessionID()
}

// endQuietly ends an expired session on the server.
func (c *conn) endQuietly() {
	if session := c.link.Resumable(); session != nil {
		session.EndQuietly()
	}
}

// Info describes the session.
func (c *conn) Info() mcpbridge.Info { return c.info }

// Resume returns what is needed to resume the session, or nil if it has no id or has expired.
func (c *conn) Resume() *mcpbridge.Resume {
	session := c.link.Resumable()
	if session == nil || !c.hasID() || session.HasExpired() {
		return nil
	}
	id := session.SessionID()
	return &mcpbridge.Resume{
		SessionID: id, Server: c.info.Server, Endpoint: c.at.fingerprint,
		Identity: c.at.identity(id, c.identity), Cookies: session.Cookies(), Declared: c.info.Declared,
	}
}

// Hint reports whether a tool may run twice. See [mcpbridge.Conn].
func (c *conn) Hint(tool string) (safe, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hints[tool], c.hints != nil
}

// toolEdits returns how often the tools have changed.
func (c *conn) toolEdits() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.edits
}

// setHints remembers which tools may run twice. edits is the result of [conn.toolEdits] before the first page of the
// list was requested. If the tools have changed since, parts of the list may be outdated, and it is not used.
func (c *conn) setHints(tools []*mcp.Tool, edits int) {
	hints := make(map[string]bool, len(tools))
	for _, tool := range tools {
		a := tool.Annotations
		other, twice := hints[tool.Name] // which of two tools with one name is called, only the server knows
		hints[tool.Name] = a != nil && (a.ReadOnlyHint || a.IdempotentHint) && (other || !twice)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.edits == edits {
		c.hints = hints
	}
}

// clearHints forgets which tools may run twice: the tools have changed.
func (c *conn) clearHints() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hints = nil
	c.edits++
}

// secrets returns what no error text about the session may contain.
func (c *conn) secrets() []string {
	if c.link == nil {
		return c.at.transport().Secrets()
	}
	return c.link.Secrets()
}

// explain returns what err means. If the server has ended, the error says how.
func (c *conn) explain(ctx context.Context, ex *wire.Exchange, err error) *mcpbridge.Error {
	id := c.cs.ID()
	e := ex.Explain(ctx, err, cmp.Or(ex.As, id), append(c.secrets(), id)...)
	if e.Session == mcpbridge.Broken {
		if e.Class == mcpbridge.Lost && c.link.NeverRead(ex) {
			e.Class = mcpbridge.NotSent
		}
		c.describeEnd(e)
	}
	if e.Class == mcpbridge.Unauthorized || e.Class == mcpbridge.ServerError && e.Status != http.StatusNotImplemented { // the URL is right: the session is open
		e.Remedy = remedyFor(e, &c.at.Server)
	}
	return e
}

// describeEnd writes into an error how the server ended, and reports whether that is known.
func (c *conn) describeEnd(e *mcpbridge.Error) (known bool) {
	detail, quote := c.link.DescribeEnd()
	if detail != "" {
		e.Detail, e.Quote = detail, quote
	}
	return detail != ""
}

// Close ends the session on the server, and then the second one that an inquiry may have opened, whose server may still not
// have answered. Then it ends the transport.
func (c *conn) Close(ctx context.Context) error {
	c.isClosing.Store(true)
	c.doubts.end(ctx)
	c.link.Closing()
	defer c.at.releaseIdle()
	refused := c.link.EndSession(ctx)
	second := c.seconds.endFor(ctx, c)
	return errors.Join(refused, second, c.Detach(ctx))
}

// Detach ends the transport. It ends the calls first, because the SDK would wait for them (go-sdk#1183).
func (c *conn) Detach(ctx context.Context) error {
	c.isClosing.Store(true)
	defer c.leave.Do(c.at.release)
	c.doubts.end(ctx)
	c.link.Closing()
	c.cancel()
	c.closing.Do(func() {
		c.closed = make(chan struct{})
		go func() {
			defer close(c.closed)
			if c.cs != nil {
				c.cs.Close() // its error is about the transport, which is closed below
			}
		}()
	})
	if err := c.link.Close(ctx); err != nil {
		return err
	}
	// All waiting has been cut, so that a short time is enough, even if ctx has ended.
	select {
	case <-c.closed:
		return nil
	case <-time.After(time.Second):
		return errors.New("the session did not let go of its transport")
	}
}

// discard closes what a failed handshake has left. A session that was to be resumed stays on the server, because a later
// dial may resume it. The error is that of a session that the server may still have: Close ends it.
func (c *conn) discard() (left error) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	defer c.leave.Do(c.at.release)
	if c.link == nil {
		c.cancel()
		return nil
	}
	if session := c.link.Resumable(); session != nil {
		left = session.Discard(ctx)
	}
	if c.cs != nil {
		c.Detach(ctx) //nolint:errcheck // the error that led here is the one to report
		return left
	}
	c.cancel()
	c.link.Kill()
	c.link.Close(ctx) //nolint:errcheck // as above
	return left
}
