package tests

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

func TestNameOfASupervisorIsTheIdOfItsPID(t *testing.T) {
	inFakeTime(t, supervisor.Config{Name: "rack-7:4242"}, func(h *harness) {
		require.Equal(t, "rack-7:4242", h.pid.Id)
		require.Equal(t, "rack-7:4242", h.send(call("a", "count")).ok().Supervisor)
		require.Equal(t, "rack-7:4242", h.send(call("a", "")).fails(messages.CodeInvalid).Supervisor)
		require.Equal(t, "rack-7:4242", awaitEvent(h, func(*messages.SessionOpened) bool { return true }).Supervisor)
		require.Equal(t, "rack-7:4242", h.session("a").Supervisor)

		again := supervisor.Config{Name: "rack-7:4242", Servers: []mcpbridge.Server{{Name: "s", URL: "http://fake.invalid"}}, Store: new(resume.Memory)}
		_, err := supervisor.Start(h.system, again)
		require.ErrorContains(t, err, `name: an actor of the system has the name "rack-7:4242" already`)
		require.Equal(t, "1", h.send(call("b", "count")).text(), "the first one still runs")

		again.Name = ""
		other, err := supervisor.Start(h.system, again)
		require.NoError(t, err, "the store is free")
		require.NotEqual(t, h.pid.Id, other.PID().Id)
		require.NoError(t, other.Stop(h.t.Context()))

		h.stop()
		again.Name = "rack-7:4242"
		next, err := supervisor.Start(h.system, again)
		require.NoError(t, err, "the name is free after Stop")
		_, err = h.sup.Client().Do(h.t.Context(), call("a", "count"))
		require.ErrorIs(t, err, messages.CodeClosed, "the first one has stopped")
		_, err = next.Client().Do(h.t.Context(), &messages.Inspect{})
		require.NoError(t, err)
		require.NoError(t, next.Stop(h.t.Context()))
	})
}

func TestNameThatIsInvalidIsRefused(t *testing.T) {
	for name, want := range map[string]string{
		strings.Repeat("n", 129): "name: has 129 bytes, at most 128 are allowed",
		"a\xff":                  "name: is not valid UTF-8",
		"a\nb":                   "name: has a character that is not printable",
	} {
		_, err := supervisor.Start(actor.NewActorSystem(quietLog), supervisor.Config{Name: name, Servers: []mcpbridge.Server{{Name: "s", URL: "http://fake.invalid"}}})
		require.ErrorContains(t, err, want)
	}
}

func TestClientOfAPIDDoesWhatThatOfTheSupervisorDoes(t *testing.T) {
	var seen []any
	cfg := withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
		seen = append(seen, ctx.Value(userKey{}))
		return next(ctx, op)
	})
	inFakeTime(t, cfg, func(h *harness) {
		c := supervisor.NewClient(h.system, h.pid)
		params := func(tool string) *mcp.CallToolParams {
			return &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"call": tool}}
		}
		result, err := c.CallTool(context.WithValue(h.t.Context(), userKey{}, "me"), "s", "a", params("count"))
		require.NoError(t, err)
		require.NotEmpty(t, result.ID, "it can be cancelled")
		require.Equal(t, []any{"me"}, seen)
		second, err := c.CallTool(h.t.Context(), "s", "a", params("count"))
		require.NoError(t, err)
		require.NotEqual(t, result.ID, second.ID)

		n, _, err := supervisor.CallToolAs[int](h.t.Context(), c, "s", "a", params("count"))
		require.NoError(t, err)
		require.Equal(t, 3, n)
		require.NoError(t, c.Restart(h.t.Context(), "s", "a"))
		snap, err := c.Inspect(h.t.Context())
		require.NoError(t, err)
		require.Len(t, snap.Sessions, 1)

		began := time.Now()
		ctx, cancel := context.WithTimeout(h.t.Context(), time.Second)
		defer cancel()
		_, err = c.CallTool(ctx, "s", "a", params("hang"))
		require.ErrorIs(t, err, messages.CodeDeadline)
		require.Equal(t, time.Second, time.Since(began))

		ctx, stop := context.WithCancel(h.t.Context())
		time.AfterFunc(time.Second, stop)
		_, err = c.CallTool(ctx, "s", "a", params("hang"))
		require.ErrorIs(t, err, messages.CodeCancelled)
		require.Zero(t, h.session("a").Outstanding, "it was cancelled there")

		h.stop()
		_, err = c.CallTool(h.t.Context(), "s", "a", params("count"))
		require.ErrorIs(t, err, messages.CodeClosed)
		h.executed = nil // these calls are not among those of the harness
	})
}

func TestClientOfNoActorFailsAtOnce(t *testing.T) {
	system := actor.NewActorSystem(quietLog)
	nobody := system.NewLocalPID("nobody")
	c := supervisor.NewClient(system, nobody)
	_, err := c.Open(t.Context(), "s", "a")
	var f *messages.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, messages.CodeClosed, f.Code)
	require.Equal(t, "nobody", f.Supervisor)
	for _, c := range []*supervisor.Client{supervisor.NewClient(nil, nobody), supervisor.NewClient(system, nil)} {
		_, err = c.Open(t.Context(), "s", "a")
		require.ErrorIs(t, err, messages.CodeInvalid)
		_, _, err = supervisor.CallToolAs[string](t.Context(), c, "s", "a", &mcp.CallToolParams{Name: "x"})
		require.ErrorIs(t, err, messages.CodeInvalid)
	}
	system.Shutdown()
}

func TestFuturesOfAClientAreFreedWithIt(t *testing.T) {
	system := actor.NewActorSystem(quietLog)
	defer system.Shutdown()
	futures := make(chan string, 3)
	pid := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if cmd, ok := c.Message().(*messages.Inspect); ok {
			futures <- c.Sender().Id
			c.Respond(&messages.Snapshot{ID: cmd.ID})
		}
	}))
	func() {
		c := supervisor.NewClient(system, pid)
		for range 3 {
			_, err := c.Inspect(t.Context())
			require.NoError(t, err)
		}
	}()
	future := <-futures
	require.Equal(t, future, <-futures, "one is used again")
	require.Eventually(t, func() bool {
		runtime.GC()
		_, there := system.ProcessRegistry.GetLocal(future)
		return !there
	}, 10*time.Second, time.Millisecond)
}
