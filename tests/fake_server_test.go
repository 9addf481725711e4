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

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// fakeServer is a dialer and the server that it connects to, without a transport. The
// server keeps a counter for each session. Its tools are named after what they do; the
// suffix "/ro" makes a tool read-only:
//
//	count   adds one to the session's counter, and returns it
//	hang    runs until it is cancelled, or its connection ends
//	slow    runs for a second
//	stuck   does not heed its context: runs until its connection ends
//	panic   panics
//	late    does not run: a second after its connection has ended it says that the session has expired
type fakeServer struct {
	mu       sync.Mutex
	sessions map[string]*int // the counters, by the id of a session that the server knows
	conns    map[messages.Key]*fakeConn
	dialed   map[messages.Key]dial.Request // that the connections were dialed with
	runs     map[string]int                // executions, by call id
	serial   int
	listed   bool // a tools/list was answered

	// dial decides about each dial. If it is nil, all dials succeed.
	dial func(ctx context.Context, req dial.Request) error
	// list decides about each tools/list. If it is nil, all succeed.
	list  func(ctx context.Context) error
	lists int // the number of tools/list requests
	// unsure is how many answers to tools/list do not count, because the tools change meanwhile.
	unsure int
	// onSubscription, if it is not nil, is called for each resources/subscribe and
	// unsubscribe that reaches the server.
	onSubscription func(op messages.Operation)
	// close decides about each close. If it is nil, all closes succeed.
	close     func(ctx context.Context, key messages.Key) error
	prefix    string // of the ids of new sessions
	forgetful bool   // it refuses all sessions as unknown
}

func newFakeServer() *fakeServer {
	return &fakeServer{sessions: map[string]*int{}, conns: map[messages.Key]*fakeConn{}, dialed: map[messages.Key]dial.Request{}, runs: map[string]int{}}
}

func (f *fakeServer) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeServer) executions() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.runs)
}

// Dial resumes the requested session if it is known, and opens a new one otherwise.
func (f *fakeServer) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
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
	c := &fakeConn{server: f, key: req.Key, down: req.Down, broken: make(chan struct{})}
	if req.Resume != nil && f.sessions[req.Resume.SessionID] != nil {
		c.id, c.attached = req.Resume.SessionID, true
	} else {
		f.serial++
		c.id = fmt.Sprint(f.prefix, "session-", f.serial)
		f.sessions[c.id] = new(int)
	}
	f.conns[req.Key] = c
	f.dialed[req.Key] = req
	return c, nil
}

// expire makes the server forget the session of a scope.
func (f *fakeServer) expire(scope string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, f.conns[messages.Key{Server: "s", Scope: scope}].id)
}

// breakConnection breaks the connection of a scope. The session notices that at once if
// told is set, and otherwise at its next call.
func (f *fakeServer) breakConnection(scope string, told bool) {
	f.mu.Lock()
	c := f.conns[messages.Key{Server: "s", Scope: scope}]
	f.mu.Unlock()
	c.breakOff(told)
}

func brokenError(detail string) *mcpbridge.Error {
	return &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Sent: true, Detail: detail}
}

func unavailableError(detail string) *mcpbridge.Error {
	return &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: detail}
}

// fakeConn is a connection to the fake server.
type fakeConn struct {
	server   *fakeServer
	key      messages.Key
	id       string
	attached bool
	down     func(*mcpbridge.Error)
	broken   chan struct{}
	breaking sync.Once
}

func (c *fakeConn) Do(ctx context.Context, op messages.Operation) (messages.Result, error) {
	select {
	case <-c.broken:
		return nil, &mcpbridge.Error{Class: mcpbridge.NotSent, Session: mcpbridge.Broken, Detail: "the connection is gone"}
	default:
	}
	c.server.mu.Lock()
	state := c.server.sessions[c.id]
	if c.server.forgetful {
		state = nil
	}
	c.server.mu.Unlock()
	if state == nil {
		return nil, &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Sent: true, Detail: "404 Not Found"}
	}
	switch op := op.(type) {
	case *messages.CallTool:
		return c.call(ctx, op, state)
	case *messages.ListTools:
		var decide func(context.Context) error
		c.server.set(func() { decide = c.server.list; c.server.lists++ })
		if decide != nil {
			if err := decide(ctx); err != nil {
				return nil, err
			}
		}
		c.server.set(func() { c.server.unsure--; c.server.listed = c.server.unsure < 0 })
		return &messages.ToolList{Result: &mcp.ListToolsResult{}}, nil
	case *messages.Subscribe, *messages.Unsubscribe:
		var done func(messages.Operation)
		c.server.set(func() { done = c.server.onSubscription })
		if done != nil {
			done(op)
		}
		return &messages.Ack{}, nil
	case *messages.Ping:
		return &messages.Ack{}, nil
	}
	return nil, fmt.Errorf("%T?", op)
}

func (c *fakeConn) call(ctx context.Context, op *messages.CallTool, state *int) (messages.Result, error) {
	id := op.Params.Arguments.(map[string]any)["call"].(string)
	if name := op.Params.Name; name != "refuse" && name != "late" {
		c.server.set(func() { c.server.runs[id]++ })
	}
	var cancelled, later <-chan any
	switch name := op.Params.Name; withoutSuffix(name) {
	case "count":
		var n int
		c.server.set(func() { *state++; n = *state })
		return textResult(fmt.Sprint(n)), nil
	case "fail":
		return &messages.ToolResult{Result: &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "session not found"}}}}, nil
	case "refuse":
		return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Sent: true, Detail: "unknown tool"}
	case "panic":
		panic("a hook panics")
	case "late":
		<-c.broken
		time.Sleep(time.Second) // synctest
		return nil, &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Sent: true, Detail: "404 Not Found"}
	case "slow":
		later = afterDelay(time.Second)
		cancelled = whenDone(ctx)
	case "hang":
		cancelled = whenDone(ctx)
	case "stuck":
	}
	select {
	case <-later:
		return textResult("done"), nil
	case <-cancelled:
		return nil, &mcpbridge.Error{Class: mcpbridge.Cancelled, Sent: true}
	case <-c.broken:
		return nil, brokenError("connection reset")
	}
}

// Hint reports whether a tool has the suffix. It is known once the tools were listed.
func (c *fakeConn) Hint(tool string) (safe, known bool) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return c.server.listed && withoutSuffix(tool) != tool, c.server.listed
}

func (c *fakeConn) Info() dial.Info {
	return dial.Info{Server: &mcp.InitializeResult{}, Attached: c.attached}
}

func (c *fakeConn) Resume() *mcpbridge.Resume {
	return &mcpbridge.Resume{SessionID: c.id, Server: &mcp.InitializeResult{ProtocolVersion: "2025-06-18"}}
}

func (c *fakeConn) Close(ctx context.Context) error {
	c.server.mu.Lock()
	decide := c.server.close
	c.server.mu.Unlock()
	var err error
	if decide != nil {
		err = decide(ctx, c.key)
	}
	if err == nil {
		c.server.set(func() { delete(c.server.sessions, c.id) })
	}
	return errors.Join(err, c.Detach(ctx))
}

func (c *fakeConn) Detach(context.Context) error {
	c.breaking.Do(func() { close(c.broken) })
	return nil
}

func textResult(s string) *messages.ToolResult {
	return &messages.ToolResult{Result: &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}}
}

func withoutSuffix(tool string) string {
	if n := len(tool) - len("/ro"); n > 0 && tool[n:] == "/ro" {
		return tool[:n]
	}
	return tool
}

func afterDelay(d time.Duration) <-chan any {
	c := make(chan any, 1)
	time.AfterFunc(d, func() { c <- nil })
	return c
}

func whenDone(ctx context.Context) <-chan any {
	c := make(chan any, 1)
	context.AfterFunc(ctx, func() { c <- nil })
	return c
}

// anyConn returns the latest connection of one of the keys.
func (f *fakeServer) anyConn(pick int) *fakeConn {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(f.conns), func(a, b messages.Key) int { return strings.Compare(a.String(), b.String()) })
	if len(keys) == 0 {
		return nil
	}
	return f.conns[keys[pick%len(keys)]]
}

// expireAny makes the server forget one of the sessions.
func (f *fakeServer) expireAny(pick int) {
	if c := f.anyConn(pick); c != nil {
		f.set(func() { delete(f.sessions, c.id) })
	}
}

// breakAnyConnection breaks one of the connections.
func (f *fakeServer) breakAnyConnection(pick int, told bool) {
	if c := f.anyConn(pick); c != nil {
		c.breakOff(told)
	}
}

// breakOff breaks the connection, unless it is closed.
func (c *fakeConn) breakOff(told bool) {
	c.breaking.Do(func() {
		close(c.broken)
		if told {
			go c.down(brokenError("connection reset"))
		}
	})
}
