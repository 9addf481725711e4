package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// fakeServer is an MCP server without a transport, that all members use. Its tools are named after
// what they do; the suffix "/ro" makes a tool read-only:
//
//	count     adds one to the session's counter, and returns it
//	hang      runs until it is cancelled, or its connection ends
//	deaf      runs for 20 seconds, and so does closing its connection meanwhile
//	slow      runs for a second
//	big       returns as many bytes as "size" says
//	progress  reports progress three times, or as often as "times" says
//	open      mints a handle
//	close     releases the handle "id"
//	elicit    asks the user a question that is longer by "size" bytes, and returns the answer
type fakeServer struct {
	mu       sync.Mutex
	sessions map[string]*int // the counters of sessions, by id
	open     map[messages.Key]map[*fakeConn]bool
	runs     map[string]int // executions, by call id
	serial   int
	dials    int
	errs     []error
	handles  map[string]bool // that are open
	unstable bool            // a key may have two sessions
	ordered  []string        // the ids of the operations that must keep their order
}

func newFakeServer() *fakeServer {
	return &fakeServer{sessions: map[string]*int{}, open: map[messages.Key]map[*fakeConn]bool{}, runs: map[string]int{}, handles: map[string]bool{}}
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

// openOf returns how many connections a key has.
func (f *fakeServer) openOf(scope string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.open[messages.Key{Server: "s", Scope: scope}])
}

func (f *fakeServer) violations() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	errs := f.errs
	for key, conns := range f.open {
		if len(conns) > 0 {
			errs = append(errs, fmt.Errorf("%v has %d open connections", key, len(conns)))
		}
	}
	return errs
}

// cutOff breaks the connections of a member whose process has ended.
func (f *fakeServer) cutOff(m *member) {
	f.mu.Lock()
	var all []*fakeConn
	for _, conns := range f.open {
		for c := range conns {
			if c.of == m {
				all = append(all, c)
			}
		}
	}
	f.mu.Unlock()
	for _, c := range all {
		c.Detach(context.Background())
	}
}

// memberDialer is the dialer of a member.
type memberDialer struct {
	*fakeServer
	of *member
}

// Dial resumes the requested session if it is known, and opens a new one otherwise.
func (d *memberDialer) Dial(ctx context.Context, req clusterapi.DialRequest) (clusterapi.Conn, error) {
	select { // a dial takes some time
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
		return nil, &mcpbridge.Error{Class: mcpbridge.Cancelled}
	}
	if d.of.killed.Load() {
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: "the process has ended"}
	}
	f := d.fakeServer
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials++
	c := &fakeConn{server: f, of: d.of, req: req, broken: make(chan struct{})}
	if req.Resume != nil && f.sessions[req.Resume.SessionID] != nil {
		c.id, c.attached = req.Resume.SessionID, true
	} else {
		f.serial++
		c.id = fmt.Sprint("session-", f.serial)
		f.sessions[c.id] = new(int)
	}
	key := req.Key
	if f.open[key] == nil {
		f.open[key] = map[*fakeConn]bool{}
	}
	f.open[key][c] = true
	if len(f.open[key]) > 1 && !f.unstable {
		f.errs = append(f.errs, fmt.Errorf("%v has %d sessions at once, the last on %s", key, len(f.open[key]), d.of.name))
	}
	return c, nil
}

// fakeConn is a connection to the fake server.
type fakeConn struct {
	server   *fakeServer
	of       *member
	req      clusterapi.DialRequest
	id       string
	attached bool
	broken   chan struct{}
	breaking sync.Once
	deafTo   time.Time // guarded by server.mu
}

func (c *fakeConn) Do(ctx context.Context, op messages.Operation) (messages.Result, error) {
	select {
	case <-c.broken:
		return nil, &mcpbridge.Error{Class: mcpbridge.NotSent, Session: mcpbridge.Broken, Detail: "the connection is gone"}
	default:
	}
	var state *int
	if c.server.set(func() { state = c.server.sessions[c.id] }); state == nil {
		return nil, &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Sent: true}
	}
	switch op := op.(type) {
	case *messages.CallTool:
		return c.call(ctx, op, state)
	case *messages.ListTools:
		return &messages.ToolList{Result: &mcp.ListToolsResult{}}, nil
	case *messages.Subscribe, *messages.Unsubscribe:
		c.server.set(func() { c.server.ordered = append(c.server.ordered, op.RequestID()) })
		return &messages.Ack{}, nil
	case *messages.Ping:
		return &messages.Ack{}, nil
	}
	return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: fmt.Sprintf("%T?", op)}
}

func (c *fakeConn) call(ctx context.Context, op *messages.CallTool, state *int) (messages.Result, error) {
	id, _ := op.Params.Arguments.(map[string]any)["call"].(string)
	c.server.set(func() { c.server.runs[id]++ })
	var later <-chan time.Time
	text := "done"
	switch strings.TrimSuffix(op.Params.Name, "/ro") {
	case "count":
		c.server.set(func() { *state++; text = fmt.Sprint(*state) })
		return textResult(text), nil
	case "open":
		c.server.set(func() {
			c.server.serial++
			text = fmt.Sprintf("handle-%016d", c.server.serial)
			c.server.handles[text] = true
		})
		return textResult(text), nil
	case "close":
		handle, _ := op.Params.Arguments.(map[string]any)["id"].(string)
		known := false
		c.server.set(func() { known = c.server.handles[handle]; delete(c.server.handles, handle) })
		result := textResult("closed")
		result.Result.IsError = !known
		return result, nil
	case "big":
		size, _ := op.Params.Arguments.(map[string]any)["size"].(float64)
		return textResult(strings.Repeat("x", int(size))), nil
	case "progress":
		times, _ := op.Params.Arguments.(map[string]any)["times"].(float64)
		for i := range max(3, int(times)) {
			if op.Subscriber == nil {
				break
			}
			c.req.Heard(&messages.Progress{ID: op.ID, Progress: float64(i + 1), Message: strings.Repeat("y", i%3*9000)}, op)
		}
		return textResult(text), nil
	case "update":
		c.req.Heard(&messages.ResourceUpdated{URI: "file:///one"}, nil)
		return textResult(text), nil
	case "elicit":
		size, _ := op.Params.Arguments.(map[string]any)["size"].(float64)
		message := "name?" + strings.Repeat(" ", int(size))
		switch answer := c.req.Ask(ctx, &messages.Elicit{Params: &mcp.ElicitParams{Message: message}}, op).(type) {
		case *messages.Elicited:
			return textResult(fmt.Sprint(answer.Result.Content["name"])), nil
		case *messages.Refusal:
			return textResult("refused: " + answer.Reason), nil
		}
	case "deaf":
		c.server.set(func() { c.deafTo = time.Now().Add(20 * time.Second) })
		time.Sleep(20 * time.Second)
		return textResult(text), nil
	case "slow":
		later = time.After(time.Second)
	case "brief":
		later = time.After(30 * time.Millisecond)
	case "hang":
	}
	select {
	case <-later:
		return textResult(text), nil
	case <-ctx.Done():
		class := mcpbridge.Cancelled
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			class = mcpbridge.Deadline
		}
		return nil, &mcpbridge.Error{Class: class, Sent: true}
	case <-c.broken:
		return nil, &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Sent: true, Detail: "connection reset"}
	}
}

func (c *fakeConn) Hint(tool string) (safe, known bool) { return strings.HasSuffix(tool, "/ro"), true }

func (c *fakeConn) Info() clusterapi.ConnInfo {
	return clusterapi.ConnInfo{Server: &mcp.InitializeResult{}, Attached: c.attached}
}

func (c *fakeConn) Resume() *mcpbridge.Resume {
	return &mcpbridge.Resume{SessionID: c.id, Server: &mcp.InitializeResult{ProtocolVersion: "2025-06-18"}}
}

// Close ends the session.
func (c *fakeConn) Close(ctx context.Context) error {
	var deaf time.Time
	c.server.set(func() { deaf = c.deafTo })
	time.Sleep(time.Until(deaf))
	c.server.set(func() { delete(c.server.sessions, c.id) })
	return c.Detach(ctx)
}

func (c *fakeConn) Detach(context.Context) error {
	c.breaking.Do(func() {
		close(c.broken)
		c.server.set(func() { delete(c.server.open[c.req.Key], c) })
	})
	return nil
}

func textResult(s string) *messages.ToolResult {
	return &messages.ToolResult{Result: &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}}
}
