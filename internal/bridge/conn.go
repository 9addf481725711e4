package bridge

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"

	"github.com/mcpactor/mcpactor/internal/bridge/redact"
)

// conn is the Conn of all transports.
type conn struct {
	at   *endpoint
	cs   *mcp.ClientSession
	info mcpbridge.Info

	key          messages.Key
	connectLimit time.Duration
	owner        atomic.Pointer[sessionOwner] // nil: it has none yet
	second       atomic.Bool                  // it was opened as a control, and is not adopted
	results      atomic.Uint64                // of operations
	doubts       doubts

	asked    atomic.Int32 // requests of the server that are not answered yet
	roots    atomic.Pointer[messages.SetRoots]
	progress progress

	mu    sync.Mutex
	hints map[string]bool // tool to whether it may run twice; nil: not listed yet
	level string          // of the log, for protocol 2026-07-28, or empty

	x    *exchanger // nil but for HTTP
	tap  *tap       // nil for streamable HTTP
	proc *process   // nil but for stdio

	// cut ends whatever the session waits for. It is the means to end the
	// session from outside.
	cut    context.Context
	cancel context.CancelFunc

	dialing atomic.Pointer[handshake] // nil when the session is open
	closing sync.Once
	closed  chan struct{} // closed when the SDK has closed; made by closing
}

// sessionOwner is who is told of what happens to a session: the functions of a [DialRequest].
type sessionOwner struct {
	down  func(*mcpbridge.Error)
	heard func(messages.Notification, messages.Operation) // or nil
	ask   func(context.Context, messages.Request) messages.Answer
}

// belongsTo makes who dials the owner of the session.
func (c *conn) belongsTo(req mcpbridge.DialRequest) {
	c.owner.Store(&sessionOwner{req.Down, req.Heard, req.Ask})
}

// tellDown tells the owner that the session has ended by itself.
func (c *conn) tellDown(e *mcpbridge.Error) {
	if o := c.owner.Load(); o != nil && o.down != nil {
		o.down(e)
	}
}

// handshake is what there is of a session only until it is open.
type handshake struct {
	abort context.CancelCauseFunc // ends it
	ctx   context.Context         // of its requests, with their exchange

	// stream is closed when it is known whether there is a standalone stream; nil
	// where that is not to be waited for.
	stream <-chan struct{}
}

// isOpen reports whether the handshake has succeeded.
func (c *conn) isOpen() bool { return c.dialing.Load() == nil }

// abort ends the handshake, if it is not over, with a cause.
func (c *conn) abort(e *mcpbridge.Error) {
	if h := c.dialing.Load(); h != nil {
		h.abort(e)
	}
}

// Info describes the session.
func (c *conn) Info() mcpbridge.Info { return c.info }

// Resume returns what it takes to attach again.
func (c *conn) Resume() *mcpbridge.Resume {
	if id := c.cs.ID(); id != "" && c.x != nil && !c.x.sse {
		return &mcpbridge.Resume{
			SessionID: id, Server: c.info.Server, Endpoint: c.at.fingerprint,
			Identity: c.at.identity(id, c.x.out.identity), Cookies: c.x.out.cookies.record(),
		}
	}
	return nil
}

// Do runs one operation.
func (c *conn) Do(ctx context.Context, op messages.Operation) (result messages.Result, err error) {
	defer recovered(&err)
	inner, ex := withExchange(c.cut, c)
	ex.values = ctx
	inner, cancel := context.WithCancel(inner)
	stop := context.AfterFunc(ctx, cancel)
	defer func() { stop(); ex.finish(err == nil, cancel) }()
	if err := ctx.Err(); err != nil { // cancel runs beside us, and may come too late
		return nil, c.explain(ctx, ex, err)
	}
	ex.done = inner.Done()
	if c.tap != nil {
		defer func() { c.tap.forget(ex.id) }()
	}
	if o := c.owner.Load(); op.Head().Subscriber != nil && o != nil && o.heard != nil {
		ex.token = c.progress.listen(func(p *mcp.ProgressNotificationParams) {
			o.heard(&messages.Progress{ID: op.RequestID(), Progress: p.Progress, Total: p.Total, Message: p.Message}, op)
		})
		defer c.progress.forget(ex.token)
	}
	result, err = c.run(inner, op)
	if err != nil {
		return nil, c.settle(ctx, op, ex, c.explain(ctx, ex, err))
	}
	c.results.Add(1)
	if c.x != nil && c.x.fresh.Load() {
		c.x.fresh.Store(false)
	}
	if list, ok := result.(*messages.ToolList); ok {
		c.learn(list.Result.Tools)
	}
	return result, nil
}

// Hint reports whether a tool may run twice.
func (c *conn) Hint(tool string) (safe, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hints[tool], c.hints != nil
}

// learn remembers which tools may run twice.
func (c *conn) learn(tools []*mcp.Tool) {
	hints := make(map[string]bool, len(tools))
	for _, tool := range tools {
		if a := tool.Annotations; a != nil {
			hints[tool.Name] = a.ReadOnlyHint || a.IdempotentHint
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hints = hints
}

// unlearn forgets that: the tools have changed.
func (c *conn) unlearn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hints = nil
}

// logLevel returns what requests shall say of it, or "".
func (c *conn) logLevel() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

// explain says what err means, and how the process ended if it did.
func (c *conn) explain(ctx context.Context, ex *exchange, err error) *mcpbridge.Error {
	e := ex.explain(ctx, err, append(c.secrets(), c.cs.ID())...)
	if c.proc != nil && e.Session == mcpbridge.Broken {
		if e.Class == mcpbridge.Lost && !ex.begun && c.proc.neverRead(ex.end) {
			e.Class = mcpbridge.NotSent
		}
		e.Detail, e.Quote = c.obituary()
	}
	return e
}

// secrets returns what no error text of the session may have.
func (c *conn) secrets() []string {
	if c.x != nil {
		return c.x.secrets()
	}
	return redact.OfServer(&c.at.Server)
}

// obituary says how a stdio session ended, and apart from that what the server said
// last: on stderr, or on stdout what made no sense.
func (c *conn) obituary() (text, words string) {
	text, words = c.proc.obituary()
	text = "the server process " + text
	if err := c.tap.nonsense(); err != nil {
		detail := redact.Describe(err, redact.OfServer(&c.at.Server)...)
		if strings.Contains(detail, "maximum line length") { // the SDK has no name for this error
			return text + " (" + tooLarge(&c.at.Server) + ")", words
		}
		text += " (its output is no JSON-RPC)"
		words = strings.TrimSuffix(detail+"; "+words, "; ")
	}
	return text, words
}

// broke returns the error for a connection that ended by itself. It is no caller's.
func (c *conn) broke(err error) *mcpbridge.Error {
	e := &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Detail: redact.Describe(err, c.secrets()...)}
	if c.proc != nil {
		e.Detail, _ = c.obituary()
	}
	return e
}

// Close ends the session on the server, then here.
func (c *conn) Close(ctx context.Context) error {
	if c.tap != nil {
		c.tap.close()
	}
	var refused error
	if c.x != nil {
		refused = c.x.delete(ctx)
	}
	return errors.Join(refused, c.Detach(ctx))
}

// Detach ends the session here.
func (c *conn) Detach(ctx context.Context) error {
	if c.tap != nil {
		c.tap.close()
	}
	c.cancel()
	c.closing.Do(func() {
		c.closed = make(chan struct{})
		go func() {
			defer close(c.closed)
			c.cs.Close() // what it says is of the transport, which is ours
		}()
	})
	if c.proc != nil {
		if err := c.proc.stop(ctx); err != nil {
			return err
		}
	}
	// With everything cut there is nothing left to wait for, so a short time
	// is enough also when ctx has none left.
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-c.closed:
		return nil
	case <-timer.C:
		return errors.New("the session did not let go of its transport")
	}
}

// recovered turns a panic, of a hook or of the SDK, into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = mcpbridge.AsError(guard.New(r))
	}
}
