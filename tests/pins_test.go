package tests

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// pin pins a key of server "s", and checks the reply.
func (h *harness) pin(scope string) {
	h.t.Helper()
	require.Equal(h.t, &messages.Pinned{ID: "p", Key: messages.Key{Server: "s", Scope: scope}, Pinned: true}, h.send(pin("s", scope)).reply())
}

// release releases a key of server "s", and checks the reply.
func (h *harness) release(scope string) {
	h.t.Helper()
	cmd := pin("s", scope)
	cmd.Release = true
	require.Equal(h.t, &messages.Pinned{ID: "p", Key: messages.Key{Server: "s", Scope: scope}}, h.send(cmd).reply())
}

func pin(server, scope string) *messages.Pin {
	return &messages.Pin{ID: "p", Key: messages.Key{Server: server, Scope: scope}}
}

func TestPinnedSessionIsNeitherEvictedNorClosedWhenIdle(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 2, IdleTimeout: time.Minute}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.pin("a")
		h.pin("a") // twice is once
		for i := range 5 {
			h.send(call(fmt.Sprint("b", i), "count")).ok()
		}
		time.Sleep(10 * time.Minute)
		require.True(t, h.session("a").Pinned)
		require.Equal(t, "2", h.send(call("a", "count")).text())
		requireEvents[*messages.SessionEvicted](h, 5)

		h.release("a")
		h.release("a") // which does nothing
		require.False(t, h.session("a").Pinned)
		time.Sleep(50 * time.Second)
		require.True(t, h.isOpen("s", "a")) // the release counts as a use
		time.Sleep(11 * time.Second)
		require.False(t, h.isOpen("s", "a"))
		e := awaitEvent(h, func(e *messages.SessionEvicted) bool { return e.Key.Scope == "a" })
		require.Equal(t, messages.EvictIdle, e.Reason)

		h.pin("c")
		h.release("c")
		for _, scope := range []string{"c", "d", "e"} {
			h.send(call(scope, "count")).ok()
			synctest.Wait() // the registry knows that the call has ended
		}
		e = awaitEvent(h, func(e *messages.SessionEvicted) bool { return e.Key.Scope == "c" })
		require.Equal(t, messages.EvictCap, e.Reason)
	})
}

func TestPinOfAKeyWithoutASessionIsRememberedAndOpensNothing(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 2, IdleTimeout: time.Minute}, func(h *harness) {
		h.pin("a")
		time.Sleep(time.Hour)
		require.Zero(t, h.dials.dialed())
		require.Equal(t, messages.StateWaiting, h.session("a").State)
		require.True(t, h.session("a").Pinned)
		h.send(call("a", "count")).ok()
		for i := range 5 {
			h.send(call(fmt.Sprint("b", i), "count")).ok()
		}
		h.server.expire("a")
		require.EqualValues(t, 2, h.send(call("a", "count")).ok().Generation) // a restart keeps the pin
		for i := range 5 {
			h.send(call(fmt.Sprint("b", i), "count")).ok()
		}
		require.EqualValues(t, 2, h.send(call("a", "count")).ok().Generation)
		h.release("a")
	})
}

func TestWhenAllSlotsArePinnedOtherCallsAreBusyAtOnce(t *testing.T) {
	cfg := tenants(2, supervisor.Config{MaxSessions: 3, Servers: own(supervisor.Limits{MaxSessions: 1})})
	inFakeTime(t, cfg, func(h *harness) {
		open := func(server, scope string) {
			require.IsType(t, &messages.Pinned{}, h.send(pin(server, scope)).reply())
			h.send(call(scope, "count", on(server))).ok()
		}
		busy := func(p *sentCommand, want string) {
			require.Contains(t, p.fails(messages.CodeBusy).Detail, want)
			require.Zero(t, p.took())
		}
		h.send(call("u/0", "count", on("own"))).ok() // is evicted for a pinned one
		open("own", "t/1")
		busy(h.send(call("u/1", "count", on("own"))), "all 1 sessions of the server that may be open are pinned (MaxSessions of the server)")
		busy(h.send(pin("own", "u/1")), "all 1 sessions of the server that may be open are pinned")
		open("s", "t/1")
		busy(h.send(call("t/2", "count")), "all 2 sessions of the tenant that may be open are pinned (MaxSessionsPerTenant)")
		busy(h.send(pin("s", "t/2")), "all 2 sessions of the tenant")
		h.send(call("u/1", "count")).ok()
		h.pin("u/2") // has no slot so far
		h.send(call("u/1", "count")).ok()
		h.send(call("u/2", "count")).ok()
		busy(h.send(call("u/1", "count")), "all 3 sessions that may be open are pinned (MaxSessions)")
		f := h.send(pin("s", "u/1")).fails(messages.CodeBusy)
		require.Equal(t, messages.Key{Server: "s", Scope: "u/1"}, f.Key)
		h.send(call("t/1", "count", on("own"))).ok()

		h.release("u/2")
		h.send(call("u/1", "count")).ok()
		require.Nil(t, h.session("u/2"))
	})
}

func TestCallThatWaitsWhenTheLastSlotIsPinnedWaitsForARelease(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 2}, func(h *harness) {
		h.server.dialsTake(time.Second)
		h.pin("a")
		first, second := h.send(call("a", "count")), h.send(call("b", "count"))
		synctest.Wait()
		early, patient := h.send(call("c", "count", within(10*time.Second))), h.send(call("d", "count"))
		synctest.Wait()
		h.pin("b") // which dials, and could not be evicted yet
		first.ok()
		second.ok()
		require.Contains(t, early.fails(messages.CodeBusy).Detail, "all 2 sessions that may be open are pinned (MaxSessions)")
		require.Equal(t, 10*time.Second, early.took())
		require.False(t, patient.answered())
		h.release("a")
		patient.ok()
		require.Less(t, patient.took(), 12*time.Second)
	})
}

func TestClosingEndsThePin(t *testing.T) {
	for name, cmd := range map[string]messages.Command{
		"scope": &messages.CloseScope{Scope: "a"}, "server": &messages.CloseServer{Server: "s"}, "all": &messages.CloseAll{},
	} {
		for _, opened := range []bool{true, false} {
			t.Run(fmt.Sprint(name, opened), func(t *testing.T) {
				inFakeTime(t, supervisor.Config{MaxSessions: 1}, func(h *harness) {
					h.pin("a")
					want := 0
					if opened {
						h.send(call("a", "count")).ok()
						want = 1
					}
					require.Equal(t, want, h.send(cmd).reply().(*messages.Closed).Sessions)
					require.Empty(t, h.inspect().Sessions)
					h.send(call("a", "count")).ok()
					require.False(t, h.session("a").Pinned)
					h.send(call("b", "count")).ok() // evicts it
				})
			})
		}
	}
}

func TestReloadOfAServerEndsItsPinsAndNoOthers(t *testing.T) {
	inFakeTime(t, supervisor.Config{Servers: own(supervisor.Limits{})}, func(h *harness) {
		h.pin("a")
		require.IsType(t, &messages.Pinned{}, h.send(pin("own", "a")).reply())
		require.IsType(t, &messages.Pinned{}, h.send(pin("own", "b")).reply())
		h.send(call("b", "count", on("own"))).ok()
		h.reload(own(supervisor.Limits{MaxSessions: 1})...) // keeps them, although there are two
		require.Len(t, h.inspect().Sessions, 3)
		require.True(t, h.isOpen("own", "b"))
		h.reload()
		require.Len(t, h.inspect().Sessions, 1)
		require.True(t, h.session("a").Pinned)
		h.send(pin("own", "a")).fails(messages.CodeUnknownServer)
	})
}

func TestPinDuringAnEvictionHoldsForTheSuccessor(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 1}, func(h *harness) {
		slow := h.send(call("a", "slow"))
		synctest.Wait()
		other := h.send(call("b", "count")) // evicts it, which takes a second
		synctest.Wait()
		require.Equal(t, messages.StateDraining, h.session("a").State)
		h.pin("a")
		slow.ok()
		other.ok()
		h.send(call("a", "count")).ok()
		h.send(call("b", "count")).fails(messages.CodeBusy)
		require.True(t, h.session("a").Pinned)
	})
}

func TestPinAndStop(t *testing.T) {
	inFakeTime(t, supervisor.Config{DrainTimeout: 5 * time.Second}, func(h *harness) {
		h.pin("a")
		h.pin("b")
		hanging := h.send(call("b", "hang"))
		synctest.Wait()
		stopped := make(chan error)
		go func() { stopped <- h.sup.Stop(context.Background()) }()
		synctest.Wait()
		h.send(pin("s", "c")).fails(messages.CodeDraining)
		hanging.fails(messages.CodeClosed)
		require.NoError(t, <-stopped)
		h.send(pin("s", "c")).fails(messages.CodeClosed)
		_, err := h.sup.Client().Unpin(h.t.Context(), "s", "a")
		require.ErrorIs(t, err, messages.CodeClosed)
	})
}

func TestPinIsCheckedAndMayBeAValue(t *testing.T) {
	pass := func(next actors.Runner) actors.Runner { return next }
	for _, interceptors := range [][]actors.Interceptor{nil, {pass}} {
		inFakeTime(t, supervisor.Config{Interceptors: interceptors}, func(h *harness) {
			h.send(pin("s", "a\nb")).fails(messages.CodeInvalid)
			h.send(pin("nobody", "a")).fails(messages.CodeUnknownServer)
			asValue[*messages.Pinned](h, messages.Pin{Key: messages.Key{Server: "s"}})
			require.True(t, h.session(messages.DefaultScope).Pinned)
			reply, err := h.sup.Client().Unpin(h.t.Context(), "s", "")
			require.NoError(t, err)
			require.Equal(t, &messages.Pinned{Key: messages.Key{Server: "s", Scope: "default"}}, reply)
			_, err = h.sup.Client().Pin(h.t.Context(), "s", "x")
			require.NoError(t, err)
		})
	}
}

func TestPinnedKeyWhoseServerIsDownIsOpenedWhenItReturns(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 1, IdleTimeout: time.Minute}, func(h *harness) {
		h.pin("a")
		h.server.set(func() {
			h.server.dial = func(context.Context, dial.Request) error { return unavailableError("connection refused") }
		})
		waiting := h.send(call("a", "count", within(time.Hour)))
		time.Sleep(30 * time.Minute)
		require.False(t, waiting.answered())
		h.server.set(func() { h.server.dial = nil })
		waiting.ok()
		require.True(t, h.session("a").Pinned)
	})
}
