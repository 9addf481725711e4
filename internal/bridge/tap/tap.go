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
	"io"
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
	input   *Input // or nil, see New
	answers wire.Answers

	writing sync.Mutex // one message at a time, so that its end is known

	mu      sync.Mutex
	pending map[jsonrpc.ID]*wire.Exchange
	closing bool  // we ended the connection ourselves
	ended   error // what ended the connection
}

// New returns a tap on a transport of the SDK. input is the pipe to the server. It is nil where a
// message may have arrived although its Write has failed: then the request counts as sent, and
// its call is not simply repeated.
func New(config *mcpbridge.Server, session *transport.Session, inner mcp.Transport, input *Input) *Tap {
	return &Tap{
		config: config, session: session, inner: inner, input: input,
		answers: wire.Answers{IDs: rpc.NewIDs(session.Strays), Progress: &session.Progress, Custom: session.Custom},
	}
}

// OverPipe returns a tap on the two pipes of a server. A Read of output returns soon after its Close.
func OverPipe(config *mcpbridge.Server, session *transport.Session, output io.ReadCloser, input *Input) *Tap {
	pipe := &Pipe{Output: output, Input: input, Limit: wire.MaxResult(config), SDKLimit: wire.SDKLimit(config)}
	return New(config, session, pipe, input)
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
	t.ExchangeFor(id)
}

// ExchangeFor drops the request with the given id, and returns its exchange: it waits for a response
// no more.
func (t *Tap) ExchangeFor(id jsonrpc.ID) *wire.Exchange {
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

// Read reads the next message that is for this connection, and notes the end.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		msg, err := c.Connection.Read(ctx)
		if err != nil {
			c.tap.end(err)
			return nil, err
		}
		if c.tap.answers.Read(msg, c.tap) == wire.Stray {
			continue
		}
		if _, ok := msg.(*jsonrpc.Response); ok {
			c.tap.session.Discovery.Answered()
		}
		return msg, nil
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
	c.tap.ExchangeFor(req.ID)
	if refusal := ex.NotWritten(whole); refusal != nil && refusal.Session == mcpbridge.Alive {
		return fmt.Errorf("%w: %w", refusal, errRejected)
	}
	return err
}

// write writes a message with the ids of the wire.
func (c *connection) write(ctx context.Context, msg jsonrpc.Message) error {
	ids := c.tap.answers.IDs
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() && req.Method != rpc.MethodCancelled {
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
