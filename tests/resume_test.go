package tests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// runProcesses runs scenarios one after the other in a bubble of fake time, over HTTP without
// a socket, on one server. Each has a new supervisor, as after a restart of the process.
func runProcesses(t *testing.T, cfg supervisor.Config, all ...func(h *harness, e *testServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { runLives(t, cfg, all...) })
}

// runLives is runProcesses in a bubble that there is already.
func runLives(t *testing.T, cfg supervisor.Config, all ...func(h *harness, e *testServer)) {
	t.Helper()
	tools := faults.NewTools()
	e := &testServer{faults.Local(tools.Handler), tools, t}
	defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
	defer e.close()
	if len(cfg.Servers) == 0 {
		cfg.Servers = []mcpbridge.Server{e.config()}
	}
	cfg.Servers[0].HTTPClient = &http.Client{Transport: e.Server}
	for _, life := range all {
		h := start(t, cfg)
		life(h, e)
		h.stopAndVerify()
	}
}

// storedRecord returns the record of scope "a" in a store.
func storedRecord(t *testing.T, store mcpbridge.Store) *mcpbridge.Record {
	t.Helper()
	r, err := store.Load(t.Context(), messages.Key{Server: "s", Scope: "a"})
	require.NoError(t, err)
	return r
}

func TestSessionIsResumedAfterARestartOfOurProcess(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) mcpbridge.Store{
		"memory": func(*testing.T) mcpbridge.Store { return new(resume.Memory) },
		"file": func(t *testing.T) mcpbridge.Store {
			file, err := resume.Open(filepath.Join(t.TempDir(), "sessions"), resume.Config{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, file.Close()) })
			return file
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := open(t)
				runLives(t, supervisor.Config{Store: store, LeaveOpen: true}, func(h *harness, e *testServer) {
					require.Equal(t, "1", h.send(call("a", "count")).text())
					require.Equal(t, 1, e.Count("initialize"))
				}, func(h *harness, e *testServer) {
					require.Equal(t, 1, e.Sessions(), "it was left open")
					p := h.send(call("a", "count"))
					require.Equal(t, "2", p.text(), "its state is kept")
					require.EqualValues(t, 1, p.ok().Generation)
					require.Equal(t, 1, e.Count("initialize"), "without a new one")
					require.True(t, awaitEvent(h, func(*messages.SessionOpened) bool { return true }).Attached)

					id := storedRecord(h.t, store).SessionID
					e.Expire(faults.Expiries()[0])
					require.Equal(t, "1", h.send(call("a", "count")).text())
					require.NotEqual(t, id, storedRecord(h.t, store).SessionID, "an id that changed is written at once")
					require.EqualValues(t, 2, storedRecord(h.t, store).Generation)
				}, func(h *harness, e *testServer) {
					p := h.send(call("a", "count"))
					require.Equal(t, "2", p.text())
					require.EqualValues(t, 2, p.ok().Generation)
					h.send(&messages.CloseScope{Scope: "a"}).reply()
					require.False(t, storedRecord(h.t, store).Valid(), "what is closed is forgotten")
					require.Zero(t, e.Sessions())
				})
			})
		})
	}
}

func TestSessionThatIsGoneAfterARestartOfOurProcessHasExpired(t *testing.T) {
	for _, form := range faults.Expiries() {
		t.Run(form.Name, func(t *testing.T) {
			runProcesses(t, supervisor.Config{Store: new(resume.Memory), LeaveOpen: true}, func(h *harness, _ *testServer) {
				require.Equal(t, "1", h.send(call("a", "count")).text())
			}, func(h *harness, e *testServer) {
				e.Expire(form)
				p := h.send(call("a", "count"))
				require.Equal(t, "1", p.text())
				require.EqualValues(t, 2, p.ok().Generation, "who knew the generation before sees that its state is gone")
				require.EqualValues(t, 1, awaitEvent(h, func(*messages.SessionExpired) bool { return true }).Generation)
				require.False(t, awaitEvent(h, func(*messages.SessionOpened) bool { return true }).Attached)
				require.EqualValues(t, 1, h.inspect().Counters.Expired)
			})
		})
	}
}

func TestStopEndsRememberedSessionsUnlessItIsToldToLeaveThem(t *testing.T) {
	store := new(resume.Memory)
	runProcesses(t, supervisor.Config{Store: store}, func(h *harness, _ *testServer) {
		require.Equal(t, "1", h.send(call("a", "count")).text())
		require.NotNil(t, storedRecord(h.t, store))
	}, func(h *harness, e *testServer) {
		require.False(t, storedRecord(h.t, store).Valid())
		require.Zero(t, e.Sessions())
		p := h.send(call("a", "count"))
		require.Equal(t, "1", p.text())
		require.EqualValues(t, 2, p.ok().Generation, "a generation is not used twice")
	})
}

// The order of a shutdown with LeaveOpen: an owner that ends before Stop closes the sessions of its scopes.
func TestStopLeavesTheSessionsOfOwnersOpenIfItComesFirst(t *testing.T) {
	for _, first := range []bool{true, false} {
		runProcesses(t, supervisor.Config{Store: new(resume.Memory), LeaveOpen: true}, func(h *harness, _ *testServer) {
			pid := owner(h)
			bind(h, "a", pid)
			require.Equal(t, "1", h.send(call("a", "count")).text())
			if first {
				h.stop()
			}
			h.system.Root.Stop(pid)
			if !first {
				requireEvents[*messages.SessionClosed](h, 1)
			}
		}, func(h *harness, _ *testServer) {
			require.Equal(t, map[bool]string{true: "2", false: "1"}[first], h.send(call("a", "count")).text())
		})
	}
}

func TestSessionIdIsShownToNoOtherServer(t *testing.T) {
	store := new(resume.Memory)
	cfg := supervisor.Config{Store: store, LeaveOpen: true}
	runProcesses(t, cfg, func(h *harness, _ *testServer) { h.send(call("a", "count")).ok() })
	cfg.Servers = []mcpbridge.Server{serverAt("s", "http://other.invalid")}
	runProcesses(t, cfg, func(h *harness, e *testServer) {
		require.Equal(t, "1", h.send(call("a", "count")).text())
		require.Equal(t, 1, e.Count("initialize"))
		require.Zero(t, e.Count("ping"), "nobody has tried to attach")
	})
}

// failingStore is a store whose methods all do the same, such as to return an error.
type failingStore struct {
	how func(ctx context.Context) error
}

func (f failingStore) Load(ctx context.Context, _ messages.Key) (*mcpbridge.Record, error) {
	return nil, f.how(ctx)
}

func (f failingStore) Save(ctx context.Context, _ messages.Key, _ *mcpbridge.Record) error {
	return f.how(ctx)
}
func (f failingStore) Keys(ctx context.Context) ([]messages.Key, error) { return nil, f.how(ctx) }
func (f failingStore) Delete(ctx context.Context, _ messages.Key) error { return f.how(ctx) }

func TestStoreThatFailsKeepsNothingFromBeingServed(t *testing.T) {
	for name, how := range map[string]func(ctx context.Context) error{
		"fails":  func(context.Context) error { return errors.New("disk full") },
		"panics": func(context.Context) error { panic("a bug") },
		"hangs":  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			cfg := supervisor.Config{Store: failingStore{how}, CloseTimeout: 200 * time.Millisecond, Logger: zerolog.New(zerolog.SyncWriter(&log))}
			runProcesses(t, cfg, func(h *harness, _ *testServer) {
				require.Equal(t, "1", h.send(call("a", "count")).text())
				require.Equal(t, "2", h.send(call("a", "count")).text())
			})
			require.Contains(t, log.String(), "store failed to load")
			require.Contains(t, log.String(), "store failed to save")
			require.Contains(t, log.String(), "store failed to list")
		})
	}
}

// flakyStore fails while it is told to.
type flakyStore struct {
	resume.Memory
	fails atomic.Bool
}

func (f *flakyStore) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	if f.fails.Load() {
		return nil, errors.New("no connection")
	}
	return f.Memory.Load(ctx, key)
}

func (f *flakyStore) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	if f.fails.Load() {
		return errors.New("no connection")
	}
	return f.Memory.Save(ctx, key, record)
}

// Otherwise a process that follows resumes an earlier session, or none.
func TestSessionThatTheStoreDidNotTakeIsSavedLater(t *testing.T) {
	store, log := new(flakyStore), new(strings.Builder)
	cfg := supervisor.Config{Store: store, LeaveOpen: true, Logger: zerolog.New(zerolog.SyncWriter(log)).Level(zerolog.InfoLevel)}
	runProcesses(t, cfg, func(h *harness, e *testServer) {
		require.Equal(t, "1", h.send(call("a", "count")).text())
		store.fails.Store(true)
		e.Expire(faults.Expiries()[0])
		require.Equal(t, "1", h.send(call("a", "count")).text())
		time.Sleep(21 * time.Second) // synctest
		synctest.Wait()              // for the line to be written
		require.Equal(t, 1, strings.Count(log.String(), "store failed to"), "it is said once")
		store.fails.Store(false)
		time.Sleep(5 * time.Second) // synctest
		require.EqualValues(t, 2, storedRecord(h.t, store).Generation)
	}, func(h *harness, _ *testServer) {
		p := h.send(call("a", "count"))
		require.Equal(t, "2", p.text(), "its state is kept")
		require.EqualValues(t, 2, p.ok().Generation)
	})
}

// H-D9: a store that never returns delays the opening of at most one session every 5 s, and neither other
// calls nor Stop, and it holds a bounded number of goroutines.
func TestStoreThatIgnoresItsContextDelaysOneSession(t *testing.T) {
	release := lazyChannel()
	var hangs atomic.Bool
	store := failingStore{func(context.Context) error {
		if hangs.Load() {
			<-release()
		}
		return nil
	}}
	var log strings.Builder
	inFakeTime(t, supervisor.Config{Store: store, Logger: zerolog.New(zerolog.SyncWriter(&log))}, func(h *harness) {
		h.send(call("open", "count")).ok()
		hangs.Store(true)
		synctest.Wait()
		before, delays := runtime.NumGoroutine(), 0
		for n := range 100 {
			began := time.Now()
			require.Equal(t, "1", h.send(call(fmt.Sprint("new", n), "count", within(3*time.Second))).text())
			if time.Since(began) > 0 {
				delays++
			}
			h.send(call("open", "count")).ok()
		}
		require.Equal(t, 1, delays, "all of them in less than the pause")
		require.LessOrEqual(t, runtime.NumGoroutine(), before+100+64, "one for each session, and not one for each request to the store")
		synctest.Wait()
		require.Contains(t, log.String(), `"error":"the store does not return"`)
		require.Contains(t, log.String(), `"error":"the store has not answered lately"`)

		began := time.Now()
		require.Equal(t, 1, h.send(&messages.CloseScope{Scope: "open"}).reply().(*messages.Closed).Sessions)
		h.stop()
		require.Less(t, time.Since(began), 10*time.Second)
		close(release())
	})
}

func TestRecordThatMakesNoSenseIsIgnored(t *testing.T) {
	for name, spoil := range map[string]func(*mcpbridge.Record){
		"no server":     func(r *mcpbridge.Record) { r.Server = nil },
		"no id":         func(r *mcpbridge.Record) { r.SessionID = "" },
		"no header":     func(r *mcpbridge.Record) { r.SessionID = "a\r\nX-Evil: 1" },
		"other server":  func(r *mcpbridge.Record) { r.Endpoint = "" },
		"unknown id":    func(r *mcpbridge.Record) { r.SessionID = "nonsense" },
		"odd protocol":  func(r *mcpbridge.Record) { r.Server.ProtocolVersion = "1999-12-31" },
		"no capability": func(r *mcpbridge.Record) { r.Server.Capabilities = nil },
	} {
		t.Run(name, func(t *testing.T) {
			store := new(resume.Memory)
			runProcesses(t, supervisor.Config{Store: store, LeaveOpen: true, BackoffBase: time.Millisecond}, func(h *harness, _ *testServer) {
				h.send(call("a", "count")).ok()
				r := storedRecord(h.t, store)
				spoil(r)
				require.NoError(t, store.Save(h.t.Context(), messages.Key{Server: "s", Scope: "a"}, r))
			}, func(h *harness, _ *testServer) {
				h.send(call("a", "count")).ok()
			})
		})
	}
}

func TestSessionOfBeforeOurRestartIsClosedOnCommand(t *testing.T) {
	store := new(resume.Memory)
	open := func(h *harness, e *testServer) {
		h.send(call("a", "count")).ok()
		h.send(call("b", "count")).ok()
		require.Equal(t, 2, e.Sessions())
	}
	left := supervisor.Config{Store: store, LeaveOpen: true, CloseTimeout: time.Second}
	runProcesses(t, left, open, func(h *harness, e *testServer) {
		closed := h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
		require.Equal(t, 1, closed.Sessions)
		require.Empty(t, closed.Left)
		require.Equal(t, 1, e.Sessions())
		require.False(t, storedRecord(h.t, store).Valid())
		require.Equal(t, "1", h.send(call("a", "count")).text(), "nothing of it is left")
		require.Equal(t, "2", h.send(call("b", "count")).text())
	}, func(h *harness, e *testServer) {
		e.ExpireSome(1, faults.Expiries()[0])
		closed := h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
		require.Empty(t, closed.Left, "gone by itself, or ended")
		heal := e.Inject("DELETE", faults.Refuse(503, ""))
		closed = h.send(&messages.CloseAll{}).reply().(*messages.Closed)
		require.Zero(t, closed.Sessions)
		require.Len(t, closed.Left, 1)
		require.Contains(t, closed.Left[0].Reason, "503")
		heal()
		closed = h.send(&messages.CloseAll{}).reply().(*messages.Closed)
		require.Empty(t, closed.Left)
		require.Zero(t, e.Sessions(), "it was not forgotten before it had ended")
	})
}

// When a server refuses to resume a session, and accepts a new one, the session is
// replaced, whatever the status of the refusal.
func TestSessionThatCannotBeResumedIsReplaced(t *testing.T) {
	for _, status := range []int{400, 401, 403, 422, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			store := new(resume.Memory)
			cfg := supervisor.Config{Store: store, LeaveOpen: true, BackoffBase: time.Millisecond}
			runProcesses(t, cfg, func(h *harness, _ *testServer) {
				h.send(call("a", "count")).ok()
			}, func(h *harness, e *testServer) {
				old := storedRecord(h.t, store).SessionID
				e.Inject("", func(rw http.ResponseWriter, r *faults.Request, next http.Handler) {
					if r.Session == old {
						rw.WriteHeader(status)
						return
					}
					next.ServeHTTP(rw, r.Request)
				})
				p := h.send(call("a", "count"))
				require.Equal(t, "1", p.text())
				require.EqualValues(t, 2, p.ok().Generation)
				awaitEvent(h, func(*messages.SessionExpired) bool { return true })
				h.overlaps = nil // the refused session could not be ended
			})
		})
	}
}
