package tests

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// F1
func TestCancelledCallIsAnsweredOnceWhereverItIs(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxInFlight: 1}, func(h *harness) {
		running, parked := h.send(call("a", "hang")), h.send(call("a", "count"))
		synctest.Wait()
		h.cancel(parked)
		require.False(t, parked.fails(messages.CodeCancelled).MayHaveRun)
		h.cancel(running)
		require.True(t, running.fails(messages.CodeCancelled).MayHaveRun)
		require.ErrorIs(t, running.fails(messages.CodeCancelled), context.Canceled)
		for range 100 { // at the moment when the result arrives
			p := h.send(call("a", "count"))
			h.cancel(p)
			p.reply()
			h.cancel(p)
		}
		h.send(call("a", "count")).ok()
	})
}

// F2
func TestDeadlinePassesInFlightAndWhileWaiting(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxInFlight: 2}, func(h *harness) {
		for range 2 { // the session is opened, and then it is open
			other := h.send(call("a", "slow"))
			running := h.send(call("a", "hang", within(500*time.Millisecond)))
			synctest.Wait()
			parked := h.send(call("a", "count", within(200*time.Millisecond)))
			began := time.Now()
			f := parked.fails(messages.CodeDeadline)
			require.Equal(t, 200*time.Millisecond, time.Since(began))
			require.ErrorIs(t, f, context.DeadlineExceeded)
			running.fails(messages.CodeDeadline)
			require.Equal(t, 500*time.Millisecond, time.Since(began))
			require.Equal(t, "done", other.text())
		}
		h.send(call("a", "count", within(-time.Second))).fails(messages.CodeDeadline)
	})
}

// F3
func TestAskerThatStopsBeforeItsAnswerHarmsNothing(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.strict = false // the reply to the stopped actor is a dead letter
		asker := h.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if _, ok := c.Message().(*actor.Started); ok {
				c.Request(h.sup.PID(), call("a", "slow"))
			}
		}))
		synctest.Wait()
		h.system.Root.Stop(asker)
		time.Sleep(2 * time.Second) // synctest
		h.send(call("a", "count")).ok()
		require.Zero(t, h.session("a").Outstanding)
		require.NotEmpty(t, h.deadLetters)
		require.NotContains(t, h.deadLetters[0].Message.(*messages.ToolResult).String(), "done")
	})
}

// F4, guarantee 11
func TestFloodOnOneSessionIsBounded(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(&messages.Open{Header: messages.To("s", "a")}).reply()
		began := time.Now()
		var done, first, busy int
		for _, p := range h.calls(10_000, "a", "slow", within(time.Minute)) {
			switch r := p.reply().(type) {
			case *messages.ToolResult:
				if done++; p.answeredAt.Sub(began) == time.Second {
					first++
				}
			case *messages.Failure:
				require.ErrorIs(t, r, messages.CodeBusy)
				require.Contains(t, r.Detail, "MaxInFlight")
				busy++
			}
		}
		require.Equal(t, 64+1024, done)
		require.Equal(t, 64, first)
		require.Equal(t, 10_000-64-1024, busy)
		require.Equal(t, 17*time.Second, time.Since(began), "64 at a time")
	})
}

// F6, F7
func TestBadCommandsAreRefusedByName(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count", on("nobody"))).fails(messages.CodeUnknownServer)
		h.send(&messages.CloseServer{Server: "nobody"}).fails(messages.CodeUnknownServer)
		require.Equal(t, `no server "S" is configured: did you mean "s"?`, h.send(call("a", "count", on("S"))).fails(messages.CodeUnknownServer).Detail)
		require.Contains(t, h.send(call("a", "")).fails(messages.CodeInvalid).Detail, "tool name")
		h.send(&messages.CallTool{Header: messages.To("s", "a")}).fails(messages.CodeInvalid)
		for name, scope := range map[string]string{
			"newline": "a\nlevel=error", "escape": "a\x1b[2J", "long": strings.Repeat("x", 10<<10), "utf-8": "a\xff",
		} {
			f := h.send(call(scope, "count")).fails(messages.CodeInvalid)
			require.Contains(t, f.Detail, "scope", name)
			require.NotContains(t, f.Error(), "\n")
			require.Less(t, len(f.Error()), 200)
			h.send(&messages.CloseScope{Scope: scope}).fails(messages.CodeInvalid)
		}
		require.Zero(t, h.dials.dialed())
	})
}

func TestEmptyScopeIsTheDefaultScope(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		require.Equal(t, "1", h.send(call("", "count")).text())
		require.Equal(t, "2", h.send(call(messages.DefaultScope, "count")).text())
		require.Equal(t, 1, h.send(&messages.CloseScope{}).reply().(*messages.Closed).Sessions)
	})
}

func TestClientSpeaksTheSameMessages(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		c, ctx := h.sup.Client(), h.t.Context()
		args := &mcp.CallToolParams{Name: "count", Arguments: map[string]any{"call": "x"}}
		r, err := c.CallTool(ctx, "s", "a", args)
		require.NoError(t, err)
		require.EqualValues(t, 1, r.Generation)
		_, err = c.ListTools(ctx, "s", "a")
		require.NoError(t, err)
		_, err = c.Ping(ctx, "s", "a")
		require.NoError(t, err)
		_, err = c.Open(ctx, "s", "b")
		require.NoError(t, err)
		snap, err := c.Inspect(ctx)
		require.NoError(t, err)
		require.Len(t, snap.Sessions, 2)

		short, cancel := context.WithTimeout(ctx, time.Second)
		_, err = c.CallTool(short, "s", "a", &mcp.CallToolParams{Name: "hang", Arguments: map[string]any{"call": "y"}})
		require.ErrorIs(t, err, messages.CodeDeadline)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
		short, cancel = context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		_, err = c.CallTool(short, "s", "a", &mcp.CallToolParams{Name: "hang", Arguments: map[string]any{"call": "z"}})
		require.ErrorIs(t, err, context.Canceled)
		_, err = c.Do(short, &messages.Inspect{})
		require.ErrorIs(t, err, messages.CodeCancelled)

		closed, err := c.CloseScope(ctx, "a")
		require.NoError(t, err)
		require.Equal(t, 1, closed.Sessions)
		closed, err = c.CloseServer(ctx, "s")
		require.NoError(t, err)
		require.Equal(t, 1, closed.Sessions)
		_, err = c.CloseAll(ctx)
		require.NoError(t, err)
		require.NoError(t, h.sup.Stop(ctx))
		_, err = c.Ping(ctx, "s", "a")
		require.ErrorIs(t, err, messages.CodeClosed)
	})
}

// A call that an evicted session has handed back can be cancelled.
func TestCancelledCallIsCancelledOnItsWayToTheNextSession(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 1, MaxInFlight: 1}, func(h *harness) {
		for range 200 {
			first, second := h.send(call("a", "slow")), h.send(call("a", "slow"))
			h.send(&messages.Open{Header: messages.To("s", "b")})
			h.cancel(first)
			h.cancel(second)
			for _, p := range []*sentCommand{first, second} {
				p.fails(messages.CodeCancelled)
			}
			h.send(&messages.CloseAll{}).reply()
		}
	})
}
