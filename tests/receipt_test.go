package tests

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

func TestRepliesNameTheTargetTheSupervisorAndTheAttempt(t *testing.T) {
	for _, cfg := range []supervisor.Config{{}, withInterceptors(passing)} {
		inFakeTime(t, cfg, func(h *harness) {
			r := h.send(call("a", "count")).ok()
			require.Equal(t, []any{"count", h.pid.Id, 1, false}, []any{r.Target, r.Supervisor, r.Attempt, r.Replayed})

			h.server.expire("a")
			r = h.send(call("a", "count")).ok()
			require.Equal(t, []any{"count", h.pid.Id, 2, true}, []any{r.Target, r.Supervisor, r.Attempt, r.Replayed})

			ack := h.send(&messages.Subscribe{Header: messages.To("s", "a"), URI: "https://h/x?token=secret"}).reply().(*messages.Ack)
			require.Equal(t, []any{"https://h/x", h.pid.Id, 1}, []any{ack.Target, ack.Supervisor, ack.Attempt})

			f := h.send(call("a", "refuse")).fails(messages.CodeInvalid)
			require.Equal(t, []any{"refuse", h.pid.Id, 1}, []any{f.Target, f.Supervisor, f.Attempt})
			f = h.send(call("a", "count", on("nowhere"))).fails(messages.CodeUnknownServer)
			require.Equal(t, []any{"count", h.pid.Id, 0}, []any{f.Target, f.Supervisor, f.Attempt})
			f = h.send(&messages.CloseServer{Server: "nowhere"}).fails(messages.CodeUnknownServer)
			require.Equal(t, h.pid.Id, f.Supervisor)
			f = h.send(call("a", "count", within(-time.Second))).fails(messages.CodeDeadline)
			require.Equal(t, h.pid.Id, f.Supervisor)

			client := h.sup.Client()
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := client.CallTool(ctx, "s", "a", &mcp.CallToolParams{Name: "count"})
			require.ErrorAs(t, err, &f)
			require.Equal(t, []any{"count", h.pid.Id, 0}, []any{f.Target, f.Supervisor, f.Attempt})

			h.stop()
			f = h.send(call("a", "count")).fails(messages.CodeClosed)
			require.Equal(t, []any{"count", h.pid.Id, 0}, []any{f.Target, f.Supervisor, f.Attempt})
		})
	}
}

// Everything that a program keeps of a session can be written as JSON and read again.
func TestRepliesAndEventsSurviveJSON(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		r := h.send(call("a", "count")).ok()
		data, err := json.Marshal(r)
		require.NoError(t, err)
		var back messages.ToolResult
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, *r, back)

		f := h.send(call("a", "hang", within(time.Second))).fails(messages.CodeDeadline)
		f.RetryAfter = 1500 * time.Millisecond
		data, err = json.Marshal(f)
		require.NoError(t, err)
		require.Contains(t, string(data), `"retryAfter":"1.5s"`)
		var failure messages.Failure
		require.NoError(t, json.Unmarshal(data, &failure))
		failure.Cause = f.Cause
		require.Equal(t, *f, failure)

		opened := awaitEvent(h, func(*messages.SessionOpened) bool { return true })
		data, err = json.Marshal(opened)
		require.NoError(t, err)
		require.Contains(t, string(data), `"elapsed":"0s"`)
		var event messages.SessionOpened
		require.NoError(t, json.Unmarshal(data, &event))
		require.True(t, opened.Time.Equal(event.Time))
		event.Time = opened.Time
		require.Equal(t, *opened, event)
	})
}
