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

// arguments are the arguments of a tool.
type arguments map[string]any

// call returns a call on server "s".
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

// sentCommand is a command that was sent, with its replies. There must be exactly one.
type sentCommand struct {
	h       *harness
	cmd     messages.Command
	replies chan messages.Reply
}

func (p *sentCommand) SendUserMessage(_ *actor.PID, msg any) {
	p.replies <- actor.UnwrapEnvelopeMessage(msg).(messages.Reply)
}
func (p *sentCommand) SendSystemMessage(*actor.PID, any) {}
func (p *sentCommand) Stop(*actor.PID)                   {}

// send sends a command as an actor would.
func (h *harness) send(cmd messages.Command) *sentCommand {
	p := &sentCommand{h: h, cmd: cmd, replies: make(chan messages.Reply, 10)}
	h.mu.Lock()
	h.pending = append(h.pending, p)
	h.mu.Unlock()
	pid, _ := h.system.ProcessRegistry.Add(p, h.system.ProcessRegistry.NextId())
	h.system.Root.RequestWithCustomSender(h.sup.PID(), cmd, pid)
	return p
}

// reply waits for the reply.
func (p *sentCommand) reply() messages.Reply {
	p.h.t.Helper()
	timer := time.NewTimer(time.Until(p.h.limit))
	defer timer.Stop()
	select {
	case r := <-p.replies:
		p.replies <- r
		return r
	case <-timer.C:
		p.h.t.Fatalf("%T %v was not answered", p.cmd, p.cmd)
		return nil
	}
}

// fails waits for a failure with a code.
func (p *sentCommand) fails(code messages.Code) *messages.Failure {
	p.h.t.Helper()
	f, is := p.reply().(*messages.Failure)
	require.True(p.h.t, is, "%v is no failure", p.reply())
	require.ErrorIs(p.h.t, f, code, "%v", f)
	return f
}

// returns waits for the result of a tool, which may be an error of the tool.
func (p *sentCommand) returns() *messages.ToolResult {
	p.h.t.Helper()
	r, is := p.reply().(*messages.ToolResult)
	require.True(p.h.t, is, "%v", p.reply())
	return r
}

// ok waits for the result of a tool that succeeded, on the session of the given generation.
func (p *sentCommand) ok(generation uint64) *messages.ToolResult {
	p.h.t.Helper()
	r := p.returns()
	require.False(p.h.t, r.Result.IsError, "%+v", r.Result.Content)
	require.Equal(p.h.t, generation, r.Generation)
	return r
}

// ping pings a session of server "s", and returns its generation.
func (h *harness) ping(scope string) uint64 {
	h.t.Helper()
	p := h.send(&messages.Ping{Header: messages.To("s", scope)})
	ack, is := p.reply().(*messages.Ack)
	require.True(h.t, is, "%v", p.reply())
	return ack.Generation
}

// text waits as ok does, and returns the text of the result.
func (p *sentCommand) text(generation uint64) string {
	p.h.t.Helper()
	return text(p.h.t, p.ok(generation))
}

// text returns the text of a result.
func text(t *testing.T, r *messages.ToolResult) string {
	t.Helper()
	require.NotEmpty(t, r.Result.Content)
	content, is := r.Result.Content[0].(*mcp.TextContent)
	require.True(t, is, "%T", r.Result.Content[0])
	return content.Text
}
