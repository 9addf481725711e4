package tests

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

func scope(i int) string { return fmt.Sprint("scope-", i) }

// openAll opens the sessions of so many scopes.
func (w *world) openAll(n int) {
	w.t.Helper()
	var all []*pending
	for i := range n {
		all = append(all, w.send(call(scope(i), "count")))
	}
	for _, p := range all {
		p.ok()
	}
}

// severAll breaks the connections of so many scopes.
func (w *world) severAll(n int) {
	for i := range n {
		w.fake.sever(scope(i), true)
	}
}

// recovered sends one call for each of n scopes, which waits for the server, lets it
// come back after a while, and returns how long after that each was answered.
func (w *world) recovered(n int, away time.Duration, back func()) (took []time.Duration) {
	w.t.Helper()
	var all []*pending
	for i := range n {
		all = append(all, w.send(call(scope(i), "count", within(away+time.Minute))))
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

// Finding C1: after an outage of any length all keys work within 3 s, half of the
// outages end within 1 s, and the dials do not grow with the number of keys.
func TestAllKeysWorkSoonAfterAnOutageOfAnyLength(t *testing.T) {
	ways := map[string]func(context.Context, mcpbridge.DialRequest) error{
		"refused": refused(unavailable("connection refused")),
		"slowly":  slowly(700*time.Millisecond, unavailable("503")),
		"hung":    func(ctx context.Context, _ mcpbridge.DialRequest) error { <-ctx.Done(); return ctx.Err() },
		"a page": func(context.Context, mcpbridge.DialRequest) error {
			return &mcpbridge.Error{Class: mcpbridge.Protocol, Server: mcpbridge.Strange, Detail: "302 Found"}
		},
	}
	for way, dial := range ways {
		for _, away := range []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, time.Minute, 10 * time.Minute} {
			for _, keys := range []int{40, 400} {
				if way == "hung" && away < time.Minute {
					continue // see below
				}
				t.Run(fmt.Sprint(way, "/", away, "/", keys), func(t *testing.T) {
					var lasts []time.Duration
					for seed := range max(1, 360/keys) {
						imagine(t, supervisor.Config{MaxSessions: 500}, func(w *world) {
							w.openAll(keys)
							w.fake.set(func() { w.fake.dial = dial })
							w.severAll(keys)
							before := w.watch.dialed()
							took := w.recovered(keys, away+time.Duration(seed)*137*time.Millisecond, func() { w.fake.set(func() { w.fake.dial = nil }) })
							lasts = append(lasts, took[len(took)-1])
							require.LessOrEqual(t, took[len(took)-1], 3*time.Second)
							dials := w.watch.dialed() - before - keys
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

// A server that accepts and does not answer is not known to be down before the first
// dial has had its time. From then on it is asked anew every 2 s, whatever becomes of
// the dials before, and one that takes its time has all of it.
func TestServerThatHangsIsProbedAnewAndMayTakeItsTime(t *testing.T) {
	imagine(t, supervisor.Config{MaxSessions: 500}, func(w *world) {
		w.openAll(20)
		var running, most atomic.Int64
		w.fake.set(func() {
			w.fake.dial = func(ctx context.Context, _ mcpbridge.DialRequest) error {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				<-ctx.Done()
				return ctx.Err()
			}
		})
		w.severAll(20)
		var all []*pending
		for i := range 20 {
			all = append(all, w.send(call(scope(i), "count", within(5*time.Minute))))
		}
		time.Sleep(32 * time.Second) // synctest: the first dials are over
		most.Store(0)
		dials := w.watch.dialed()
		time.Sleep(60 * time.Second) // synctest
		require.LessOrEqual(t, most.Load(), int64(3))
		require.InDelta(t, 30, w.watch.dialed()-dials, 4)
		w.fake.set(func() { w.fake.dial = slowly(20*time.Second, nil) })
		for _, p := range all {
			p.ok()
			require.Less(t, p.answeredAt.Sub(p.sent), 5*time.Minute)
		}
	})
}

// With nobody who waits nobody probes, and the first call does at once.
func TestNobodyProbesAServerThatNobodyWaitsFor(t *testing.T) {
	imagine(t, supervisor.Config{IdleTimeout: supervisor.Never}, func(w *world) {
		w.openAll(40)
		w.fake.set(func() { w.fake.dial = refused(unavailable("connection refused")) })
		w.severAll(40)
		time.Sleep(time.Second) // synctest
		require.Equal(t, 40, w.watch.dialed(), "nobody has called")
		for i := range 40 {
			w.send(call(scope(i), "count", within(500*time.Millisecond))).fails(messages.CodeUnavailable)
		}
		dials := w.watch.dialed()
		require.Less(t, dials, 40+3*40)
		time.Sleep(time.Hour) // synctest
		require.Equal(t, dials, w.watch.dialed())
		w.fake.set(func() { w.fake.dial = nil })
		began := time.Now()
		w.openAll(40)
		require.Zero(t, time.Since(began))
	})
}

// Those who do not want to wait are told at once, and one of them tries.
func TestCallsFailFastWhereTheConfigurationSaysSo(t *testing.T) {
	imagine(t, supervisor.Config{FailFast: true}, func(w *world) {
		w.openAll(40)
		w.fake.set(func() { w.fake.dial = refused(unavailable("connection refused")) })
		for i := range 39 {
			w.fake.sever(scope(i), true)
		}
		began := time.Now()
		for i := range 39 {
			f := w.send(call(scope(i), "count")).fails(messages.CodeUnavailable)
			require.Contains(t, f.Detail, "connection refused")
			require.LessOrEqual(t, f.RetryAfter, 2*time.Second)
		}
		require.Equal(t, "2", w.send(call(scope(39), "count")).text(), "it is connected")
		require.Less(t, time.Since(began), 2*time.Second)
		before := w.watch.dialed()
		for range 1000 {
			w.send(call("another", "count")).fails(messages.CodeUnavailable)
			time.Sleep(10 * time.Millisecond) // synctest
		}
		require.InDelta(t, 12, w.watch.dialed()-before, 6, "in ten seconds")
		w.fake.set(func() { w.fake.dial = nil })
		time.Sleep(time.Second) // synctest
		w.send(call("another", "count")).ok()
		w.openAll(40)
	})
}

// A key that is refused for its own reasons shows that the server is up, and a server
// that refuses one key only is not down for the others.
func TestKeyThatIsRefusedDoesNotKeepOthersFromTheServer(t *testing.T) {
	for name, cause := range map[string]*mcpbridge.Error{
		"401": {Class: mcpbridge.Unauthorized, Server: mcpbridge.Present, Detail: "401"},
		"503": unavailable("503 of its tenant"),
	} {
		t.Run(name, func(t *testing.T) {
			imagine(t, supervisor.Config{}, func(w *world) {
				w.fake.dial = func(_ context.Context, req mcpbridge.DialRequest) error {
					if req.Key.Scope == "bad" {
						return cause
					}
					return nil
				}
				w.send(call("good", "count")).ok()
				bad := w.send(call("bad", "count"))
				for i := range 60 {
					time.Sleep(time.Second) // synctest
					began := time.Now()
					w.send(call(scope(i), "count")).ok()
					require.LessOrEqual(t, time.Since(began), 1200*time.Millisecond)
				}
				bad.reply()
				require.Less(t, w.watch.dialed(), 60+5*60)
			})
		})
	}
}

// Finding C4: keys that wait for a server that hangs hold no slot.
func TestServerThatHangsTakesNoSlotsFromOthers(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		w.fake.dial = func(ctx context.Context, req mcpbridge.DialRequest) error {
			if req.Key.Server == "s" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		for i := range 300 {
			w.send(call(scope(i), "count", within(2*time.Minute)))
		}
		for i := range 60 {
			began := time.Now()
			for k := range 4 {
				w.send(call(fmt.Sprint("innocent-", i, k), "count", on("other"))).ok()
			}
			require.Zero(t, time.Since(began))
			time.Sleep(time.Second) // synctest
		}
		require.LessOrEqual(t, w.inspect().Open, 256)
		w.fake.set(func() { w.fake.dial = nil })
	})
}

// Finding C6: what nobody waits for is not opened again, unless something is held for
// it, and then once.
func TestSessionThatNobodyWaitsForIsOpenedAtTheNextCallOnly(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		w.openAll(10)
		for range 20 {
			w.severAll(10)
			time.Sleep(time.Second) // synctest
		}
		require.Equal(t, 10, w.watch.dialed())
		require.Zero(t, w.inspect().Open)
		require.Equal(t, "2", w.send(call(scope(0), "count")).text(), "attached, with its state")

		w.send(&messages.Subscribe{Header: messages.To("s", scope(1)), URI: "file:///one"}).reply()
		dials := w.watch.dialed()
		for range 20 {
			w.fake.sever(scope(1), true)
			time.Sleep(time.Second) // synctest
		}
		require.Equal(t, dials+1, w.watch.dialed(), "once")
		w.send(call(scope(1), "count")).ok()
		dials = w.watch.dialed()
		for range 5 {
			time.Sleep(2 * time.Minute) // synctest
			w.fake.sever(scope(1), true)
		}
		synctest.Wait()
		time.Sleep(5 * time.Second) // synctest
		require.Equal(t, dials+5, w.watch.dialed(), "it had lived in between")
	})
}

// logins is an authenticator that a person logs in to.
type logins struct {
	token atomic.Value
	asked atomic.Int64
}

func (l *logins) Credentials(context.Context, messages.Key) (mcpbridge.Credentials, error) {
	l.asked.Add(1)
	if l.token.Load() == nil {
		return nil, errors.New("not logged in")
	}
	return nil, nil
}

// Finding C2: credentials that come late end the wait for them.
func TestKeyThatIsGivenCredentialsWorksAtOnce(t *testing.T) {
	login := new(logins)
	w := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", URL: "http://127.0.0.1:1", Auth: login}}})
	for range 3 {
		f := w.send(call("a", "count")).fails(messages.CodeUnauthorized)
		require.Contains(t, f.Detail, "not logged in")
		require.Greater(t, f.RetryAfter, 20*time.Second)
	}
	require.EqualValues(t, 3, login.asked.Load())
	login.token.Store(true)
	require.Contains(t, w.send(call("a", "count", within(time.Second))).fails(messages.CodeUnavailable).Detail, "refused", "it was dialed")
	w.end()
}

// Findings C5 and issue 12: the starts of processes are bounded over all servers, and
// those that hang give their permits back.
func TestProcessesAreStartedAFewAtATimeOverAllServers(t *testing.T) {
	cfg := supervisor.Config{Servers: []mcpbridge.Server{
		{Name: "one", Command: "one"}, {Name: "two", Command: "two"}, {Name: "hung", Command: "hung"}, {Name: "stuck", Command: "stuck"},
	}}
	imagine(t, cfg, func(w *world) {
		var now, most atomic.Int64
		w.fake.dial = func(ctx context.Context, req mcpbridge.DialRequest) error {
			if req.Key.Server == "hung" || req.Key.Server == "stuck" {
				<-ctx.Done()
				return ctx.Err()
			}
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(100 * time.Millisecond) // synctest
			now.Add(-1)
			req.Answered()
			time.Sleep(3 * time.Second) // synctest: a set-up that takes no processor
			return nil
		}
		for i := range 20 {
			w.send(call(scope(i), "count", on("hung"), within(10*time.Second)))
			w.send(call(scope(i), "count", on("stuck"), within(10*time.Second)))
		}
		synctest.Wait()
		var all []*pending
		for i := range 20 {
			all = append(all, w.send(call(scope(i), "count", on("one"))), w.send(call(scope(i), "count", on("two"))))
		}
		for _, p := range all {
			p.ok()
		}
		require.LessOrEqual(t, most.Load(), int64(max(2, runtime.GOMAXPROCS(0))))
		require.Less(t, all[len(all)-1].answeredAt.Sub(all[0].sent), 50*time.Second)
		require.Zero(t, count[*messages.SessionRestarting](w))
	})
}

// Finding D2: what the registry does for one message does not grow with the keys that
// wait for a slot.
func TestManyKeysThatWaitForASlotCostNothing(t *testing.T) {
	took := func(n int) time.Duration {
		f := newFake()
		w := start(t, supervisor.Config{
			MaxSessions: 1, Servers: []mcpbridge.Server{{Name: "s", URL: "http://fake.invalid"}},
			WrapDialer: func(mcpbridge.Dialer) mcpbridge.Dialer { return f },
		})
		hang := w.send(call("busy", "hang", within(time.Hour)))
		for f.anyConn(0) == nil {
			w.inspect()
		}
		began := time.Now()
		var last *pending
		for i := range n {
			last = w.send(call(scope(i), "count", within(time.Hour)))
		}
		w.send(&messages.CloseScope{Scope: "nobody"}).reply() // the mailbox is empty
		elapsed := time.Since(began)
		require.False(t, last.answered())
		w.cancel(hang)
		for _, p := range w.sent() {
			if _, ok := p.cmd.(*messages.CallTool); ok && p != hang {
				w.cancel(p)
			}
		}
		hang.reply()
		w.stop()
		return elapsed / time.Duration(n)
	}
	few, many := took(1000), took(8000)
	require.Less(t, many, 5*few+50*time.Microsecond, "by message")
}

// A context and its operation have one deadline: the reply of the supervisor, which says what
// the operation waited for, is not overtaken by a cancellation.
func TestDeadlineOfAContextTellsWhatTheCallWaitedFor(t *testing.T) {
	passing := func(next actors.Runner) actors.Runner { return next }
	for name, cfg := range map[string]supervisor.Config{"plain": {}, "intercepted": {Interceptors: []actors.Interceptor{passing}}} {
		t.Run(name, func(t *testing.T) {
			imagine(t, cfg, func(w *world) {
				w.fake.dial = func(context.Context, mcpbridge.DialRequest) error { return unavailable("refused") }
				for i := range 30 {
					ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
					began := time.Now()
					_, err := w.sup.Client().CallTool(ctx, "s", fmt.Sprint("k", i), call("a", "count").Params)
					cancel()
					require.ErrorIs(t, err, messages.ErrUnavailable)
					require.ErrorContains(t, err, "refused")
					require.Equal(t, time.Second, time.Since(began))
				}
			})
		})
	}
}
