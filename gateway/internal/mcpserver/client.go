// Package mcpserver is the server's side of MCP, over stdio, over streamable HTTP and in this process, for what passes
// messages on: parameters and results stay as they came, where the SDK would drop what it does not know. It speaks JSON-RPC
// with any number of clients, runs their requests, cancels them, and asks clients. What a request means is left to a [Handler].
package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
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
	// Context ends when the client leaves.
	Context   context.Context
	end       context.CancelFunc
	handler   Handler
	link      link
	deaf      chan struct{}  // closed when the client can say nothing more
	questions string         // the ids of questions begin with it, in this process only
	serial    atomic.Uint64  // of questions
	requests  sync.WaitGroup // that have no response

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

	passed chan struct{} // closed by Pass
	pass   sync.Once
}

// Pass lets the next message of the client be taken: over stdio the next one, over HTTP the next one of a batch, and in this process the
// next one of the goroutine that has written it. Until then, the order of messages is that of the client. A handler calls it before it
// waits for anything. A request that was handled has passed.
func (r *Request) Pass() { r.pass.Do(func() { close(r.passed) }) }

// newClient returns a client, for which accept makes the handler.
func newClient(l link, id string, accept func(*Client) Handler) *Client {
	c := &Client{
		ID: id, link: l, deaf: make(chan struct{}), questions: `"` + questionPrefix + rand.Text()[:10] + "-",
		running: map[string]*Request{}, asked: map[string]chan *Message{},
	}
	c.Context, c.end = context.WithCancel(context.Background())
	c.handler = accept(c)
	return c
}

// leave ends the client. It is called once.
func (c *Client) leave(forGood bool) {
	c.end()
	c.handler.Left(forGood)
}

// receive takes a message of the client, and returns when a request has passed. What a client sends without waiting for the response to
// initialize is taken after it.
func (c *Client) receive(m *Message) {
	c.mu.Lock()
	hold := c.opening && m.Method != "" && m.Method != "ping"
	if hold {
		c.held = append(c.held, func() { c.take(m) })
	}
	c.mu.Unlock()
	if !hold {
		c.take(m)
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
func (c *Client) take(m *Message) {
	switch {
	case m.isRequest():
		r := &Request{Message: m, passed: make(chan struct{})}
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
		c.requests.Go(func() {
			c.respond(r)
			if r.opens {
				c.release()
			}
		})
		<-r.passed
	case m.Method == "notifications/cancelled":
		c.mu.Lock()
		r := c.running[string(m.Members()["requestId"])]
		c.mu.Unlock()
		if r != nil && r.Method != "initialize" {
			r.cancelled.Store(true)
			r.cancel()
		}
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
	if r.Method == "ping" {
		return struct{}{}, nil
	}
	if refused := refuseRevision(r.Message); refused != nil && r.Method != "initialize" {
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

// Notify sends a notification, with params unless they are null. It belongs to the request of the client with the id of, or to
// none.
func (c *Client) Notify(method string, params any, of json.RawMessage) {
	data, err := encoded(params)
	if err != nil {
		return
	}
	if string(data) == "null" {
		data = nil
	}
	c.link.send(&Message{Method: method, Params: data}, of)
}

// Ask sends a request to the client, for a request of the client with the id of or for none, and returns the result. The end
// of ctx withdraws the question.
func (c *Client) Ask(ctx context.Context, method string, params, of json.RawMessage) (json.RawMessage, error) {
	id := json.RawMessage(c.questions + strconv.FormatUint(c.serial.Add(1), 10) + `"`)
	answered := make(chan *Message, 1)
	c.mu.Lock()
	c.asked[string(id)] = answered
	c.mu.Unlock()
	c.link.send(&Message{ID: id, Method: method, Params: params}, of)
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
