//go:build real

package real

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// arguments are those of a tool.
type arguments map[string]any

// call makes a call on server "s".
func call(scope, tool string, args arguments, opts ...func(*messages.CallTool)) *messages.CallTool {
	op := &messages.CallTool{Header: messages.To("s", scope), Params: &mcp.CallToolParams{Name: tool}}
	if args != nil {
		op.Params.Arguments = args
	}
	for _, opt := range opts {
		opt(op)
	}
	return op
}

func on(server string) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Key.Server = server }
}

func replay(r messages.Replay) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Replay = r }
}

func named(id string) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.ID = id }
}

func within(d time.Duration) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Deadline = time.Now().Add(d) }
}

// pending is a command that was sent, and its replies: there must be one.
type pending struct {
	w       *world
	cmd     messages.Command
	replies chan messages.Reply
}

func (p *pending) SendUserMessage(_ *actor.PID, msg any) {
	p.replies <- actor.UnwrapEnvelopeMessage(msg).(messages.Reply)
}
func (p *pending) SendSystemMessage(*actor.PID, any) {}
func (p *pending) Stop(*actor.PID)                   {}

// send sends a command as an actor would.
func (w *world) send(cmd messages.Command) *pending {
	p := &pending{w: w, cmd: cmd, replies: make(chan messages.Reply, 10)}
	w.mu.Lock()
	w.pending = append(w.pending, p)
	w.mu.Unlock()
	pid, _ := w.system.ProcessRegistry.Add(p, w.system.ProcessRegistry.NextId())
	w.system.Root.RequestWithCustomSender(w.sup.PID(), cmd, pid)
	return p
}

// reply waits for the reply.
func (p *pending) reply() messages.Reply {
	p.w.t.Helper()
	timer := time.NewTimer(time.Until(p.w.limit))
	defer timer.Stop()
	select {
	case r := <-p.replies:
		p.replies <- r
		return r
	case <-timer.C:
		p.w.t.Fatalf("%T %v was not answered", p.cmd, p.cmd)
		return nil
	}
}

// fails waits for a failure with a code.
func (p *pending) fails(code messages.Code) *messages.Failure {
	p.w.t.Helper()
	f, is := p.reply().(*messages.Failure)
	require.True(p.w.t, is, "%v is no failure", p.reply())
	require.ErrorIs(p.w.t, f, code, "%v", f)
	return f
}

// returns waits for the result of a tool, which may be an error of its own.
func (p *pending) returns() *messages.ToolResult {
	p.w.t.Helper()
	r, is := p.reply().(*messages.ToolResult)
	require.True(p.w.t, is, "%v", p.reply())
	return r
}

// ok waits for the result of a tool that went well, on the session of a
// generation.
func (p *pending) ok(generation uint64) *messages.ToolResult {
	p.w.t.Helper()
	r := p.returns()
	require.False(p.w.t, r.Result.IsError, "%+v", r.Result.Content)
	require.Equal(p.w.t, generation, r.Generation)
	return r
}

// ping asks for a sign of life of a session of server "s", and returns its
// generation.
func (w *world) ping(scope string) uint64 {
	w.t.Helper()
	p := w.send(&messages.Ping{Header: messages.To("s", scope)})
	pong, is := p.reply().(*messages.Pong)
	require.True(w.t, is, "%v", p.reply())
	return pong.Generation
}

// text is ok, and the text of the result.
func (p *pending) text(generation uint64) string {
	p.w.t.Helper()
	return text(p.w.t, p.ok(generation))
}

// text returns the text of a result.
func text(t *testing.T, r *messages.ToolResult) string {
	t.Helper()
	require.NotEmpty(t, r.Result.Content)
	content, is := r.Result.Content[0].(*mcp.TextContent)
	require.True(t, is, "%T", r.Result.Content[0])
	return content.Text
}
