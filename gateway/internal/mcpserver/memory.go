package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Connect serves one client in this process, by the connection that it returns. Messages are passed on without JSON text
// in between, and the error of a handler reaches the client as the Go error that it is, see [oneCall] for an exception.
//
// The connection may be closed by either side. Close tells the handler that the client has left for good, and returns
// after that. It ends the contexts of requests, but does not wait for them, as [ServeStdio] does not when its context ends.
// What was sent before can still be read, and then comes io.EOF. The SDK closes a connection while it holds a lock of the
// session: Left must not wait for the client.
func Connect(accept func(*Client) Handler) mcp.Connection {
	l := &memoryLink{changed: make(chan struct{}, 1), left: make(chan struct{})}
	l.c = newClient(l, "", accept)
	return l
}

// memoryLink is the link to a client in this process, and the connection of that client.
type memoryLink struct {
	c       *Client
	end     sync.Once
	changed chan struct{} // has an element when a message was sent
	left    chan struct{} // closed when the handler knows that the client has left

	mu    sync.Mutex
	sent  []jsonrpc.Message // which the client has not read
	ended bool              // nothing more is sent
}

// send lets the client read a message. It never waits, so that a client cannot hold up a handler, nor those that wait for
// the handler. What is not read has no bound: the SDK reads until its connection ends, and its own queue has none either.
func (l *memoryLink) send(m *Message, _ json.RawMessage) {
	l.mu.Lock()
	if !l.ended {
		l.sent = append(l.sent, m.toSDK())
	}
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

func (*memoryLink) finish(json.RawMessage) {}

// Read returns the next message to the client. Only one Read may run at a time. While Close runs, Read waits for it: the SDK would
// wait for the lock that it holds meanwhile.
func (l *memoryLink) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if m, err := l.next(); m != nil || err != nil {
			return m, err
		}
		select {
		case <-l.changed:
		case <-l.left:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// next returns the next message, if there is one. The error is io.EOF if there will be none.
func (l *memoryLink) next() (jsonrpc.Message, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		select {
		case <-l.left:
		default:
			return nil, nil
		}
	}
	if len(l.sent) > 0 {
		first := l.sent[0]
		l.sent[0] = nil
		l.sent = l.sent[1:]
		return first, nil
	}
	if l.ended {
		return nil, io.EOF
	}
	return nil, nil
}

// Write takes a message of the client. It returns when a request has passed, so that messages that are written one after
// another stay in order. The error [mcp.ErrConnectionClosed] means that the message was not taken.
func (l *memoryLink) Write(ctx context.Context, m jsonrpc.Message) error {
	select {
	case <-l.c.deaf:
		return mcp.ErrConnectionClosed
	case <-ctx.Done():
		return ctx.Err()
	default:
	}
	l.c.receive(fromSDK(m))
	return nil
}

// Close ends the client, see [Connect].
func (l *memoryLink) Close() error {
	l.end.Do(func() {
		l.mu.Lock()
		l.ended = true
		l.mu.Unlock()
		close(l.c.deaf)
		defer close(l.left)
		l.c.leave(true)
	})
	return nil
}

// SessionID returns "": a client in this process has no session that it could resume.
func (*memoryLink) SessionID() string { return "" }

// toSDK returns a message as one of the SDK. Its error is the cause, if there is one.
func (m *Message) toSDK() jsonrpc.Message {
	id := idToSDK(m.ID)
	switch {
	case m.Method != "":
		return &jsonrpc.Request{ID: id, Method: m.Method, Params: m.Params}
	case m.Cause != nil:
		return &jsonrpc.Response{ID: id, Error: ofOneCall(m.Cause)}
	case m.Error != nil:
		return &jsonrpc.Response{ID: id, Error: m.Error}
	}
	return &jsonrpc.Response{ID: id, Result: m.Result}
}

// fromSDK returns a message of the SDK as one of ours.
func fromSDK(message jsonrpc.Message) *Message {
	m := &Message{}
	switch from := message.(type) {
	case *jsonrpc.Request:
		m.ID, m.Method, m.Params = idFromSDK(from.ID), from.Method, from.Params
		if string(m.Params) == "null" {
			m.Params = nil
		}
	case *jsonrpc.Response:
		m.ID, m.Result = idFromSDK(from.ID), from.Result
		if from.Error != nil {
			said := *rpcError(from.Error)
			said.Message = from.Error.Error() // with that of the errors around it
			m.Error = &said
		}
	}
	return m
}

// idToSDK returns the id of a message, or none if it is neither a string nor an integer.
func idToSDK(id json.RawMessage) jsonrpc.ID {
	var value any
	if json.Unmarshal(id, &value) != nil {
		return jsonrpc.ID{}
	}
	known, _ := jsonrpc.MakeID(value)
	return known
}

// idFromSDK returns the id of a message as JSON, or nil if it has none.
func idFromSDK(id jsonrpc.ID) json.RawMessage {
	switch value := id.Raw().(type) {
	case int64:
		return strconv.AppendInt(nil, value, 10)
	case string:
		text, _ := Encode(value)
		return text
	}
	return nil
}
