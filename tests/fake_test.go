package tests

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// fake is a dialer with an imaginary server behind it, which keeps a counter
// per session and does what it is told. The name of a tool says what a call of
// it does; a suffix "/ro" makes it read-only:
//
//	count   adds one to the session's counter, and returns it
//	hang    runs until it is cancelled, or its connection ends
//	slow    runs for a second
//	stuck   does not heed its context: runs until its connection ends
//	panic   panics
type fake struct {
	mu       sync.Mutex
	sessions map[string]*int // what the server knows
	conns    map[messages.Key]*fakeConn
	runs     map[string]int // call id to executions
	serial   int
	listed   bool // a tools/list has been answered

	// dial decides about dials. nil lets all pass.
	dial func(ctx context.Context, req mcpbridge.DialRequest) error
	// list decides about tools/list. nil lets all pass.
	list  func(ctx context.Context) error
	lists int // how often it was asked for
	// subscribed is called when a resources/subscribe or unsubscribe has reached the
	// server. nil does nothing.
	subscribed func(op messages.Operation)
	// close decides about closes. nil lets all pass.
	close     func(ctx context.Context, key messages.Key) error
	forgetful bool // it knows no session at all
	mute      bool // it answers no ping
}

func newFake() *fake {
	return &fake{sessions: map[string]*int{}, conns: map[messages.Key]*fakeConn{}, runs: map[string]int{}}
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) executions() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.runs)
}

// Dial opens a session, or attaches to one that is known.
func (f *fake) Dial(ctx context.Context, req mcpbridge.DialRequest) (mcpbridge.Conn, error) {
	f.mu.Lock()
	decide := f.dial
	f.mu.Unlock()
	if decide != nil {
		if err := decide(ctx, req); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &fakeConn{f: f, key: req.Key, down: req.Down, broken: make(chan struct{})}
	if req.Resume != nil && f.sessions[req.Resume.SessionID] != nil {
		c.id, c.attached = req.Resume.SessionID, true
	} else {
		f.serial++
		c.id = fmt.Sprint("session-", f.serial)
		f.sessions[c.id] = new(int)
	}
	f.conns[req.Key] = c
	return c, nil
}

// expire makes the server forget the session of a scope.
func (f *fake) expire(scope string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, f.conns[messages.Key{Server: "s", Scope: scope}].id)
}

// sever breaks the connection of a scope. Only told ones notice without a call.
func (f *fake) sever(scope string, told bool) {
	f.mu.Lock()
	c := f.conns[messages.Key{Server: "s", Scope: scope}]
	f.mu.Unlock()
	c.sever(told)
}

func broken(detail string) *mcpbridge.Error {
	return &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Sent: true, Detail: detail}
}

func unavailable(detail string) *mcpbridge.Error {
	return &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: detail}
}

// fakeConn is a connection of the fake.
type fakeConn struct {
	f        *fake
	key      messages.Key
	id       string
	attached bool
	down     func(*mcpbridge.Error)
	broken   chan struct{}
	cut      sync.Once
}

func (c *fakeConn) Do(ctx context.Context, op messages.Operation) (messages.Result, error) {
	select {
	case <-c.broken:
		return nil, &mcpbridge.Error{Class: mcpbridge.NotSent, Session: mcpbridge.Broken, Detail: "the connection is gone"}
	default:
	}
	c.f.mu.Lock()
	state := c.f.sessions[c.id]
	if c.f.forgetful {
		state = nil
	}
	c.f.mu.Unlock()
	if state == nil {
		return nil, &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Sent: true, Detail: "404 Not Found"}
	}
	switch op := op.(type) {
	case *messages.CallTool:
		return c.call(ctx, op, state)
	case *messages.ListTools:
		var decide func(context.Context) error
		c.f.set(func() { decide = c.f.list; c.f.lists++ })
		if decide != nil {
			if err := decide(ctx); err != nil {
				return nil, err
			}
		}
		c.f.set(func() { c.f.listed = true })
		return &messages.ToolList{Result: &mcp.ListToolsResult{}}, nil
	case *messages.Subscribe, *messages.Unsubscribe:
		var done func(messages.Operation)
		c.f.set(func() { done = c.f.subscribed })
		if done != nil {
			done(op)
		}
		return &messages.Ack{}, nil
	case *messages.Ping:
		c.f.mu.Lock()
		mute := c.f.mute
		c.f.mu.Unlock()
		if mute {
			select {
			case <-ctx.Done():
				return nil, &mcpbridge.Error{Class: mcpbridge.Deadline, Sent: true}
			case <-c.broken:
				return nil, broken("connection reset")
			}
		}
		return &messages.Pong{}, nil
	}
	return nil, fmt.Errorf("%T?", op)
}

func (c *fakeConn) call(ctx context.Context, op *messages.CallTool, state *int) (messages.Result, error) {
	id := op.Params.Arguments.(map[string]any)["call"].(string)
	if op.Params.Name != "refuse" {
		c.f.set(func() { c.f.runs[id]++ })
	}
	var cancelled, later <-chan any
	switch name := op.Params.Name; trim(name) {
	case "count":
		var n int
		c.f.set(func() { *state++; n = *state })
		return text(fmt.Sprint(n)), nil
	case "fail":
		return &messages.ToolResult{Result: &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "session not found"}}}}, nil
	case "refuse":
		return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Sent: true, Detail: "unknown tool"}
	case "panic":
		panic("a hook panics")
	case "slow":
		later = after(time.Second)
		cancelled = doneOf(ctx)
	case "hang":
		cancelled = doneOf(ctx)
	case "stuck":
	}
	select {
	case <-later:
		return text("done"), nil
	case <-cancelled:
		return nil, &mcpbridge.Error{Class: mcpbridge.Cancelled, Sent: true}
	case <-c.broken:
		return nil, broken("connection reset")
	}
}

// Hint says of all tools whether they have the suffix, once they were listed.
func (c *fakeConn) Hint(tool string) (safe, known bool) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	return c.f.listed && trim(tool) != tool, c.f.listed
}

func (c *fakeConn) Info() mcpbridge.Info {
	return mcpbridge.Info{Server: &mcp.InitializeResult{}, Attached: c.attached}
}

func (c *fakeConn) Resume() *mcpbridge.Resume { return &mcpbridge.Resume{SessionID: c.id} }

func (c *fakeConn) Close(ctx context.Context) error {
	c.f.mu.Lock()
	decide := c.f.close
	c.f.mu.Unlock()
	var err error
	if decide != nil {
		err = decide(ctx, c.key)
	}
	if err == nil {
		c.f.set(func() { delete(c.f.sessions, c.id) })
	}
	return errors.Join(err, c.Detach(ctx))
}

func (c *fakeConn) Detach(context.Context) error {
	c.cut.Do(func() { close(c.broken) })
	return nil
}

func text(s string) *messages.ToolResult {
	return &messages.ToolResult{Result: &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}}
}

func trim(tool string) string {
	if n := len(tool) - len("/ro"); n > 0 && tool[n:] == "/ro" {
		return tool[:n]
	}
	return tool
}

func after(d time.Duration) <-chan any {
	c := make(chan any, 1)
	time.AfterFunc(d, func() { c <- nil })
	return c
}

func doneOf(ctx context.Context) <-chan any {
	c := make(chan any, 1)
	context.AfterFunc(ctx, func() { c <- nil })
	return c
}

// anyConn returns one of the latest connections of all keys.
func (f *fake) anyConn(pick int) *fakeConn {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(f.conns), func(a, b messages.Key) int { return strings.Compare(a.String(), b.String()) })
	if len(keys) == 0 {
		return nil
	}
	return f.conns[keys[pick%len(keys)]]
}

// expireAny makes the server forget a session.
func (f *fake) expireAny(pick int) {
	if c := f.anyConn(pick); c != nil {
		f.set(func() { delete(f.sessions, c.id) })
	}
}

// severAny breaks a connection.
func (f *fake) severAny(pick int, told bool) {
	if c := f.anyConn(pick); c != nil {
		c.sever(told)
	}
}

// sever breaks the connection, if it is not closed.
func (c *fakeConn) sever(told bool) {
	c.cut.Do(func() {
		close(c.broken)
		if told {
			go c.down(broken("connection reset"))
		}
	})
}
