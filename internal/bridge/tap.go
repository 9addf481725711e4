package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"

	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
)

// errRejected makes the SDK fail the one request and keep the connection: it
// compares errors by their code.
var errRejected = &jsonrpc.Error{Code: -32005, Message: "rejected by transport"}

// tap sits between the SDK and a connection that is not streamable HTTP, and
// notes for each call whether it was sent and whether it was answered.
//
// Streamable HTTP must not be wrapped: the SDK tells its own connection type
// which protocol was agreed on. There the [exchanger] does this work.
type tap struct {
	mcp.Transport
	down     func(error) // called once, when the connection ended by itself
	seen     *discovery
	progress *progress
	input    *input   // nil for HTTP+SSE
	ids      *rpc.IDs // of its requests; nil in memory, where nobody else is at the other end

	writing sync.Mutex // one message at a time, so that its end is known

	mu      sync.Mutex
	pending map[jsonrpc.ID]*exchange
	closing bool  // we ended it ourselves
	readErr error // what ended it
}

// tapped is the connection of a tap.
type tapped struct {
	mcp.Connection
	*tap
}

// Connect connects the transport inside.
func (t *tap) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.pending = map[jsonrpc.ID]*exchange{}
	return &tapped{c, t}, nil
}

// Read notes the answers that come in, and the end.
func (c *tapped) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.read(ctx)
	if err != nil {
		c.ended(err)
		return nil, err
	}
	switch msg := msg.(type) {
	case *jsonrpc.Response:
		c.seen.answered()
		if ex := c.forget(msg.ID); ex != nil {
			ex.note(func(ex *exchange) { ex.begun = true; ex.answer(msg) })
		}
	case *jsonrpc.Request:
		if msg.Method == rpc.MethodProgress {
			c.progress.hear(msg.Params)
		}
	}
	return msg, nil
}

// read reads the next message that is for this connection, with the ids of the SDK.
func (c *tapped) read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		msg, err := c.Connection.Read(ctx)
		resp, ok := msg.(*jsonrpc.Response)
		if err != nil || !ok || c.ids == nil {
			return msg, err
		}
		if resp.ID, ok = c.ids.OwnID(resp.ID); ok {
			return resp, nil
		}
	}
}

// write writes a message with the ids of the wire.
func (c *tapped) write(ctx context.Context, msg jsonrpc.Message) error {
	req, ok := msg.(*jsonrpc.Request)
	if c.ids == nil || !ok || !req.IsCall() && req.Method != rpc.MethodCancelled {
		return c.Connection.Write(ctx, msg)
	}
	onWire := *req // the SDK keeps the other
	if req.IsCall() {
		onWire.ID = c.ids.OnWireID(req.ID)
	} else {
		onWire.Params = c.ids.CancelledParams(req.Params)
	}
	return c.Connection.Write(ctx, &onWire)
}

// Write notes what is sent, and where in the stream it ends. A message that could not be written up to its closing
// brace was not received.
func (c *tapped) Write(ctx context.Context, msg jsonrpc.Message) error {
	req, ok := msg.(*jsonrpc.Request)
	c.writing.Lock()
	defer c.writing.Unlock()
	if !ok || !req.IsCall() {
		return c.write(ctx, msg)
	}
	ex := exchangeOf(ctx)
	ex.note(func(ex *exchange) { ex.sent, ex.answered, ex.id = true, false, req.ID })
	c.mu.Lock()
	c.pending[req.ID] = ex
	c.mu.Unlock()
	c.seen.asked(req.Method)

	before := c.input.offset()
	err := c.write(ctx, msg)
	passed := c.input.passed(before)
	if passed {
		ex.note(func(ex *exchange) { ex.end = c.input.end.Load() })
	}
	if err == nil {
		return nil
	}
	c.forget(req.ID)
	var refused *mcpbridge.Error
	ex.note(func(ex *exchange) {
		refused = ex.refusal
		ex.sent = passed || refused != nil || ex.onWire // the latter two only over HTTP+SSE
	})
	if refused != nil && refused.Session == mcpbridge.Alive {
		return fmt.Errorf("%w: %w", refused, errRejected)
	}
	return err
}

// forget drops the call with the given id, and returns its exchange.
func (t *tap) forget(id jsonrpc.ID) *exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	ex := t.pending[id]
	delete(t.pending, id)
	return ex
}

// ended notes the end of the connection and tells of it, once, unless it is
// our own doing.
func (t *tap) ended(err error) {
	t.mu.Lock()
	first := t.readErr == nil && !t.closing
	if t.readErr == nil {
		t.readErr = err
	}
	t.mu.Unlock()
	if first {
		t.down(err)
	}
}

// over returns what has ended the connection, or nil.
func (t *tap) over() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.readErr
}

// closed reports whether we have ended it ourselves.
func (t *tap) closed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closing
}

// close says that the end, when it comes, is our own doing.
func (t *tap) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = true
}

// nonsense returns the error of a connection that ended because what it read
// was no JSON-RPC, or nil.
func (t *tap) nonsense() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.readErr; err != nil && !endOfStream(err) {
		return err
	}
	return nil
}

func endOfStream(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || isClosedFile(err)
}

// discovery watches the SDK's first request, server/discover: some servers
// ignore a method that they do not know, which would eat all the time there is
// to connect.
type discovery struct {
	mu      sync.Mutex
	pending bool
	unwell  bool // it was refused for reasons that say nothing of the protocol
	held    int  // it is not the server that is waited for
}

// hold lets no time pass for the server until release is called.
func (d *discovery) hold() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.held--
	}
}

func (d *discovery) asked(method string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = method == rpc.MethodDiscover
}

func (d *discovery) answered() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = false
}

// refused notes a refusal that says nothing of the protocol.
func (d *discovery) refused() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unwell = true
}

// tells reports whether the answer tells which protocols the server speaks.
func (d *discovery) tells() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.unwell
}

func (d *discovery) unanswered() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending && d.held == 0
}
