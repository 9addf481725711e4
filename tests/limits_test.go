package tests

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// own returns the server "own", which has limits of its own.
func own(l supervisor.Limits) []supervisor.Server {
	return []supervisor.Server{{Name: "own", URL: "http://own.invalid", Limits: l}}
}

// took waits for the reply, and returns how long it took.
func (p *sentCommand) took() time.Duration {
	p.h.t.Helper()
	p.reply()
	return p.answeredAt.Sub(p.sent)
}

// isOpen reports whether a key has a connection.
func (h *harness) isOpen(server, scope string) bool {
	h.t.Helper()
	synctest.Wait()
	for _, s := range h.inspect().Sessions {
		if s.Key == (messages.Key{Server: server, Scope: scope}) {
			return s.State == messages.StateReady
		}
	}
	return false
}

// reload replaces the servers of a supervisor in fake time.
func (h *harness) reload(servers ...supervisor.Server) *messages.Closed {
	h.t.Helper()
	servers = append(servers, mcpbridge.Server{Name: "s", URL: "http://fake.invalid"}, mcpbridge.Server{Name: "other", URL: "http://other.invalid"})
	closed, err := h.sup.Reload(h.t.Context(), servers)
	require.NoError(h.t, err)
	return closed
}

func TestServerHasTimeoutsAndBoundsOfItsOwnAndZeroInherits(t *testing.T) {
	cfg := supervisor.Config{
		CallTimeout: 10 * time.Second, DrainTimeout: 20 * time.Second, IdleTimeout: 5 * time.Minute, MaxInFlight: 2,
		Servers: own(supervisor.Limits{CallTimeout: 2 * time.Second, DrainTimeout: time.Second, IdleTimeout: time.Minute, MaxInFlight: 1, MaxWaiting: 1}),
	}
	inFakeTime(t, cfg, func(h *harness) {
		short, long := h.send(call("a", "hang", on("own"))), h.send(call("a", "hang"))
		h.send(call("a", "hang", on("own"))) // waits
		h.send(call("a", "count", on("own"))).fails(messages.CodeBusy)
		require.Equal(t, "1", h.send(call("a", "count")).text())
		short.fails(messages.CodeDeadline)
		long.fails(messages.CodeDeadline)
		require.Equal(t, 2*time.Second, short.took())
		require.Equal(t, 10*time.Second, long.took())

		hanging, other := h.send(call("a", "hang", on("own"), within(time.Minute))), h.send(call("a", "hang", within(time.Minute)))
		synctest.Wait()
		h.send(&messages.CloseServer{Server: "own"})
		h.send(&messages.CloseServer{Server: "s"})
		hanging.fails(messages.CodeClosed)
		other.fails(messages.CodeClosed)
		require.Equal(t, time.Second, hanging.took())
		require.Equal(t, 20*time.Second, other.took())

		h.send(call("a", "count", on("own"))).ok()
		h.send(call("a", "count")).ok()
		time.Sleep(time.Minute + time.Second)
		require.False(t, h.isOpen("own", "a"))
		require.True(t, h.isOpen("s", "a"))
		time.Sleep(4 * time.Minute)
		require.False(t, h.isOpen("s", "a"))
	})
}

func TestServerBoundsItsDialsByItsOwnLimits(t *testing.T) {
	cfg := supervisor.Config{Servers: own(supervisor.Limits{MaxDials: 1, ConnectTimeout: 3 * time.Second})}
	inFakeTime(t, cfg, func(h *harness) {
		h.server.set(func() {
			h.server.dial = func(context.Context, dial.Request) error { time.Sleep(time.Second); return nil }
		})
		var slow, fast []*sentCommand
		for _, scope := range []string{"a", "b", "c"} {
			slow = append(slow, h.send(call(scope, "count", on("own"))))
			fast = append(fast, h.send(call(scope, "count")))
		}
		var took []time.Duration
		for i := range slow {
			took = append(took, slow[i].took())
			require.Equal(t, time.Second, fast[i].took())
		}
		require.ElementsMatch(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, took)
	})
	inFakeTime(t, cfg, func(h *harness) {
		h.server.set(func() {
			h.server.dial = func(ctx context.Context, _ dial.Request) error {
				<-ctx.Done()
				return unavailableError("it hangs")
			}
		})
		short, long := h.send(call("a", "count", on("own"), within(time.Hour))), h.send(call("a", "count", within(time.Hour)))
		short.fails(messages.CodeUnavailable)
		long.fails(messages.CodeUnavailable)
		require.Equal(t, 3*time.Second, short.took())
		require.Equal(t, 30*time.Second, long.took())
	})
}

func TestServerWaitsForItsHandlerByItsOwnTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		h.server = newFakeServer()
		h.handler = spawn(h, func(actor.Context) {}) // answers nothing
		asks := map[string]func(context.Context, messages.Request, messages.Operation) messages.Answer{}
		h.server.dial = func(_ context.Context, req dial.Request) error {
			h.server.set(func() { asks[req.Key.Server] = req.Ask })
			return nil
		}
		h.start(dial.Replace(supervisor.Config{
			Servers: append(own(supervisor.Limits{HandlerTimeout: 2 * time.Second}), supervisor.Server{Name: "s", URL: "http://fake.invalid"}),
			Handler: h.handler, HandlerTimeout: 7 * time.Second,
		}, h.server))
		for server, timeout := range map[string]time.Duration{"own": 2 * time.Second, "s": 7 * time.Second} {
			h.send(call("a", "count", on(server))).ok()
			began := time.Now()
			require.IsType(t, &messages.Refusal{}, asks[server](t.Context(), &messages.ListRoots{}, nil))
			require.Equal(t, timeout, time.Since(began))
		}
		h.stopAndVerify()
		time.Sleep(3 * time.Second)
	})
}

func TestServerAtItsCapEvictsItsOwnLeastRecentlyUsedSession(t *testing.T) {
	inFakeTime(t, supervisor.Config{Servers: own(supervisor.Limits{MaxSessions: 2})}, func(h *harness) {
		h.send(call("a", "count")).ok() // the least recently used of all
		for _, scope := range []string{"a", "b", "a", "c"} {
			h.send(call(scope, "count", on("own"))).ok()
			synctest.Wait() // the registry knows that the call has ended
		}
		e := awaitEvent(h, func(*messages.SessionEvicted) bool { return true })
		require.Equal(t, messages.EvictServerCap, e.Reason)
		require.Equal(t, messages.Key{Server: "own", Scope: "b"}, e.Key)
		require.True(t, h.isOpen("s", "a"))
		require.True(t, h.isOpen("own", "a"))
		requireEvents[*messages.SessionEvicted](h, 1)
		require.Equal(t, 3, h.inspect().Open)
	})
}

func TestCallThatGetsNoSlotOfItsServerIsBusyAtItsDeadline(t *testing.T) {
	inFakeTime(t, supervisor.Config{Servers: own(supervisor.Limits{MaxSessions: 1})}, func(h *harness) {
		hanging := h.send(call("a", "hang", on("own"), within(30*time.Second)))
		synctest.Wait()
		f := h.send(call("b", "count", on("own"), within(5*time.Second)))
		require.Contains(t, f.fails(messages.CodeBusy).Detail, "MaxSessions of the server")
		require.Equal(t, 5*time.Second, f.took())
		require.Equal(t, "1", h.send(call("b", "count")).text()) // on another server
		hanging.fails(messages.CodeDeadline)
		h.send(call("b", "count", on("own"))).ok()
	})
}

// callAgain sends another call from where the reply to the first one arrives.
type callAgain struct {
	h     *harness
	again chan *sentCommand
}

func (p *callAgain) SendUserMessage(*actor.PID, any) {
	p.again <- p.h.send(call("a", "count"))
	time.Sleep(time.Nanosecond) // synctest: until it has been accepted or refused
}
func (p *callAgain) SendSystemMessage(*actor.PID, any) {}
func (p *callAgain) Stop(*actor.PID)                   {}

func TestCallerOfOneCallAfterTheOtherIsNeverRefused(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxInFlight: 1, MaxWaiting: 1}, func(h *harness) {
		h.send(call("a", "count")).ok()
		p := &callAgain{h, make(chan *sentCommand, 2)}
		pid, _ := h.system.ProcessRegistry.Add(p, h.system.ProcessRegistry.NextId())
		for range 2 { // one runs, and one waits
			h.system.Root.RequestWithCustomSender(h.pid, call("a", "count"), pid)
		}
		(<-p.again).ok()
		(<-p.again).ok()
	})
}

func TestReloadChangesTheLimitsOfOpenSessions(t *testing.T) {
	inFakeTime(t, supervisor.Config{Servers: own(supervisor.Limits{})}, func(h *harness) {
		for _, scope := range []string{"a", "b", "c", "d"} {
			h.send(call(scope, "count", on("own"))).ok()
		}
		running := h.calls(3, "a", "hang", on("own"), within(20*time.Second))
		synctest.Wait()

		require.Zero(t, h.reload(own(supervisor.Limits{CallTimeout: 2 * time.Second, MaxInFlight: 1, MaxWaiting: 1})...).Sessions)
		require.Equal(t, 2*time.Second, h.send(call("b", "hang", on("own"))).took())
		h.send(call("a", "count", on("own"))).fails(messages.CodeBusy)
		for _, p := range running {
			require.Equal(t, 20*time.Second, p.took()) // as before
		}
		require.EqualValues(t, 1, h.send(call("b", "count", on("own"))).ok().Generation)

		busy := h.send(call("a", "hang", on("own"), within(20*time.Second)))
		synctest.Wait()
		h.reload(own(supervisor.Limits{MaxSessions: 2})...)
		synctest.Wait()
		require.True(t, h.isOpen("own", "a"))
		require.True(t, h.isOpen("own", "b"))
		require.False(t, h.isOpen("own", "c"))
		require.False(t, h.isOpen("own", "d"))
		busy.fails(messages.CodeDeadline)

		first := h.send(call("a", "hang", on("own"), within(40*time.Second)))
		second := h.send(call("b", "hang", on("own"), within(40*time.Second)))
		synctest.Wait()
		waiting := h.send(call("c", "count", on("own")))
		synctest.Wait()
		require.False(t, waiting.answered())
		h.reload(own(supervisor.Limits{MaxSessions: 3})...)
		require.Zero(t, waiting.took().Seconds())
		first.fails(messages.CodeDeadline)
		second.fails(messages.CodeDeadline)

		h.reload(own(supervisor.Limits{IdleTimeout: time.Minute})...)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, h.inspect().Open)
	})
}

func TestBusySessionsAboveALoweredCapAreClosedWhenTheyAreIdle(t *testing.T) {
	inFakeTime(t, supervisor.Config{Servers: own(supervisor.Limits{})}, func(h *harness) {
		for _, scope := range []string{"a", "b", "c", "d"} {
			h.send(call(scope, "count", on("own"))).ok()
		}
		require.IsType(t, &messages.Pinned{}, h.send(pin("own", "a")).reply())
		slow, hang := h.send(call("b", "slow", on("own"))), h.send(call("c", "hang", on("own"), within(5*time.Second)))
		last := h.send(call("d", "hang", on("own"), within(10*time.Second)))
		synctest.Wait()
		h.reload(own(supervisor.Limits{MaxSessions: 1})...)
		require.Equal(t, "done", slow.text())
		require.False(t, h.isOpen("own", "b"))
		hang.fails(messages.CodeDeadline)
		require.False(t, h.isOpen("own", "c"))
		release := pin("own", "a")
		release.Release = true
		h.send(release).reply()
		require.False(t, h.isOpen("own", "a"))
		last.fails(messages.CodeDeadline)
		require.True(t, h.isOpen("own", "d"))
		e := awaitEvent(h, func(e *messages.SessionEvicted) bool { return e.Key.Scope == "b" })
		require.Equal(t, messages.EvictServerCap, e.Reason)
	})
}

func TestWrongLimitsAreNamed(t *testing.T) {
	system := actor.NewActorSystem(quietLog)
	defer system.Shutdown()
	for want, l := range map[string]supervisor.Limits{
		`servers[0] "own": limits.maxWaiting: -2 is negative: -1 is no limit`:                {MaxWaiting: -2},
		`servers[0] "own": limits.maxDials: 16777217 is more than 16777216: -1 is no limit`:  {MaxDials: 1<<24 + 1},
		`servers[0] "own": limits.idleTimeout: -1s is negative: -1ns is no limit`:            {IdleTimeout: -time.Second},
		`servers[0] "own": limits.closeTimeout: 87600h0m1s is more than 87600h0m0s: -1ns is`: {CloseTimeout: 10*365*24*time.Hour + time.Second},
	} {
		_, err := supervisor.Start(system, supervisor.Config{Servers: own(l)})
		require.ErrorContains(t, err, want)
	}
	_, err := supervisor.Start(system, supervisor.Config{Servers: own(supervisor.Limits{}), MaxSessionsPerTenant: 3})
	require.ErrorContains(t, err, "tenant: is nil, but maxSessionsPerTenant is 3")
}
