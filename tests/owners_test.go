package tests

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// owner spawns an actor that does nothing.
func owner(h *harness) *actor.PID {
	return h.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
}

// bind binds a scope, and waits for the reply.
func bind(h *harness, scope string, owner *actor.PID) {
	h.t.Helper()
	r := h.send(&messages.Bind{ID: "b", Scope: scope, Owner: owner}).reply()
	require.Equal(h.t, &messages.Bound{ID: "b", Scope: messages.Key{Scope: scope}.Normal().Scope}, r)
}

// ownedBy makes an operation belong to an actor.
func ownedBy(pid *actor.PID) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.Owner = pid }
}

// orphaned waits for the failure of an operation whose owner has terminated.
func (p *sentCommand) orphaned() *messages.Failure {
	p.h.t.Helper()
	f := p.fails(messages.CodeCancelled)
	require.Equal(p.h.t, "its owner has terminated", f.Detail)
	return f
}

// terminations returns the events of owners that have terminated.
func terminations(h *harness) (all []*messages.OwnerTerminated) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, event := range h.events {
		if e, ok := event.(*messages.OwnerTerminated); ok {
			all = append(all, e)
		}
	}
	return all
}

// watched is a process that can be watched like an actor, and shows who watches it.
type watched struct {
	h   *harness
	pid *actor.PID

	mu       sync.Mutex
	watchers map[string]*actor.PID
	watches  int // how often it was watched
	got      []any
	watched  []bool // whether it was watched when it got a message
}

func newWatched(h *harness) *watched {
	w := &watched{h: h, watchers: map[string]*actor.PID{}}
	w.pid, _ = h.system.ProcessRegistry.Add(w, h.system.ProcessRegistry.NextId())
	return w
}

func (w *watched) Stop(*actor.PID) {}

func (w *watched) SendUserMessage(_ *actor.PID, msg any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, actor.UnwrapEnvelopeMessage(msg))
	w.watched = append(w.watched, len(w.watchers) > 0)
}

func (w *watched) SendSystemMessage(_ *actor.PID, msg any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch msg := msg.(type) {
	case *actor.Watch:
		w.watchers[msg.Watcher.Id] = msg.Watcher
		w.watches++
	case *actor.Unwatch:
		delete(w.watchers, msg.Watcher.Id)
	}
}

// count returns how many actors watch it, and how often it was watched.
func (w *watched) count() (watchers, watches int) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.watchers), w.watches
}

// terminate tells the watchers that it has terminated, as Proto.Actor does.
func (w *watched) terminate() {
	w.h.system.ProcessRegistry.Remove(w.pid)
	w.mu.Lock()
	watchers := slices.Collect(maps.Values(w.watchers))
	clear(w.watchers)
	w.mu.Unlock()
	for _, watcher := range watchers {
		process, _ := w.h.system.ProcessRegistry.Get(watcher)
		process.SendSystemMessage(watcher, &actor.Terminated{Who: w.pid})
	}
}

// onThreeServers is a configuration with the servers "s", "other" and "third".
var onThreeServers = supervisor.Config{Servers: []mcpbridge.Server{{Name: "third", URL: "http://third.invalid"}}}

func TestAnOwnerThatStopsTakesItsScopeAlongOnAllServers(t *testing.T) {
	inFakeTime(t, onThreeServers, func(h *harness) {
		var calls []*sentCommand
		for _, server := range []string{"s", "other", "third"} {
			calls = append(calls, h.calls(2, "a", "hang", on(server))...)
		}
		others := h.send(call("b", "slow"))
		time.Sleep(time.Millisecond)
		pid := owner(h)
		bind(h, "a", pid) // while the calls run
		synctest.Wait()
		require.False(t, calls[0].answered())
		h.system.Root.Stop(pid)
		for _, p := range calls {
			require.True(t, p.orphaned().MayHaveRun)
		}
		requireEvents[*messages.SessionClosed](h, 3)
		require.Equal(t, "done", others.text(), "another scope is left alone")
		e := terminations(h)
		require.Len(t, e, 1)
		require.Equal(t, []string{"a"}, e[0].Scopes)
		require.Equal(t, 6, e[0].Cancelled)
		require.Equal(t, pid.Address+"/"+pid.Id, e[0].Owner)
		require.WithinDuration(t, time.Now(), e[0].Time, 2*time.Second)
		require.Zero(t, e[0].Key)

		require.Equal(t, "1", h.send(call("a", "count")).text(), "a later call begins anew, without an owner")
		require.EqualValues(t, 2, h.session("a").Generation)
	})
}

func TestAnEndOfAnOwnerAnswersWaitingCallsToo(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxInFlight: 1}, func(h *harness) {
		pid := owner(h)
		bind(h, "a", pid)
		calls := h.calls(5, "a", "hang")
		time.Sleep(time.Millisecond)
		h.system.Root.Stop(pid)
		ran := 0
		for _, p := range calls {
			if p.orphaned().MayHaveRun {
				ran++
			}
		}
		require.Equal(t, 1, ran)
	})
}

func TestAnOwnerThatIsRestartedKeepsItsScope(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.strict = false // the panic of the owner is a supervision event
		restarted := make(chan bool, 1)
		pid := h.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			switch c.Message().(type) {
			case string:
				panic("a bug of the agent")
			case *actor.Restarting:
				restarted <- true
			}
		}))
		bind(h, "a", pid)
		one, mine := h.send(call("a", "slow")), h.send(call("b", "slow", ownedBy(pid)))
		h.system.Root.Send(pid, "fall")
		<-restarted
		require.Equal(t, "done", one.text())
		require.Equal(t, "done", mine.text())
		require.Empty(t, terminations(h))
		require.NotNil(t, h.session("a"))

		h.system.Root.Stop(pid)
		requireEvents[*messages.OwnerTerminated](h, 1)
		requireEvents[*messages.SessionClosed](h, 1)
	})
}

func TestAnOwnerThatItsSupervisorStopsAfterAPanicTakesItsScopeAlong(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.strict = false // the panic of the owner is a supervision event
		agent := actor.PropsFromFunc(func(c actor.Context) {
			if _, fall := c.Message().(string); fall {
				panic("a bug of the agent")
			}
		})
		stop := actor.WithSupervisor(actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective }))
		spawned := make(chan *actor.PID, 1)
		parent := h.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if _, ok := c.Message().(*actor.Started); ok {
				spawned <- c.Spawn(agent)
			}
		}, stop))
		pid := <-spawned
		bind(h, "a", pid)
		p := h.send(call("a", "hang"))
		time.Sleep(time.Millisecond)
		h.system.Root.Send(pid, "fall")
		p.orphaned()
		requireEvents[*messages.OwnerTerminated](h, 1)
		h.system.Root.Stop(parent)
	})
}

func TestAnOwnerThatIsGoneBeforeTheCommandComesIsTreatedAlike(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		pid := owner(h)
		p := h.send(call("a", "hang"))
		time.Sleep(time.Millisecond)
		h.system.Root.Stop(pid)
		synctest.Wait()
		bind(h, "a", pid)
		p.orphaned()
		requireEvents[*messages.OwnerTerminated](h, 1)
		requireEvents[*messages.SessionClosed](h, 1)

		never := actor.NewPID(h.system.Address(), "nobody")
		bind(h, "b", never)
		requireEvents[*messages.OwnerTerminated](h, 2)
		elsewhere := actor.NewPID("192.0.2.1:1", "nobody")
		bind(h, "b", elsewhere)
		requireEvents[*messages.OwnerTerminated](h, 3)

		for _, gone := range []*actor.PID{pid, never, elsewhere} {
			require.False(t, h.send(call("c", "count", ownedBy(gone))).orphaned().MayHaveRun)
		}
		require.Nil(t, h.session("c"), "nothing was sent")
	})
}

func TestOneOwnerOfTwoScopesIsWatchedOnce(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		w := newWatched(h)
		bind(h, "b", w.pid)
		bind(h, "a", w.pid)
		bind(h, "a", w.pid)
		one, two := h.send(call("a", "hang")), h.send(call("b", "hang", ownedBy(w.pid)))
		watchers, watches := w.count()
		require.Equal(t, 1, watchers)
		require.Equal(t, 1, watches)
		w.terminate()
		one.orphaned()
		two.orphaned()
		e := awaitEvent(h, func(*messages.OwnerTerminated) bool { return true })
		require.Equal(t, []string{"a", "b"}, e.Scopes)
		require.Equal(t, 2, e.Cancelled, "a call that is bound twice counts once")
	})
}

func TestTheLastOfTwoOwnersDecides(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		first, second := newWatched(h), newWatched(h)
		bind(h, "a", first.pid)
		bind(h, "a", second.pid)
		watchers, _ := first.count()
		require.Zero(t, watchers, "the first one is not watched any more")
		p := h.send(call("a", "hang"))
		time.Sleep(time.Millisecond)
		first.terminate()
		synctest.Wait()
		require.False(t, p.answered())
		second.terminate()
		p.orphaned()
		requireEvents[*messages.OwnerTerminated](h, 1)
	})
}

func TestABindingCanBeRemoved(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		w := newWatched(h)
		bind(h, "", w.pid)
		bind(h, messages.DefaultScope, nil)
		watchers, watches := w.count()
		require.Zero(t, watchers)
		require.Equal(t, 1, watches)
		w.terminate()
		h.send(&messages.Bind{Scope: strings.Repeat("x", 2000)}).fails(messages.CodeInvalid)
		require.Equal(t, "1", h.send(call("", "count")).text())
		require.Empty(t, terminations(h))
	})
}

func TestACallEndsWithItsOwnerAndTheSessionStays(t *testing.T) {
	for name, cfg := range map[string]supervisor.Config{
		"without interceptors": {},
		"with interceptors": withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
			return next(ctx, op)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, cfg, func(h *harness) {
				w := newWatched(h)
				mine := append(h.calls(3, "a", "hang", ownedBy(w.pid)), h.calls(3, "b", "hang", ownedBy(w.pid), on("other"))...)
				others := h.send(call("a", "slow"))
				time.Sleep(time.Millisecond)
				watchers, watches := w.count()
				require.Equal(t, 1, watchers)
				require.Equal(t, 1, watches)
				w.terminate()
				for _, p := range mine {
					require.True(t, p.fails(messages.CodeCancelled).MayHaveRun)
				}
				require.Equal(t, "done", others.text())
				e := awaitEvent(h, func(*messages.OwnerTerminated) bool { return true })
				require.Empty(t, e.Scopes)
				require.Equal(t, 6, e.Cancelled)
				require.Zero(t, countEvents[*messages.SessionClosed](h))
			})
		})
	}
}

func TestACallThatAnInterceptorHoldsEndsWithItsOwner(t *testing.T) {
	hold := withInterceptors(func(ctx context.Context, op messages.Operation, next actors.Runner) (messages.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	inFakeTime(t, hold, func(h *harness) {
		one, two := newWatched(h), newWatched(h)
		bind(h, "a", one.pid)
		first, second := h.send(call("a", "count")), h.send(call("b", "count", ownedBy(two.pid)))
		time.Sleep(time.Millisecond)
		one.terminate()
		require.False(t, first.orphaned().MayHaveRun)
		two.terminate()
		require.False(t, second.orphaned().MayHaveRun)
		for _, e := range terminations(h) {
			require.Equal(t, 1, e.Cancelled)
		}
	})
}

// Nothing of an owner is kept: it is not watched once nothing belongs to it, whatever became of its
// calls.
func TestAnOwnerIsNotWatchedLongerThanNeeded(t *testing.T) {
	for name, end := range map[string]func(h *harness, w *watched){
		"answered": func(h *harness, w *watched) { h.send(call("a", "count", ownedBy(w.pid))).text() },
		"refused":  func(h *harness, w *watched) { h.send(call("a", "refuse", ownedBy(w.pid))).fails(messages.CodeInvalid) },
		"rejected": func(h *harness, w *watched) {
			h.send(call("a", "count", on("nowhere"), ownedBy(w.pid))).fails(messages.CodeUnknownServer)
		},
		"cancelled": func(h *harness, w *watched) {
			p := h.send(call("a", "hang", ownedBy(w.pid)))
			time.Sleep(time.Millisecond)
			h.cancel(p)
			p.fails(messages.CodeCancelled)
		},
		"deadline": func(h *harness, w *watched) {
			h.send(call("a", "hang", ownedBy(w.pid), within(time.Second))).fails(messages.CodeDeadline)
		},
		"deadline while dialing": func(h *harness, w *watched) {
			h.server.set(func() {
				h.server.dial = func(ctx context.Context, _ dial.Request) error { <-ctx.Done(); return ctx.Err() }
			})
			h.send(call("b", "hang", ownedBy(w.pid), within(time.Second))).reply()
		},
		"session closed": func(h *harness, w *watched) {
			p := h.send(call("a", "hang", ownedBy(w.pid)))
			time.Sleep(time.Millisecond)
			h.send(&messages.CloseAll{}).reply()
			p.fails(messages.CodeClosed)
		},
		"session stopped by other code": func(h *harness, w *watched) {
			h.strict = false
			p := h.send(call("a", "hang", ownedBy(w.pid)))
			time.Sleep(time.Millisecond)
			for _, id := range sessionsOf(h) {
				h.system.Root.Stop(actor.NewPID(h.system.Address(), id))
			}
			p.fails(messages.CodeClosed)
		},
		"lost": func(h *harness, w *watched) {
			p := h.send(call("a", "hang", ownedBy(w.pid)))
			time.Sleep(time.Millisecond)
			h.server.breakConnection("a", true)
			p.fails(messages.CodeLost)
		},
		"expired and replayed": func(h *harness, w *watched) {
			h.send(call("a", "count")).text()
			h.server.expire("a")
			h.send(call("a", "count", ownedBy(w.pid))).text()
		},
		"scope closed": func(h *harness, w *watched) {
			bind(h, "a", w.pid)
			h.send(call("a", "count", ownedBy(w.pid))).text()
			h.send(&messages.CloseScope{Scope: "a"}).reply()
			watchers, _ := w.count()
			require.Equal(h.t, 1, watchers, "a close keeps the binding")
			bind(h, "a", nil)
		},
		"supervisor stopped": func(h *harness, w *watched) {
			bind(h, "a", w.pid)
			p := h.send(call("a", "slow", ownedBy(w.pid)))
			h.stop()
			p.reply()
			h.send(&messages.Bind{Scope: "a", Owner: w.pid}).fails(messages.CodeClosed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, supervisor.Config{}, func(h *harness) {
				w := newWatched(h)
				end(h, w)
				watchers, _ := w.count()
				require.Zero(t, watchers)
				w.terminate()
				synctest.Wait()
				require.Empty(t, terminations(h))
			})
		})
	}
}

// sessionsOf returns the ids of all session actors.
func sessionsOf(h *harness) (ids []string) {
	for _, bucket := range h.system.ProcessRegistry.LocalPIDs.LocalPIDs {
		for _, id := range bucket.Keys() {
			if strings.Contains(id, "session") {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func TestAnOwnerMayTerminateWhileItsSessionIsNotReady(t *testing.T) {
	for name, prepare := range map[string]func(h *harness){
		"dialing": func(h *harness) {
			h.server.set(func() {
				h.server.dial = func(ctx context.Context, _ dial.Request) error { <-ctx.Done(); return ctx.Err() }
			})
		},
		"its server is down": func(h *harness) {
			h.server.set(func() {
				h.server.dial = func(context.Context, dial.Request) error {
					return &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Absent, Detail: "connection refused"}
				}
			})
		},
		"draining": func(h *harness) {
			h.send(call("a", "count")).text()
			h.send(call("a", "slow"))
			time.Sleep(time.Millisecond)
			h.send(&messages.CloseScope{Scope: "a"})
			synctest.Wait()
			h.server.set(func() {
				h.server.dial = func(ctx context.Context, _ dial.Request) error { <-ctx.Done(); return ctx.Err() }
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, supervisor.Config{}, func(h *harness) {
				prepare(h)
				pid := owner(h)
				bind(h, "a", pid)
				one, mine := h.send(call("a", "count")), h.send(call("b", "count", ownedBy(pid)))
				time.Sleep(10 * time.Millisecond)
				began := time.Now()
				h.system.Root.Stop(pid)
				require.False(t, one.orphaned().MayHaveRun)
				require.False(t, mine.orphaned().MayHaveRun)
				require.Zero(t, time.Since(began))
				for _, p := range h.sent() {
					p.reply()
				}
				h.send(&messages.CloseAll{}).reply()
				require.Empty(t, h.inspect().Sessions)
			})
		})
	}
}

// A session that is evicted hands its waiting calls back, to be run by the next session of the key.
func TestAnOwnerMayTerminateWhileItsSessionIsEvicted(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 1, MaxInFlight: 1}, func(h *harness) {
		pid := owner(h)
		bind(h, "a", pid)
		bound, owned := h.calls(2, "a", "hang"), h.calls(2, "b", "hang", ownedBy(pid))
		time.Sleep(time.Millisecond)
		h.system.Root.Stop(pid)
		for _, p := range append(bound, owned...) {
			p.orphaned()
		}
		require.Equal(t, "1", h.send(call("c", "count")).text())
	})
}

func TestASupervisorThatStopsForgetsItsBindings(t *testing.T) {
	inFakeTime(t, supervisor.Config{DrainTimeout: 2 * time.Second}, func(h *harness) {
		w := newWatched(h)
		bind(h, "a", w.pid)
		p := h.send(call("a", "hang"))
		time.Sleep(time.Millisecond)
		stopped := make(chan bool)
		go func() { h.stop(); close(stopped) }()
		synctest.Wait()
		h.send(&messages.Bind{Scope: "b", Owner: w.pid}).fails(messages.CodeDraining)
		w.terminate() // while the supervisor drains
		p.orphaned()
		<-stopped
	})
}

// Many owners terminate at once. The verifier checks that each call has one reply.
func TestManyOwnersMayTerminateAtOnce(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 40}, func(h *harness) {
		var owners []*actor.PID
		var calls []*sentCommand
		for i := range 100 {
			pid := owner(h)
			owners = append(owners, pid)
			scope := fmt.Sprint("scope-", i)
			h.send(&messages.Bind{Scope: scope, Owner: pid})
			for _, tool := range []string{"slow", "hang", "count"} {
				calls = append(calls, h.send(call(scope, tool)), h.send(call("shared", tool, ownedBy(pid))))
			}
		}
		time.Sleep(300 * time.Millisecond)
		for _, pid := range owners {
			go h.system.Root.Stop(pid)
		}
		for _, p := range calls {
			p.reply()
		}
		requireEvents[*messages.OwnerTerminated](h, 100)
		h.send(&messages.CloseScope{Scope: "shared"}).reply()
		time.Sleep(time.Second)
		require.Empty(t, h.inspect().Sessions)
	})
}

// The server learns that a call is cancelled because its owner has terminated.
func TestTheServerSeesThatTheOwnerTerminated(t *testing.T) {
	for _, transport := range []string{"in memory", "http"} {
		t.Run(transport, func(t *testing.T) {
			running, ended, notified := make(chan bool, 2), make(chan bool, 2), make(chan bool, 2)
			server := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
			mcp.AddTool(server, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
				running <- true
				<-ctx.Done()
				ended <- true
				return nil, nil, ctx.Err()
			})
			server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					if method == "notifications/cancelled" {
						notified <- true
					}
					return next(ctx, method, req)
				}
			})
			s := mcpbridge.Server{Name: "s", InMemory: server, ProtocolVersion: "2025-11-25"}
			if transport == "http" {
				over, err := faults.Serve(func() http.Handler {
					return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
				})
				require.NoError(t, err)
				defer over.Close()
				s.InMemory, s.URL = nil, over.URL()
			}
			h := start(t, supervisor.Config{Servers: []mcpbridge.Server{s}})
			pid := owner(h)
			bind(h, "a", pid)
			bound, owned := h.send(call("a", "wait")), h.send(call("b", "wait", ownedBy(pid)))
			<-running
			<-running
			h.system.Root.Stop(pid)
			bound.orphaned()
			owned.orphaned()
			<-ended
			<-ended
			<-notified // the session of the bound one may be closed before it reads this
			h.stopAndVerify()
		})
	}
}

// listedStore counts how often its keys are listed.
type listedStore struct {
	mcpbridge.Store
	lists atomic.Int64
}

func (s *listedStore) Keys(ctx context.Context) ([]messages.Key, error) {
	s.lists.Add(1)
	return s.Store.Keys(ctx)
}

// The work at the end of an owner does not grow with its scopes times the records of the store.
func TestAnOwnerOfManyScopesHasTheStoreListedOnce(t *testing.T) {
	store := &listedStore{Store: new(resume.Memory)}
	inFakeTime(t, supervisor.Config{Store: store}, func(h *harness) {
		pid := owner(h)
		for i := range 100 {
			bind(h, fmt.Sprint("a", i), pid)
			h.send(call(fmt.Sprint("a", i), "count")).ok()
		}
		h.send(call("b", "count")).ok()
		h.system.Root.Stop(pid)
		requireEvents[*messages.SessionClosed](h, 100)
		synctest.Wait()
		require.EqualValues(t, 1, store.lists.Load())
		require.Len(t, h.inspect().Sessions, 1)
		require.Equal(t, "2", h.send(call("b", "count")).text())
	})
}
