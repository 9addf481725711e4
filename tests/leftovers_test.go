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

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// slowStore is a store that lists its keys slowly.
type slowStore struct{ mcpbridge.Store }

func (s slowStore) Keys(ctx context.Context) ([]messages.Key, error) {
	time.Sleep(300 * time.Millisecond)
	return s.Store.Keys(ctx)
}

// withRememberedSessions runs a scenario with a supervisor whose store has a session for
// each of the scopes. The counter of each session is 1.
func withRememberedSessions(t *testing.T, cfg supervisor.Config, scopes []string, scenario func(h *harness, e *testServer)) {
	t.Helper()
	if cfg.Store == nil {
		cfg.Store = new(resume.Memory)
	}
	cfg.LeaveOpen = true
	runProcesses(t, cfg, func(h *harness, _ *testServer) {
		for _, scope := range scopes {
			require.Equal(t, "1", h.send(call(scope, "count")).text())
		}
	}, scenario)
}

// H-F2: a call that comes after a close gets a new session, which that close does not end,
// also if the store is slow.
func TestCallAfterTheCloseOfARememberedSessionGetsANewOne(t *testing.T) {
	withRememberedSessions(t, supervisor.Config{Store: slowStore{new(resume.Memory)}}, []string{"a"}, func(h *harness, e *testServer) {
		closed := h.send(&messages.CloseScope{Scope: "a"})
		p := h.send(call("a", "count"))
		require.Equal(t, "1", p.text(), "the state of the closed session is gone")
		require.EqualValues(t, 2, p.ok().Generation)
		require.Equal(t, 1, closed.reply().(*messages.Closed).Sessions)
		p = h.send(call("a", "count"))
		require.Equal(t, "2", p.text())
		require.False(t, p.ok().Replayed, "its session is not touched")
		require.Equal(t, 1, e.Sessions())
	})
}

// H-F2: a remembered session is ended within the cap, and before its successor opens.
func TestRememberedSessionIsEndedWithinTheCapAndBeforeItsSuccessorOpens(t *testing.T) {
	e := serve(t, faults.NewTools())
	defer e.close()
	cfg := supervisor.Config{Store: new(resume.Memory), LeaveOpen: true, Servers: []mcpbridge.Server{{Name: "s", URL: e.URL()}}}
	h := start(t, cfg)
	for _, scope := range []string{"a", "b", "c"} {
		h.send(call(scope, "count")).ok()
	}
	h.stopAndVerify()
	cfg.MaxSessions = 1
	h = start(t, cfg)
	e.Inject("", func(rw http.ResponseWriter, r *faults.Request, next http.Handler) {
		if r.Method == http.MethodDelete {
			time.Sleep(100 * time.Millisecond)
		}
		next.ServeHTTP(rw, r.Request)
	})
	closed := h.send(&messages.CloseAll{})
	for _, scope := range []string{"b", "a", "c"} {
		require.Equal(t, "1", h.send(call(scope, "count")).text())
	}
	require.Equal(t, 3, closed.reply().(*messages.Closed).Sessions)
	require.Empty(t, h.dials.violations())
	require.Equal(t, 1, h.dials.mostOpen())
	h.stopAndVerify()
}

// H-F2: a remembered session that could not be ended stays a leftover, in this process and
// in the next one. It is not resumed.
func TestRememberedSessionThatCouldNotBeEndedIsTriedAgain(t *testing.T) {
	refuse := func(e *testServer) (heal func()) {
		return e.Inject("", func(rw http.ResponseWriter, r *faults.Request, next http.Handler) {
			if r.Method == http.MethodDelete {
				rw.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(rw, r.Request)
		})
	}
	for name, between := range map[string]func(h *harness){
		"at once": func(*harness) {},
		"with a successor": func(h *harness) {
			p := h.send(call("a", "count"))
			require.Equal(h.t, "1", p.text())
			require.EqualValues(h.t, 2, p.ok().Generation)
		},
	} {
		t.Run(name, func(t *testing.T) {
			withRememberedSessions(t, supervisor.Config{}, []string{"a"}, func(h *harness, e *testServer) {
				h.overlaps = nil // the server refuses to end the first session
				heal := refuse(e)
				closed := h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
				require.Zero(t, closed.Sessions)
				require.Len(t, closed.Left, 1)
				between(h)
				heal()
				closed = h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
				require.Empty(t, closed.Left)
				require.Positive(t, closed.Sessions)
				require.Zero(t, e.Sessions())
			})
		})
	}
	t.Run("once, also if the store is slow", func(t *testing.T) {
		runProcesses(t, supervisor.Config{Store: slowStore{new(resume.Memory)}, LeaveOpen: true}, func(h *harness, e *testServer) {
			h.send(call("a", "count")).ok()
			heal := refuse(e)
			require.Len(t, h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Left, 1)
			heal()
			require.Equal(t, 1, h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Sessions)
			require.Zero(t, e.Sessions())
		})
	})
	t.Run("by the next process", func(t *testing.T) {
		e := serve(t, faults.NewTools())
		defer e.close()
		cfg := supervisor.Config{Store: new(resume.Memory), LeaveOpen: true, Servers: []mcpbridge.Server{{Name: "s", URL: e.URL()}}}
		h := start(t, cfg)
		h.send(call("a", "count")).ok()
		heal := refuse(e)
		require.Len(t, h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Left, 1)
		var stop *supervisor.StopError
		require.ErrorAs(t, h.sup.Stop(t.Context()), &stop)
		require.Len(t, stop.Left, 1)
		heal()
		h = start(t, cfg)
		require.Equal(t, 1, h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Sessions)
		require.Zero(t, e.Sessions())
		h.stopAndVerify()
	})
}

// H-F2: no generation is used twice as long as the store is kept, however the session
// before has ended.
func TestGenerationGrowsAsLongAsTheStoreIsKept(t *testing.T) {
	ends := map[string]func(h *harness, e *testServer){
		"by a close": func(h *harness, _ *testServer) { h.send(&messages.CloseScope{Scope: "a"}).reply() },
		"by the cap": func(h *harness, _ *testServer) { h.send(call("b", "count")).ok() },
		"by time":    func(h *harness, _ *testServer) { awaitEvent(h, func(*messages.SessionClosed) bool { return true }) },
		"by a reload": func(h *harness, e *testServer) {
			changed := e.config()
			changed.KeepAlive = time.Hour
			_, err := h.sup.Reload(h.t.Context(), []mcpbridge.Server{changed})
			require.NoError(h.t, err)
		},
		"by Stop": func(*harness, *testServer) {},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			cfg := supervisor.Config{Store: new(resume.Memory), LeaveOpen: true, MaxSessions: 1, IdleTimeout: 200 * time.Millisecond}
			if name == "by Stop" {
				cfg.LeaveOpen = false
			}
			var last uint64
			life := func(h *harness, e *testServer) {
				p := h.send(call("a", "count"))
				require.Equal(t, "1", p.text())
				require.Greater(t, p.ok().Generation, last)
				last = p.ok().Generation
				end(h, e)
			}
			runProcesses(t, cfg, life, life, life)
		})
	}
}

// H-F2: Reload ends the remembered sessions of a server that it changes, also if they belong to the server as it was before.
func TestReloadEndsTheRememberedSessionsOfAServerThatChanged(t *testing.T) {
	for name, change := range map[string]func(*mcpbridge.Server){
		"its keepalive": func(s *mcpbridge.Server) { s.KeepAlive = time.Hour },
		"its URL":       func(s *mcpbridge.Server) { s.URL += "/moved" },
		"its headers": func(s *mcpbridge.Server) {
			s.Headers, s.InsecureCredentials = map[string]string{"X-Tenant": "another"}, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			withRememberedSessions(t, supervisor.Config{}, []string{"a", "b"}, func(h *harness, e *testServer) {
				changed := e.config()
				change(&changed)
				closed, err := h.sup.Reload(h.t.Context(), []mcpbridge.Server{changed})
				require.NoError(t, err)
				require.Equal(t, 2, closed.Sessions)
				require.Zero(t, e.Sessions())
				p := h.send(call("a", "count"))
				require.Equal(t, "1", p.text())
				require.EqualValues(t, 2, p.ok().Generation)
			})
		})
	}
}

// H-F2: and it ends those of a server that it removes.
func TestReloadEndsTheRememberedSessionsOfAServerThatIsRemoved(t *testing.T) {
	withRememberedSessions(t, supervisor.Config{}, []string{"a", "b"}, func(h *harness, e *testServer) {
		other := e.config()
		other.Name = "other"
		closed, err := h.sup.Reload(h.t.Context(), []mcpbridge.Server{other})
		require.NoError(t, err)
		require.Equal(t, 2, closed.Sessions)
		require.Zero(t, e.Sessions())
	})
}

// H-F2: a close ends the remembered sessions of very many keys a few at a time.
func TestCloseEndsManyRememberedSessionsAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(resume.Memory)
		const n = 200
		f := newFakeServer()
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
		cfg = dial.Replace(cfg, f)
		h := start(t, cfg)
		closed := h.send(&messages.CloseAll{})
		require.Equal(t, n, closed.reply().(*messages.Closed).Sessions)
		require.LessOrEqual(t, most.Load(), int32(16))
		began := time.Now()
		require.Zero(t, h.send(&messages.CloseAll{}).reply().(*messages.Closed).Sessions)
		require.Zero(t, time.Since(began), "what has ended needs no connection")
		h.server, h.executed = f, f.executions
		h.stopAndVerify()
		time.Sleep(3 * time.Second) // synctest
	})
}

// H-F3: all sessions of a key that could not be closed are kept, reported and tried again.
func TestAllSessionsOfAKeyThatCouldNotBeClosedAreKept(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.server.set(func() { h.server.close = func(context.Context, messages.Key) error { return errors.New("503") } })
		for n := range 3 {
			h.send(call("a", "count")).ok()
			closed := h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
			require.Len(t, closed.Left, n+1)
			require.Zero(t, closed.Sessions)
		}
		h.server.set(func() { h.server.close = nil })
		closed := h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
		require.Equal(t, 3, closed.Sessions)
		require.Empty(t, closed.Left)
		require.Empty(t, h.server.sessions)
	})
}
