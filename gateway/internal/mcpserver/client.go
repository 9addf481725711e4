// Package mcpserver is the server's side of MCP, over stdio, over streamable HTTP and in this process, for what passes
// messages on: parameters and results stay as they came, where the SDK would drop what it does not know. It speaks JSON-RPC
// with any number of clients, runs their requests, cancels them, and asks clients. What a request means is left to a [Handler].
package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Handler serves one client. Its methods may be called at the same time.
type Handler interface {
	// Handle returns the result of a request, except for ping. An error that is a *[jsonrpc.Error] is passed on as it is. The next
	// message of the client is taken when the request has passed, see [Request.Pass].
	Handle(r *Request) (any, error)
	// Notified takes a notification, except for that of a cancellation. It must not wait for anything.
	Notified(m *Message)
	// Left is called once, when the client has left and its context has ended. It has not left for good if it may return, see
	// [HTTP.Return].
	Left(forGood bool)
}

// Client is a client that is connected. Its methods may be called from any goroutine.
type Client struct {
	// ID is the id of the session of a client over HTTP, which is a secret. It is empty for other clients.
	ID string
	// Scope is the scope that a client over HTTP asks for with the token, or empty. Others may ask for the same one.
	Scope string
	// Principal identifies who sends stateless requests over HTTP, see [HTTP.ClientHeader]. It is empty for other clients.
	Principal string
	// Context ends when the client leaves.
	Context   context.Context
	end       context.CancelFunc
	handler   Handler
	link      link
	deaf      chan struct{}  // closed when the client can say nothing more
	questions string         // the ids of questions begin with it, in this process only
	speaksAll bool           // it may send stateless requests as well
	hold      func() func()  // see Hold; or nil
	serial    atomic.Uint64  // of questions
	requests  sync.WaitGroup // that have no response
	workers   workers        // run them

	mu      sync.Mutex
	running map[string]*Request      // by the id of the client
	asked   map[string]chan *Message // questions to the client, by our id
	opening bool                     // initialize has no response
	held    []func()                 // take what has come since initialize
}

// link carries messages to a client. Its methods may be called from any goroutine.
type link interface {
	// send sends a message. of is the id of the request of the client that it belongs to, or nil: over HTTP, the message
	// goes where the response goes.
	send(m *Message, of json.RawMessage)
	// finish says that a request gets no response, because the client has cancelled it.
	finish(of json.RawMessage)
}

// Request is a request of a client that has no response yet.
type Request struct {
	*Message
	// Context ends with the request.
	Context   context.Context
	cancel    context.CancelFunc
	cancelled atomic.Bool // by the client
	opens     bool        // other messages wait for its response

	// Headers are those of a stateless request over HTTP, or nil.
	Headers http.Header
	// original is the id that the client has given to a stateless request over HTTP, where ID is unique. Others have none.
	original json.RawMessage
	// connection ends when the client ends a stateless request over HTTP; nil for others.
	connection context.Context

	passed chan struct{} // closed by Pass
	pass   sync.Once

	from *Request                // see Detach
	at   atomic.Pointer[Request] // see Attach
}

// Detach returns the request for a handler that goes on when r is over: its context is ctx, and its message may be another one. What
// is sent for it goes where the response to r goes.
func (r *Request) Detach(ctx context.Context, m *Message) *Request {
	return &Request{Message: m, Context: ctx, Headers: r.Headers, from: r}
}

// Attach makes what is sent for a detached request go where the response to another request goes, or with nil nowhere.
func (r *Request) Attach(to *Request) {
	if to == nil {
		to = nowhere
	}
	r.at.Store(to)
}

// nowhere is what a request is attached to whose client waits for nothing.
var nowhere = new(Request)

// Current returns the request of the client to which a request belongs now, or nil if that has its response.
func (r *Request) Current() *Request {
	switch to := r.at.Load(); to {
	case nil:
	case nowhere:
		return nil
	default:
		return to
	}
	if r.from != nil {
		return r.from
	}
	return r
}

// PublicID returns the id that the client has given to a request.
func (r *Request) PublicID() json.RawMessage {
	if r.original != nil {
		return r.original
	}
	return r.ID
}

// idOf returns the id of the request that a message belongs to, or nil.
func idOf(r *Request) json.RawMessage {
	if r == nil {
		return nil
	}
	if r = r.Current(); r == nil {
		return nil
	}
	return r.ID
}

// Pass lets the next message of the client be taken: over stdio the next one, over HTTP the next one of a batch, and in this process the
// next one of the goroutine that has written it. Until then, the order of messages is that of the client. A handler calls it before it
// waits for anything. A request that was handled has passed.
func (r *Request) Pass() {
	if r.from != nil {
		r.from.Pass()
		return
	}
	r.pass.Do(func() { close(r.passed) })
}

// newClient returns a client, for which accept makes the handler.
func newClient(l link, id string, accept func(*Client) Handler) *Client {
	c := &Client{
		ID: id, link: l, deaf: make(chan struct{}), questions: `"` + questionPrefix + rand.Text()[:10] + "-",
		running: map[string]*Request{}, asked: map[string]chan *Message{},
	}
	c.Context, c.end = context.WithCancel(context.Background())
	c.workers = workers{ended: c.Context.Done(), next: make(chan func())}
	c.handler = accept(c)
	return c
}

// Hold keeps the client, which may be silent meanwhile, until release is called.
func (c *Client) Hold() (release func()) {
	if c.hold == nil {
		return func() {}
	}
	return c.hold()
}

// leave ends the client. It is called once.
func (c *Client) leave(forGood bool) {
	c.end()
	c.handler.Left(forGood)
}

// receive takes a message of the client, and returns when a request has passed. What a client sends without waiting for the response to
// initialize is taken after it.
func (c *Client) receive(m *Message) { c.receiveAs(m, nil) }

// receiveAs is receive for a message of a stateless request, which is r.
func (c *Client) receiveAs(m *Message, r *Request) {
	c.mu.Lock()
	hold := c.opening && m.Method != "" && m.Method != "ping"
	if hold {
		c.held = append(c.held, func() { c.take(m, r) })
	}
	c.mu.Unlock()
	if !hold {
		c.take(m, r)
	}
}

// release takes what has come since initialize, in that order.
func (c *Client) release() {
	for {
		c.mu.Lock()
		if len(c.held) == 0 {
			c.opening = false
			c.mu.Unlock()
			return
		}
		next := c.held[0]
		c.held = c.held[1:]
		c.mu.Unlock()
		next()
	}
}

// take takes a message of the client, and returns when a request has passed.
func (c *Client) take(m *Message, r *Request) {
	switch {
	case m.isRequest():
		if r == nil {
			r = &Request{Message: m}
		}
		r.passed = make(chan struct{})
		c.mu.Lock()
		isRunning := c.running[string(m.ID)] != nil
		if !isRunning {
			r.Context, r.cancel = context.WithCancel(c.Context)
			c.running[string(m.ID)] = r
			r.opens = m.Method == "initialize" && !c.opening
			c.opening = c.opening || r.opens
		}
		c.mu.Unlock()
		if isRunning { // the response would be taken for that to the other one
			c.link.send(idInUse(), nil)
			return
		}
		stop := func() bool { return true }
		if r.connection != nil {
			stop = context.AfterFunc(r.connection, func() { c.cancel(r.ID) })
		}
		c.requests.Add(1)
		c.workers.run(func() {
			defer c.requests.Done()
			c.respond(r)
			stop()
			if r.opens {
				c.release()
			}
		})
		<-r.passed
	case m.Method == "notifications/cancelled":
		c.cancel(m.Members()["requestId"])
	case m.Method != "":
		c.handler.Notified(m)
	case m.ID != nil:
		c.mu.Lock()
		answer := c.asked[string(m.ID)]
		delete(c.asked, string(m.ID))
		c.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

// cancel cancels a request for the client, which gets no response.
func (c *Client) cancel(id json.RawMessage) {
	c.mu.Lock()
	r := c.running[string(id)]
	c.mu.Unlock()
	if r != nil && r.Method != "initialize" {
		r.cancelled.Store(true)
		r.cancel()
	}
}

// endListens ends the requests that last until the client ends them: it can say nothing more.
func (c *Client) endListens() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.running {
		if r.Method == "subscriptions/listen" {
			r.cancel()
		}
	}
}

// respond runs a request, and sends its response.
func (c *Client) respond(r *Request) {
	defer r.cancel()
	result, err := c.handle(r)
	r.Pass() // the client may read no response before it has sent more
	c.mu.Lock()
	delete(c.running, string(r.ID))
	c.mu.Unlock()
	if r.cancelled.Load() {
		c.link.finish(r.ID)
		return
	}
	response := &Message{ID: r.ID}
	if err == nil {
		response.Result, err = encoded(result)
	}
	if err != nil {
		response.Result, response.Error, response.Cause = nil, rpcError(err), err
	}
	c.link.send(response, r.ID)
}

// handle returns the result of a request.
func (c *Client) handle(r *Request) (any, error) {
	if len(r.Params) > 0 && r.Params[0] != '{' {
		return nil, Invalid("params: must be an object")
	}
	var refused error
	switch isStateless := r.IsStateless() && (r.Method != "initialize" || c.speaksAll); {
	case r.Method == "ping" && !isStateless:
		return struct{}{}, nil
	case isStateless && c.speaksAll:
		refused = checkEnvelope(r.Message)
	case isStateless:
		refused = refuseStateless(r.Message)
	}
	if refused != nil {
		return nil, refused
	}
	return c.handler.Handle(r)
}

// errDeaf is the error of a question that the client cannot answer.
var errDeaf = errors.New("the client cannot answer: its input has ended")

// questionPrefix begins the ids of questions.
const questionPrefix = "mcpactor-"

// answersAnother reports whether a message answers a question of an earlier process.
func (c *Client) answersAnother(m *Message) bool {
	return m.Method == "" && strings.HasPrefix(string(m.ID), `"`+questionPrefix) && !strings.HasPrefix(string(m.ID), c.questions)
}

// rpcError returns the error of a response.
func rpcError(err error) *jsonrpc.Error {
	var said *jsonrpc.Error
	if errors.As(err, &said) {
		return said
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// Notify sends a notification, with params unless they are null. It belongs to a request of the client, or to none.
func (c *Client) Notify(method string, params any, of *Request) {
	if of != nil && of.Current() == nil {
		return
	}
	data, err := encoded(params)
	if err != nil {
		return
	}
	if string(data) == "null" {
		data = nil
	}
	c.link.send(&Message{Method: method, Params: data}, idOf(of))
}

// Ask sends a request to the client, for a request of the client or for none, and returns the result. The end of ctx withdraws
// the question.
func (c *Client) Ask(ctx context.Context, method string, params json.RawMessage, of *Request) (json.RawMessage, error) {
	id := json.RawMessage(c.questions + strconv.FormatUint(c.serial.Add(1), 10) + `"`)
	answered := make(chan *Message, 1)
	c.mu.Lock()
	c.asked[string(id)] = answered
	c.mu.Unlock()
	c.link.send(&Message{ID: id, Method: method, Params: params}, idOf(of))
	select {
	case answer := <-answered:
		if answer.Error != nil {
			return nil, answer.Error
		}
		return answer.Result, nil
	case <-c.deaf:
		return nil, errDeaf
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.asked, string(id))
		c.mu.Unlock()
		c.Notify("notifications/cancelled", map[string]any{"requestId": id, "reason": "the question was withdrawn"}, of)
		return nil, context.Cause(ctx)
	}
}
