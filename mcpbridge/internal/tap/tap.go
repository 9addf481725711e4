// Package tap watches the messages between the SDK and a connection, for transports with one
// stream of messages. It notes for each operation whether its request was sent and answered.
//
// Streamable HTTP has no tap: the SDK tells the negotiated protocol version to its own type of connection
// only, so that the connection must not be wrapped. There the http.RoundTripper of package
// streamable does this work.
package tap

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// errRejected makes the SDK fail one request, and keep the connection. The SDK recognizes the error by its code.
var errRejected = &jsonrpc.Error{Code: -32005, Message: "rejected by transport"}

// tornDetail is the text of the error for a call whose response is torn.
const tornDetail = "the answer on stdout is broken: other text was printed into it, or it is no JSON-RPC"

// Tap is a [transport.Conn] that watches a transport of the SDK.
type Tap struct {
	transport.ConnDefaults
	// OnText gets the text that a server writes to a pipe between messages. It does not keep it. It may
	// be set before the connection is used.
	OnText func([]byte)

	config  *mcpbridge.Server
	session *transport.Session
	inner   mcp.Transport
	input   *Input // or nil, see New
	answers wire.Answers
	listens listens

	// writing has an element while a message is written. One message is written at a time, so that the offset of its
	// end is known. writing is no mutex because a write may block, and the others have to be able to give up.
	writing chan struct{}

	mu      sync.Mutex
	pending map[jsonrpc.ID]*wire.Exchange
	closing bool          // the bridge itself ends the connection
	ended   error         // the error that ended the connection
	over    chan struct{} // closed when ended is set
}

// New returns a tap on a transport of the SDK. input is the pipe to the server. It is nil if a message may have arrived
// although its Write has failed: then the request counts as sent.
func New(config *mcpbridge.Server, session *transport.Session, inner mcp.Transport, input *Input) *Tap {
	t := &Tap{
		config: config, session: session, inner: inner, input: input, writing: make(chan struct{}, 1), over: make(chan struct{}),
		pending: map[jsonrpc.ID]*wire.Exchange{},
		answers: wire.Answers{IDs: rpc.NewIDs(session.Strays), Progress: &session.Progress, Custom: session.Custom},
	}
	if config.Verbatim {
		t.answers.Keep = session.Questions.KeepParams
	}
	return t
}

// OverPipe returns a tap on the two pipes of a server. A Read of output returns soon after its Close.
func OverPipe(config *mcpbridge.Server, session *transport.Session, output io.ReadCloser, input *Input) *Tap {
	pipe := &Pipe{Output: output, Input: input, Limit: wire.MaxResult(config)}
	t := New(config, session, pipe, input)
	pipe.Waits = func(id jsonrpc.ID) bool { return t.exchangeOnWire(id) != nil }
	pipe.Unread = t.unread
	pipe.Text = func(text []byte) {
		session.Skipped(len(text))
		if t.OnText != nil {
			t.OnText(text)
		}
	}
	return t
}

// exchangeOnWire returns the exchange whose request waits for a response with an id, or nil.
func (t *Tap) exchangeOnWire(id jsonrpc.ID) *wire.Exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	for own, ex := range t.pending {
		if fmt.Sprint(t.answers.IDs.OnWireID(own).Raw()) == fmt.Sprint(id.Raw()) {
			return ex
		}
	}
	return nil
}

// TooLarge fails the request whose response has the given id on the wire, and is too large. It returns another response in its
// place, or nil if no request waits for one.
func (t *Tap) TooLarge(id jsonrpc.ID) *jsonrpc.Response {
	return t.unread(rpc.Piece{Kind: rpc.TooLarge, ID: id})
}

// unread fails the request whose response is torn or too large.
func (t *Tap) unread(piece rpc.Piece) *jsonrpc.Response {
	ex := t.exchangeOnWire(piece.ID)
	if ex == nil {
		return nil
	}
	e := &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: tornDetail}
	if piece.Kind == rpc.TooLarge {
		e.Detail = wire.TooLarge(t.config)
	}
	ex.Unread(e)
	return &jsonrpc.Response{ID: piece.ID, Error: &jsonrpc.Error{Message: e.Detail}}
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
	return &connection{c, t}, nil
}

// Forget removes the last request of an exchange.
func (t *Tap) Forget(ex *wire.Exchange) {
	id, _, _ := ex.LastOverPipe()
	t.ExchangeFor(id)
}

// ExchangeFor removes the request with an id of the SDK, and returns its exchange.
func (t *Tap) ExchangeFor(id jsonrpc.ID) *wire.Exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	ex := t.pending[id]
	delete(t.pending, id)
	return ex
}

// Ended returns the error that has ended the connection, or nil.
func (t *Tap) Ended() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// endWait is how long the output of a server may take to end after the server has stopped reading.
const endWait = 250 * time.Millisecond

// awaitEnd waits for the end of the output after a write has failed: the output may contain the reason.
func (t *Tap) awaitEnd(ctx context.Context) {
	select {
	case <-t.over:
	case <-time.After(endWait):
	case <-ctx.Done():
	case <-t.session.Cut.Done():
	}
}

// Closing notes that the bridge itself is about to end the connection.
func (t *Tap) Closing() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = true
}

// end notes the end of the connection, and reports it once, unless the bridge itself has ended it.
func (t *Tap) end(err error) {
	t.mu.Lock()
	first := t.ended == nil && !t.closing
	if t.ended == nil {
		t.ended = err
		close(t.over)
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

// Read reads the next message for the SDK, and notes the end.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	if barrier := c.tap.session.Backpressure.Barrier(); barrier != nil {
		return barrier, nil
	}
	for {
		msg, err := c.Connection.Read(ctx)
		if err == nil {
			if use, _ := c.tap.answers.Read(msg, c.tap); use == wire.Stray || use == wire.Unawaited {
				continue
			}
		}
		switch msg := msg.(type) {
		case *jsonrpc.Response:
			c.tap.session.Discovery.Answered()
			c.tap.listens.end(msg.ID)
		case *jsonrpc.Request:
			if msg.Method == rpc.MethodAcknowledged {
				c.tap.acknowledged(msg.Params)
			}
			var admitted bool
			if admitted, err = c.tap.session.Backpressure.Admit(c.tap.session.Cut, msg); err == nil && !admitted {
				continue
			}
		}
		if err != nil {
			c.tap.end(err)
			return nil, err
		}
		return msg, nil
	}
}

// Write writes a message. It returns when the server has answered subscriptions/listen.
func (c *connection) Write(ctx context.Context, msg jsonrpc.Message) error {
	if req, ok := msg.(*jsonrpc.Request); ok && req.Method == rpc.MethodListen {
		return c.listen(ctx, req)
	}
	return c.send(ctx, msg)
}

// listenWait bounds the wait for the answer to subscriptions/listen.
const listenWait = 3 * time.Second

// listen writes subscriptions/listen, and waits until the server has acknowledged or refused it. The SDK does not wait. What changes
// before the server has handled it is announced to nobody.
func (c *connection) listen(ctx context.Context, req *jsonrpc.Request) error {
	t := c.tap
	answered := t.listens.begin(req.ID)
	defer t.listens.end(req.ID)
	if err := c.send(ctx, req); err != nil {
		return err
	}
	select {
	case <-answered:
	case <-time.After(min(listenWait, t.session.ConnectTimeout/3)): // the rest is for the handshake
	case <-t.over:
	case <-t.session.Cut.Done():
	}
	return nil
}

// acknowledged notes the acknowledgement of a subscriptions/listen.
func (t *Tap) acknowledged(params json.RawMessage) {
	if number, own := t.answers.IDs.Number(acknowledged(params)); own {
		id, _ := jsonrpc.MakeID(float64(number))
		t.listens.end(id)
	}
}

// send writes a message. It notes a request, and where in the pipe it ends. A request that was not
// written up to its closing brace was not received.
func (c *connection) send(ctx context.Context, msg jsonrpc.Message) (err error) {
	if resp, ok := msg.(*jsonrpc.Response); ok && c.tap.session.Backpressure.IsBarrier(resp.ID) {
		return nil
	}
	if isPipe := c.tap.input == nil || c.tap.input.Writer != nil; isPipe { // over HTTP+SSE the roundTripper does this
		if resp, ok := msg.(*jsonrpc.Response); ok {
			done := c.tap.session.Backpressure.Answering(resp.ID)
			defer func() { done(err == nil) }()
		}
		select {
		case c.tap.writing <- struct{}{}:
			defer func() { <-c.tap.writing }()
		case <-ctx.Done():
			return ctx.Err()
		case <-c.tap.session.Cut.Done():
			return c.tap.session.Cut.Err()
		}
	}
	req, ok := msg.(*jsonrpc.Request)
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
	err = c.write(ctx, msg)
	whole := c.tap.input.passed(before)
	if whole && c.tap.input != nil {
		ex.WrittenOverPipe(c.tap.input.end.Load())
	}
	if err == nil {
		return nil
	}
	if c.tap.input != nil && c.tap.input.Writer != nil {
		c.tap.awaitEnd(ctx)
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
	onWire := *req // the SDK keeps the original
	if req.IsCall() {
		onWire.ID = ids.OnWireID(req.ID)
		wire.ExchangeOf(ctx).Leaves(func() string { return fmt.Sprint(onWire.ID.Raw()) })
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
