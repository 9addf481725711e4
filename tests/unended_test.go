package tests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// slowKeys is a store that takes its time to list what it has.
type slowKeys struct{ mcpbridge.Store }

func (s slowKeys) Keys(ctx context.Context) ([]messages.Key, error) {
	time.Sleep(300 * time.Millisecond)
	return s.Store.Keys(ctx)
}

// remembers starts a supervisor that finds sessions of these scopes in its store, with
// a count of 1 each, and calls scenario.
func remembers(t *testing.T, cfg supervisor.Config, scopes []string, scenario func(w *world, e *endpoint)) {
	t.Helper()
	if cfg.Store == nil {
		cfg.Store = resume.NewMemory()
	}
	cfg.LeaveOpen = true
	lives(t, cfg, func(w *world, _ *endpoint) {
		for _, scope := range scopes {
			require.Equal(t, "1", w.send(call(scope, "count")).text())
		}
	}, scenario)
}

// Finding F2: a call that comes after a close gets a session of its own, which that
// close does not touch, also where the store is slow to say what there is to be closed.
func TestCallAfterTheCloseOfARememberedSessionGetsANewOne(t *testing.T) {
	remembers(t, supervisor.Config{Store: slowKeys{resume.NewMemory()}}, []string{"a"}, func(w *world, e *endpoint) {
		closed := w.send(&messages.CloseScope{Scope: "a"})
		p := w.send(call("a", "count"))
		require.Equal(t, "1", p.text(), "the state of the closed session is gone")
		require.EqualValues(t, 2, p.ok().Generation)
		require.Equal(t, 1, closed.reply().(*messages.Closed).Sessions)
		p = w.send(call("a", "count"))
		require.Equal(t, "2", p.text())
		require.False(t, p.ok().Replayed, "its session is not touched")
		require.Equal(t, 1, e.Sessions())
	})
}

// Finding F2: a remembered session is ended within the cap, and before its successor opens.
func TestRememberedSessionIsEndedWithinTheCapAndBeforeItsSuccessorOpens(t *testing.T) {
	e := serve(t, faults.NewTools())
	defer e.end()
	cfg := supervisor.Config{Store: resume.NewMemory(), LeaveOpen: true, Servers: []mcpbridge.Server{{Name: "s", URL: e.URL()}}}
	w := start(t, cfg)
	for _, scope := range []string{"a", "b", "c"} {
		w.send(call(scope, "count")).ok()
	}
	w.end()
	cfg.MaxSessions = 1
	w = start(t, cfg)
	e.Inject("", func(rw http.ResponseWriter, r *faults.Request, next http.Handler) {
		if r.Method == http.MethodDelete {
			time.Sleep(100 * time.Millisecond)
		}
		next.ServeHTTP(rw, r.Request)
	})
	closed := w.send(&messages.CloseAll{})
	for _, scope := range []string{"b", "a", "c"} {
		require.Equal(t, "1", w.send(call(scope, "count")).text())
	}
	require.Equal(t, 3, closed.reply().(*messages.Closed).Sessions)
	require.Empty(t, w.watch.wronged())
	require.Equal(t, 1, w.watch.mostOpen())
	w.end()
}

// Finding F2: what could not be ended is not forgotten: neither in this process, where
// its successor does not go on with it, nor in the next one.
func TestRememberedSessionThatCouldNotBeEndedIsTriedAgain(t *testing.T) {
	refuse := func(e *endpoint) (heal func()) {
		return e.Inject("", func(rw http.ResponseWriter, r *faults.Request, next http.Handler) {
			if r.Method == http.MethodDelete {
				rw.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(rw, r.Request)
		})
	}
	for name, between := range map[string]func(w *world){
		"at once": func(*world) {},
		"with a successor": func(w *world) {
			p := w.send(call("a", "count"))
			require.Equal(w.t, "1", p.text())
			require.EqualValues(w.t, 2, p.ok().Generation)
		},
	} {
		t.Run(name, func(t *testing.T) {
			remembers(t, supervisor.Config{}, []string{"a"}, func(w *world, e *endpoint) {
				w.overlaps = nil // the server refuses to end the first one
				heal := refuse(e)
				closed := w.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
				require.Zero(t, closed.Sessions)
				require.Len(t, closed.Left, 1)
				between(w)
				heal()
				closed = w.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
				require.Empty(t, closed.Left)
				require.Positive(t, closed.Sessions)
				require.Zero(t, e.Sessions())
			})
		})
	}
	t.Run("by the next process", func(t *testing.T) {
		e := serve(t, faults.NewTools())
		defer e.end()
		cfg := supervisor.Config{Store: resume.NewMemory(), LeaveOpen: true, Servers: []mcpbridge.Server{{Name: "s", URL: e.URL()}}}
		w := start(t, cfg)
		w.send(call("a", "count")).ok()
		heal := refuse(e)
		require.Len(t, w.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Left, 1)
		var stop *supervisor.StopError
		require.ErrorAs(t, w.sup.Stop(t.Context()), &stop)
		require.Len(t, stop.Left, 1)
		heal()
		w = start(t, cfg)
		require.Equal(t, 1, w.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Sessions)
		require.Zero(t, e.Sessions())
		w.end()
	})
}

// Finding F2: a generation is not used twice as long as the store is kept, whichever
// way the session before has ended.
func TestGenerationGrowsAsLongAsTheStoreIsKept(t *testing.T) {
	ends := map[string]func(w *world, e *endpoint){
		"by a close": func(w *world, _ *endpoint) { w.send(&messages.CloseScope{Scope: "a"}).reply() },
		"by the cap": func(w *world, _ *endpoint) { w.send(call("b", "count")).ok() },
		"by time":    func(w *world, _ *endpoint) { await(w, func(*messages.SessionClosed) bool { return true }) },
		"by a reload": func(w *world, e *endpoint) {
			_, err := w.sup.Reload(w.t.Context(), []mcpbridge.Server{{Name: "s", URL: e.URL(), KeepAlive: time.Hour}})
			require.NoError(w.t, err)
		},
		"by Stop": func(*world, *endpoint) {},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			cfg := supervisor.Config{Store: resume.NewMemory(), LeaveOpen: true, MaxSessions: 1, IdleTimeout: 200 * time.Millisecond}
			if name == "by Stop" {
				cfg.LeaveOpen = false
			}
			var last uint64
			life := func(w *world, e *endpoint) {
				p := w.send(call("a", "count"))
				require.Equal(t, "1", p.text())
				require.Greater(t, p.ok().Generation, last)
				last = p.ok().Generation
				end(w, e)
			}
			lives(t, cfg, life, life, life)
		})
	}
}

// Finding F2: the remembered sessions of a server that Reload changes are ended, by the
// same way.
func TestReloadEndsTheRememberedSessionsOfAServerThatChanged(t *testing.T) {
	remembers(t, supervisor.Config{}, []string{"a", "b"}, func(w *world, e *endpoint) {
		servers := []mcpbridge.Server{{Name: "s", URL: e.URL(), KeepAlive: time.Hour}}
		closed, err := w.sup.Reload(t.Context(), servers)
		require.NoError(t, err)
		require.Equal(t, 2, closed.Sessions)
		require.Zero(t, e.Sessions())
		p := w.send(call("a", "count"))
		require.Equal(t, "1", p.text())
		require.EqualValues(t, 2, p.ok().Generation)
	})
}

// Finding F2: a store with very many keys does not make a close open many sessions at once.
func TestCloseEndsManyRememberedSessionsAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := resume.NewMemory()
		const n = 200
		f := newFake()
		for i := range n {
			id := fmt.Sprint("session-", i)
			f.sessions[id] = new(int)
			key := messages.Key{Server: "s", Scope: id}
			info := &mcp.InitializeResult{ProtocolVersion: "2025-11-25"}
			require.NoError(t, store.Save(t.Context(), key, &mcpbridge.Record{Generation: 3, Resume: mcpbridge.Resume{SessionID: id, Server: info}}))
		}
		var at, most atomic.Int32
		f.close = func(context.Context, messages.Key) error {
			if n := at.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer at.Add(-1)
			time.Sleep(time.Second) // synctest
			return nil
		}
		cfg := supervisor.Config{Store: store, Servers: []mcpbridge.Server{{Name: "s", URL: "http://fake.invalid"}}}
		cfg.WrapDialer = func(mcpbridge.Dialer) mcpbridge.Dialer { return f }
		w := start(t, cfg)
		closed := w.send(&messages.CloseAll{})
		require.Equal(t, n, closed.reply().(*messages.Closed).Sessions)
		require.LessOrEqual(t, most.Load(), int32(16))
		began := time.Now()
		require.Zero(t, w.send(&messages.CloseAll{}).reply().(*messages.Closed).Sessions)
		require.Zero(t, time.Since(began), "what has ended needs no connection")
		w.fake, w.executed = f, f.executions
		w.end()
		time.Sleep(3 * time.Second) // synctest
	})
}

// Finding F3: sessions of one key that could not be closed are all kept, reported and
// tried again.
func TestAllSessionsOfAKeyThatCouldNotBeClosedAreKept(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		w.fake.set(func() { w.fake.close = func(context.Context, messages.Key) error { return errors.New("503") } })
		for n := range 3 {
			w.send(call("a", "count")).ok()
			closed := w.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
			require.Len(t, closed.Left, n+1)
			require.Zero(t, closed.Sessions)
		}
		w.fake.set(func() { w.fake.close = nil })
		closed := w.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
		require.Equal(t, 3, closed.Sessions)
		require.Empty(t, closed.Left)
		require.Empty(t, w.fake.sessions)
	})
}
