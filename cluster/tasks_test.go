package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/taskserver"
)

// A call that is found again outlives the member that follows its task: the other member follows it, and whoever asks again
// gets the same result. The task was created once.
func TestDurableCallOutlivesItsMember(t *testing.T) {
	tasks := taskserver.New()
	tasks.Poll = 50 * time.Millisecond
	server, store, can := tasks.Process(), new(resume.Memory), &mcp.ClientCapabilities{}
	can.AddExtension(mcpbridge.TasksExtension, nil)
	a, b := startPair(t, func(name string) supervisor.Config {
		return supervisor.Config{
			Servers: []supervisor.Server{{Name: "s", InMemory: server}}, Capabilities: can, Store: &struct{ *resume.Memory }{store}, CallTimeout: time.Minute,
		}
	})
	scope := scopeOn(t, b, "s")
	working := make(chan *messages.TaskChanged, 10)
	defer b.System().EventStream.Unsubscribe(b.System().EventStream.Subscribe(func(event any) {
		if e, is := event.(*messages.TaskChanged); is && e.Message != "" {
			working <- e
		}
	}))
	report := &messages.CallTool{Header: messages.To("s", scope), Durable: true, Params: &mcp.CallToolParams{
		Name: "work", Arguments: map[string]any{"call": "report", "seconds": 2},
	}}
	report.ID = "report"
	first := make(chan error, 1)
	go func() {
		_, err := a.Client().Do(context.Background(), report)
		first <- err
	}()
	require.Equal(t, "b", (<-working).Supervisor)
	require.NoError(t, b.Stop(t.Context()))
	require.NoError(t, <-first, "it moves with its key")
	again, err := a.Client().Do(t.Context(), report)
	require.NoError(t, err)
	require.Equal(t, "worked", text(again.(*messages.ToolResult)))
	require.Equal(t, "a", again.(*messages.ToolResult).Supervisor)
	require.Equal(t, 1, tasks.Runs()["report"])
	require.Empty(t, tasks.Cancelled())
	require.Empty(t, tasks.Wrong())
}
