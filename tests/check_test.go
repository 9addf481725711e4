package tests

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// check returns the status of a key of server "s".
func (h *harness) check(scope string) *messages.Status {
	h.t.Helper()
	reply := h.send(&messages.Check{ID: "c", Key: messages.Key{Server: "s", Scope: scope}}).reply()
	require.IsType(h.t, &messages.Status{}, reply)
	status := reply.(*messages.Status)
	require.Equal(h.t, "c", status.ID)
	require.Equal(h.t, messages.Key{Server: "s", Scope: scope}, status.Key)
	return status
}

func TestCheckSaysWhatIsKnownOfAKeyAndOpensNothing(t *testing.T) {
	inFakeTime(t, supervisor.Config{DrainTimeout: time.Minute}, func(h *harness) {
		status := h.check("a")
		require.Empty(t, status.State)
		require.Zero(t, status.Generation)
		require.Equal(t, messages.HealthUnknown, status.Health)
		require.Zero(t, h.dials.dialed())
		require.Empty(t, h.inspect().Sessions)

		dialing := make(chan struct{})
		h.server.set(func() {
			h.server.dial = func(context.Context, dial.Request) error { <-dialing; return nil }
		})
		opening := h.send(call("a", "count"))
		synctest.Wait()
		require.Equal(t, messages.StateConnecting, h.check("a").State)
		close(dialing)
		opening.ok()
		require.Equal(t, messages.StateReady, h.check("a").State)
		h.server.expire("a")
		h.send(call("a", "count")).ok()
		status = h.check("a")
		require.Equal(t, messages.StateReady, status.State)
		require.EqualValues(t, 2, status.Generation)
		require.Equal(t, messages.HealthUp, status.Health)
		require.Empty(t, status.Cause)

		hanging := h.send(call("a", "hang"))
		synctest.Wait()
		closing := h.send(&messages.CloseSession{Key: messages.Key{Server: "s", Scope: "a"}})
		require.Equal(t, messages.StateDraining, h.check("a").State)
		h.cancel(hanging)
		closing.reply()
		hanging.fails(messages.CodeCancelled)
		status = h.check("a")
		require.Empty(t, status.State)
		require.EqualValues(t, 2, status.Generation, "it is that of the session that has ended")
	})
}

func TestCheckSaysWhyAKeyIsNotReady(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("up", "count")).ok()
		h.server.set(func() {
			h.server.dial = func(_ context.Context, req dial.Request) error {
				if req.Key.Scope == "own" {
					return &mcpbridge.Error{Class: mcpbridge.Unauthorized, Server: mcpbridge.Present, Detail: "no such user"}
				}
				return unavailableError("connection refused")
			}
		})
		h.send(call("own", "count")).fails(messages.CodeUnauthorized)
		status := h.check("own")
		require.Equal(t, messages.StateBroken, status.State)
		require.Contains(t, status.Cause, "no such user")
		require.Equal(t, h.session("own").Cause, status.Cause)
		require.Equal(t, messages.HealthUp, status.Health)

		waiting := h.send(call("a", "count", within(10*time.Second)))
		time.Sleep(5 * time.Second) // synctest
		status = h.check("a")
		require.Contains(t, []messages.State{messages.StateWaiting, messages.StateConnecting}, status.State)
		require.Equal(t, messages.HealthDown, status.Health)
		require.Contains(t, status.Cause, "connection refused")
		for scope, state := range map[string]messages.State{"new": "", "up": messages.StateReady} {
			status = h.check(scope)
			require.Equal(t, state, status.State)
			require.Equal(t, messages.HealthDown, status.Health)
			require.Equal(t, state == "", status.Cause != "", "a session that is ready works")
			require.Equal(t, state == "", !status.RetryAt.IsZero())
		}
		waiting.fails(messages.CodeUnavailable)
	})
}

// A session that is only checked is idle, and the least recently used one.
func TestCheckIsNoUseOfTheSession(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 2, IdleTimeout: time.Minute}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.send(call("b", "count")).ok()
		h.check("a")
		h.send(call("c", "count")).ok()
		e := awaitEvent(h, func(*messages.SessionEvicted) bool { return true })
		require.Equal(t, "a", e.Key.Scope)
		time.Sleep(50 * time.Second) // synctest
		h.check("b")
		time.Sleep(11 * time.Second)
		require.Empty(t, h.check("b").State)
	})
}

func TestCheckIsCheckedAndMayBeAValue(t *testing.T) {
	pass := func(next actors.Runner) actors.Runner { return next }
	for _, interceptors := range [][]actors.Interceptor{nil, {pass}} {
		inFakeTime(t, supervisor.Config{Interceptors: interceptors}, func(h *harness) {
			h.send(&messages.Check{Key: messages.Key{Server: "s", Scope: "a\nb"}}).fails(messages.CodeInvalid)
			h.send(&messages.Check{Key: messages.Key{Server: "nobody"}}).fails(messages.CodeUnknownServer)
			asValue[*messages.Status](h, messages.Check{Key: messages.Key{Server: "s"}})
			status, err := h.sup.Client().Check(h.t.Context(), "s", "")
			require.NoError(t, err)
			require.Equal(t, &messages.Status{Key: messages.Key{Server: "s", Scope: "default"}, Health: messages.HealthUnknown}, status)
			require.NoError(t, h.sup.Stop(h.t.Context()))
			_, err = h.sup.Client().Check(h.t.Context(), "s", "")
			require.ErrorIs(t, err, messages.CodeClosed)
		})
	}
}
