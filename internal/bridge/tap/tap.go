// Package tap watches the messages between the SDK and a connection, for transports that carry
// one message after the other: it notes for each operation whether its request was sent and
// answered.
//
// Streamable HTTP has no tap: the SDK tells its own type of connection which protocol was
// agreed on, so that the connection must not be wrapped. There the http.RoundTripper of package
// streamable does this work.
package tap

import (
	"context"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/bridge/redact"
	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
	"github.com/mcpactor/mcpactor/internal/bridge/transport"
	"github.com/mcpactor/mcpactor/internal/bridge/wire"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// errRejected makes the SDK fail the one request and keep the connection: the SDK
// compares errors by their code.
var errRejected = &jsonrpc.Error{Code: -32005, Message: "rejected by transport"}

// Tap is a [transport.Conn] that watches a transport of the SDK.
type Tap struct {
	transport.ConnDefaults
	config  *mcpbridge.Server
	session *transport.Session
	inner   mcp.Transport
	input   *Input   // or nil, see New
	ids     *rpc.IDs // nil where the server has no other client

	writing sync.Mutex // one message at a time, so that its end is known

	mu      sync.Mutex
	pending map[jsonrpc.ID]*wire.Exchange
	closing bool  // we ended the connection ourselves
	ended   error // what ended the connection
}

// New returns a tap on a transport of the SDK. input is the pipe to the server. It is nil where a
// message may have arrived although its Write has failed: then the request counts as sent, and
// its call is not simply repeated. ids replaces the ids of requests, or is nil.
func New(config *mcpbridge.Server, session *transport.Session, inner mcp.Transport, input *Input, ids *rpc.IDs) *Tap {
	return &Tap{config: config, session: session, inner: inner, input: input, ids: ids}
}

// SDK returns the tap, which is a transport of the SDK.
func (t *Tap) SDK() mcp.Transport { return t }

// Secrets returns those of the configuration.
func (t *Tap) Secrets() []string { return redact.OfServer(t.config) }

// Connect connects the transport inside.
func (t *Tap) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.pending = map[jsonrpc.ID]*wire.Exchange{}
	return &connection{c, t}, nil
}

// Forget drops the last request of an exchange.
func (t *Tap) Forget(ex *wire.Exchange) {
	id, _, _ := ex.LastOverPipe()
	t.take(id)
}

// take drops the request with the given id, and returns its exchange.
func (t *Tap) take(id jsonrpc.ID) *wire.Exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	ex := t.pending[id]
	delete(t.pending, id)
	return ex
}

// Ended returns what has ended the connection, or nil.
func (t *Tap) Ended() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// Closing notes that the end, when it comes, is our own doing.
func (t *Tap) Closing() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = true
}

// end notes the end of the connection, and reports it, once, unless it is our own doing.
func (t *Tap) end(err error) {
	t.mu.Lock()
	first := t.ended == nil && !t.closing
	if t.ended == nil {
		t.ended = err
	}
	t.mu.Unlock()
	if first {
		t.session.Watcher.Broke(err)
	}
}

// connection is the SDK's connection with a tap.
type connection struct {
	mcp.Connection
	tap *Tap
}

// Read notes the responses that come in, and the end.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.read(ctx)
	if err != nil {
		c.tap.end(err)
		return nil, err
	}
	switch msg := msg.(type) {
	case *jsonrpc.Response:
		c.tap.session.Discovery.Answered()
		if ex := c.tap.take(msg.ID); ex != nil {
			ex.AnsweredOverPipe(msg.Error)
		}
	case *jsonrpc.Request:
		if msg.Method == rpc.MethodProgress {
			c.tap.session.Progress.Notify(msg.Params)
		}
	}
	return msg, nil
}

// read reads the next message that is for this connection, with the ids of the SDK.
func (c *connection) read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		msg, err := c.Connection.Read(ctx)
		resp, ok := msg.(*jsonrpc.Response)
		if err != nil || !ok || c.tap.ids == nil {
			return msg, err
		}
		if resp.ID, ok = c.tap.ids.OwnID(resp.ID); ok {
			return resp, nil
		}
	}
}

// Write notes what is sent, and where in the pipe it ends. A message that could not be
// written up to its closing brace was not received.
func (c *connection) Write(ctx context.Context, msg jsonrpc.Message) error {
	req, ok := msg.(*jsonrpc.Request)
	c.tap.writing.Lock()
	defer c.tap.writing.Unlock()
	if !ok || !req.IsCall() {
		return c.write(ctx, msg)
	}
	ex := wire.ExchangeOf(ctx)
	ex.SentOverPipe(req.ID)
	c.tap.mu.Lock()
	c.tap.pending[req.ID] = ex
	c.tap.mu.Unlock()
	c.tap.session.Discovery.Asked(req.Method)

	before := c.tap.input.offset()
	err := c.write(ctx, msg)
	whole := c.tap.input.passed(before)
	if whole && c.tap.input != nil {
		ex.WrittenOverPipe(c.tap.input.end.Load())
	}
	if err == nil {
		return nil
	}
	c.tap.take(req.ID)
	if refusal := ex.NotWritten(whole); refusal != nil && refusal.Session == mcpbridge.Alive {
		return fmt.Errorf("%w: %w", refusal, errRejected)
	}
	return err
}

// write writes a message with the ids of the wire.
func (c *connection) write(ctx context.Context, msg jsonrpc.Message) error {
	ids := c.tap.ids
	req, ok := msg.(*jsonrpc.Request)
	if ids == nil || !ok || !req.IsCall() && req.Method != rpc.MethodCancelled {
		return c.Connection.Write(ctx, msg)
	}
	onWire := *req // the SDK keeps the other
	if req.IsCall() {
		onWire.ID = ids.OnWireID(req.ID)
	} else {
		onWire.Params = ids.CancelledParams(req.Params)
	}
	return c.Connection.Write(ctx, &onWire)
}

// Pending returns how many requests wait for a response.
func (t *Tap) Pending() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pending)
}
