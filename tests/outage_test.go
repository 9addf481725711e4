package tests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

func scopeName(i int) string { return fmt.Sprint("scope-", i) }

// openSessions opens the sessions of n scopes.
func (h *harness) openSessions(n int) {
	h.t.Helper()
	var all []*sentCommand
	for i := range n {
		all = append(all, h.send(call(scopeName(i), "count")))
	}
	for _, p := range all {
		p.ok()
	}
}

// breakConnections breaks the connections of n scopes.
func (h *harness) breakConnections(n int) {
	for i := range n {
		h.server.breakConnection(scopeName(i), true)
	}
}

// recoveryTimes sends one call for each of n scopes while the server is down. It calls back
// after the time away, and returns how long after that each call was answered, in ascending
// order.
func (h *harness) recoveryTimes(n int, away time.Duration, back func()) (took []time.Duration) {
	h.t.Helper()
	var all []*sentCommand
	for i := range n {
		all = append(all, h.send(call(scopeName(i), "count", within(away+time.Minute))))
	}
	time.Sleep(away) // synctest
	back()
	at := time.Now()
	for _, p := range all {
		p.ok()
		took = append(took, p.answeredAt.Sub(at))
	}
	slices.Sort(took)
	return took
}

// H-C1: after an outage of any length all keys work within 3 s, half of the
// outages end within 1 s, and the dials do not grow with the number of keys.
func TestAllKeysWorkSoonAfterAnOutageOfAnyLength(t *testing.T) {
	t.Parallel()
	ways := map[string]func(context.Context, dial.Request) error{
		"refused": failingDial(unavailableError("connection refused")),
		"slowly":  slowDial(700*time.Millisecond, unavailableError("503")),
		"hung":    func(ctx context.Context, _ dial.Request) error { <-ctx.Done(); return ctx.Err() },
		"a page": func(context.Context, dial.Request) error {
			return &mcpbridge.Error{Class: mcpbridge.Protocol, Server: mcpbridge.Strange, Detail: "302 Found"}
		},
	}
	for way, dial := range ways {
		for _, away := range []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, time.Minute, 10 * time.Minute} {
			for _, keys := range []int{40, 400} {
				if way == "hung" && away < time.Minute {
					continue // see the next test
				}
				t.Run(fmt.Sprint(way, "/", away, "/", keys), func(t *testing.T) {
					t.Parallel()
					var lasts []time.Duration
					for seed := range max(1, 360/keys) {
						inFakeTime(t, supervisor.Config{MaxSessions: 500}, func(h *harness) {
							h.openSessions(keys)
							h.server.set(func() { h.server.dial = dial })
							h.breakConnections(keys)
							before := h.dials.dialed()
							took := h.recoveryTimes(keys, away+time.Duration(seed)*137*time.Millisecond, func() { h.server.set(func() { h.server.dial = nil }) })
							lasts = append(lasts, took[len(took)-1])
							require.LessOrEqual(t, took[len(took)-1], 3*time.Second)
							dials := h.dials.dialed() - before - keys
							require.Less(t, dials, 30+int(away/time.Second*13/10), "16 at once, and then the probes")
						})
					}
					slices.Sort(lasts)
					if way != "hung" && way != "slowly" && keys == 40 {
						require.LessOrEqual(t, lasts[len(lasts)/2], time.Second)
					}
				})
			}
		}
	}
}

// A server that accepts connections and does not answer is not known to be down before the
// first dial has timed out. From then on a new probe starts every 2 s, and the oldest probe
// keeps its full time.
func TestServerThatHangsIsProbedAnewAndMayTakeItsTime(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 500}, func(h *harness) {
		h.openSessions(20)
		var running, most atomic.Int64
		h.server.set(func() {
			h.server.dial = func(ctx context.Context, _ dial.Request) error {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				<-ctx.Done()
				return ctx.Err()
			}
		})
		h.breakConnections(20)
		var all []*sentCommand
		for i := range 20 {
			all = append(all, h.send(call(scopeName(i), "count", within(5*time.Minute))))
		}
		time.Sleep(32 * time.Second) // synctest: until the first dials have timed out
		most.Store(0)
		dials := h.dials.dialed()
		time.Sleep(60 * time.Second) // synctest
		require.LessOrEqual(t, most.Load(), int64(3))
		require.InDelta(t, 30, h.dials.dialed()-dials, 4)
		h.server.set(func() { h.server.dial = slowDial(20*time.Second, nil) })
		for _, p := range all {
			p.ok()
			require.Less(t, p.answeredAt.Sub(p.sent), 5*time.Minute)
		}
	})
}

// While no call waits, there are no probes. The next call probes at once.
func TestNobodyProbesAServerThatNobodyWaitsFor(t *testing.T) {
	inFakeTime(t, supervisor.Config{IdleTimeout: -1}, func(h *harness) {
		h.openSessions(40)
		h.server.set(func() { h.server.dial = failingDial(unavailableError("connection refused")) })
		h.breakConnections(40)
		time.Sleep(time.Second) // synctest
		require.Equal(t, 40, h.dials.dialed(), "nobody has called")
		for i := range 40 {
			h.send(call(scopeName(i), "count", within(500*time.Millisecond))).fails(messages.CodeUnavailable)
		}
		dials := h.dials.dialed()
		require.Less(t, dials, 40+3*40)
		time.Sleep(time.Hour) // synctest
		require.Equal(t, dials, h.dials.dialed())
		h.server.set(func() { h.server.dial = nil })
		began := time.Now()
		h.openSessions(40)
		require.Zero(t, time.Since(began))
	})
}

// With FailFast, calls fail at once while the server is down, and one of them probes.
func TestCallsFailFastWhereTheConfigurationSaysSo(t *testing.T) {
	inFakeTime(t, supervisor.Config{FailFast: true}, func(h *harness) {
		h.openSessions(40)
		h.server.set(func() { h.server.dial = failingDial(unavailableError("connection refused")) })
		for i := range 39 {
			h.server.breakConnection(scopeName(i), true)
		}
		began := time.Now()
		for i := range 39 {
			f := h.send(call(scopeName(i), "count")).fails(messages.CodeUnavailable)
			require.Contains(t, f.Detail, "connection refused")
			require.LessOrEqual(t, f.RetryAfter, 2*time.Second)
		}
		require.Equal(t, "2", h.send(call(scopeName(39), "count")).text(), "it is connected")
		require.Less(t, time.Since(began), 2*time.Second)
		before := h.dials.dialed()
		for range 1000 {
			h.send(call("another", "count")).fails(messages.CodeUnavailable)
			time.Sleep(10 * time.Millisecond) // synctest
		}
		require.InDelta(t, 12, h.dials.dialed()-before, 6, "in ten seconds")
		h.server.set(func() { h.server.dial = nil })
		time.Sleep(time.Second) // synctest
		h.send(call("another", "count")).ok()
		h.openSessions(40)
	})
}

// A refusal of one key shows that the server is up: it does not count as down for other
// keys.
func TestKeyThatIsRefusedDoesNotKeepOthersFromTheServer(t *testing.T) {
	for name, cause := range map[string]*mcpbridge.Error{
		"401": {Class: mcpbridge.Unauthorized, Server: mcpbridge.Present, Detail: "401"},
		"503": unavailableError("503 of its tenant"),
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, supervisor.Config{}, func(h *harness) {
				h.server.dial = func(_ context.Context, req dial.Request) error {
					if req.Key.Scope == "bad" {
						return cause
					}
					return nil
				}
				h.send(call("good", "count")).ok()
				bad := h.send(call("bad", "count"))
				for i := range 60 {
					time.Sleep(time.Second) // synctest
					began := time.Now()
					h.send(call(scopeName(i), "count")).ok()
					require.LessOrEqual(t, time.Since(began), 1200*time.Millisecond)
				}
				bad.reply()
				require.Less(t, h.dials.dialed(), 60+5*60)
			})
		})
	}
}

// H-C4: keys that wait for a server that hangs do not hold slots.
func TestServerThatHangsTakesNoSlotsFromOthers(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.server.dial = func(ctx context.Context, req dial.Request) error {
			if req.Key.Server == "s" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		for i := range 300 {
			h.send(call(scopeName(i), "count", within(2*time.Minute)))
		}
		for i := range 60 {
			began := time.Now()
			for k := range 4 {
				h.send(call(fmt.Sprint("innocent-", i, k), "count", on("other"))).ok()
			}
			require.Zero(t, time.Since(began))
			time.Sleep(time.Second) // synctest
		}
		require.LessOrEqual(t, h.inspect().Open, 256)
		h.server.set(func() { h.server.dial = nil })
	})
}

// H-C6: a session that no call waits for is not opened again. If it has a subscription, it
// is opened again once.
func TestSessionThatNobodyWaitsForIsOpenedAtTheNextCallOnly(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.openSessions(10)
		for range 20 {
			h.breakConnections(10)
			time.Sleep(time.Second) // synctest
		}
		require.Equal(t, 10, h.dials.dialed())
		require.Zero(t, h.inspect().Open)
		require.Equal(t, "2", h.send(call(scopeName(0), "count")).text(), "attached, with its state")

		h.send(&messages.Subscribe{Header: messages.To("s", scopeName(1)), URI: "file:///one"}).reply()
		dials := h.dials.dialed()
		for range 20 {
			h.server.breakConnection(scopeName(1), true)
			time.Sleep(time.Second) // synctest
		}
		require.Equal(t, dials+1, h.dials.dialed(), "once")
		h.send(call(scopeName(1), "count")).ok()
		dials = h.dials.dialed()
		for range 5 {
			time.Sleep(2 * time.Minute) // synctest
			h.server.breakConnection(scopeName(1), true)
		}
		synctest.Wait()
		time.Sleep(5 * time.Second) // synctest
		require.Equal(t, dials+5, h.dials.dialed(), "it had lived in between")
	})
}

// lateLogin is an authenticator that has no credentials before its user logs in.
type lateLogin struct {
	token atomic.Value
	asked atomic.Int64
}

func (l *lateLogin) Credentials(context.Context, messages.Key) (mcpbridge.Credentials, error) {
	l.asked.Add(1)
	if l.token.Load() == nil {
		return nil, errors.New("not logged in")
	}
	return nil, nil
}

// H-C2: a key works as soon as it gets credentials.
func TestKeyThatIsGivenCredentialsWorksAtOnce(t *testing.T) {
	login := new(lateLogin)
	h := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", URL: "http://127.0.0.1:1", Auth: login}}})
	for range 3 {
		f := h.send(call("a", "count")).fails(messages.CodeUnauthorized)
		require.Contains(t, f.Detail, "not logged in")
		require.Greater(t, f.RetryAfter, 20*time.Second)
	}
	require.EqualValues(t, 3, login.asked.Load())
	login.token.Store(true)
	require.Contains(t, h.send(call("a", "count", within(200*time.Millisecond))).fails(messages.CodeUnavailable).Detail, "refused", "it was dialed")
	h.stopAndVerify()
}

// H-C5: the number of processes that start at once is bounded over all servers. Processes that hang keep
// their permits, and leave some to others. A container counts as a process.
func TestProcessesAreStartedAFewAtATimeOverAllServers(t *testing.T) {
	container := mcpbridge.Server{
		Name: "two", Command: "docker", Args: []string{"run", "--rm", "-i", "--init", "--name", mcpbridge.SessionMark, "example/two"},
		Cleanup: mcpbridge.Cleanup{Command: "docker", Args: []string{"rm", "--force", mcpbridge.SessionMark}, Records: t.TempDir()},
	}
	const starts = 12
	cfg := supervisor.Config{MaxStarts: starts, Servers: []mcpbridge.Server{
		container, {Name: "one", Command: "one"}, {Name: "hung", Command: "hung"}, {Name: "stuck", Command: "stuck"},
	}}
	inFakeTime(t, cfg, func(h *harness) {
		var now, most atomic.Int64
		h.server.dial = func(ctx context.Context, req dial.Request) error {
			if req.Key.Server == "hung" || req.Key.Server == "stuck" {
				<-ctx.Done()
				return ctx.Err()
			}
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(100 * time.Millisecond) // synctest
			now.Add(-1)
			req.Answered()
			time.Sleep(3 * time.Second) // synctest: the set-up takes time, and no processor
			return nil
		}
		for i := range 20 {
			h.send(call(scopeName(i), "count", on("hung"), within(10*time.Second)))
			h.send(call(scopeName(i), "count", on("stuck"), within(10*time.Second)))
		}
		synctest.Wait()
		var all []*sentCommand
		for i := range 20 {
			all = append(all, h.send(call(scopeName(i), "count", on("one"))), h.send(call(scopeName(i), "count", on("two"))))
		}
		for _, p := range all {
			p.ok()
		}
		require.LessOrEqual(t, most.Load(), int64(starts/3), "those that answer within 200 ms")
		require.Less(t, all[len(all)-1].answeredAt.Sub(all[0].sent), 50*time.Second)
		require.Zero(t, countEvents[*messages.SessionRestarting](h))
	})
}

// H-D2: the work of the registry for one message does not grow with the number of keys that
// wait for a slot.
func TestManyKeysThatWaitForASlotCostNothing(t *testing.T) {
	took := func(n int) time.Duration {
		f := newFakeServer()
		h := start(t, dial.Replace(supervisor.Config{
			MaxSessions: 1, Servers: []mcpbridge.Server{{Name: "s", URL: "http://fake.invalid"}},
			Logger: zerolog.New(io.Discard), // to check thousands of lines may take longer than Stop waits for
		}, f))
		hang := h.send(call("busy", "hang", within(time.Hour)))
		for f.anyConn(0) == nil {
			h.inspect()
		}
		began := time.Now()
		var last *sentCommand
		for i := range n {
			last = h.send(call(scopeName(i), "count", within(time.Hour)))
		}
		h.send(&messages.CloseScope{Scope: "nobody"}).reply() // then the mailbox is empty
		elapsed := time.Since(began)
		require.False(t, last.answered())
		h.cancel(hang)
		for _, p := range h.sent() {
			if _, ok := p.cmd.(*messages.CallTool); ok && p != hang {
				h.cancel(p)
			}
		}
		hang.reply()
		h.stop()
		return elapsed / time.Duration(n)
	}
	// Whatever else runs on the machine only adds to the time.
	few, many := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range 10 {
		few, many = min(few, took(1000)), min(many, took(8000))
		if many < 5*few+50*time.Microsecond {
			return
		}
	}
	require.Fail(t, "it takes longer with more keys", "%v a message with 1000 keys, %v with 8000", few, many)
}

// A context and its operation have one deadline: the reply of the supervisor, which says what
// the operation waited for, is not overtaken by a cancellation.
func TestDeadlineOfAContextTellsWhatTheCallWaitedFor(t *testing.T) {
	passing := func(next actors.Runner) actors.Runner { return next }
	for name, cfg := range map[string]supervisor.Config{"plain": {}, "intercepted": {Interceptors: []actors.Interceptor{passing}}} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, cfg, func(h *harness) {
				h.server.dial = func(context.Context, dial.Request) error { return unavailableError("refused") }
				for i := range 30 {
					ctx, cancel := context.WithTimeout(h.t.Context(), time.Second)
					began := time.Now()
					_, err := h.sup.Client().CallTool(ctx, "s", fmt.Sprint("k", i), call("a", "count").Params)
					cancel()
					require.ErrorIs(t, err, messages.CodeUnavailable)
					require.ErrorContains(t, err, "refused")
					require.Equal(t, time.Second, time.Since(began))
				}
			})
		})
	}
}
