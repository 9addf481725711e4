package registry

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/pace"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/dispatch"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// progress is what a registry has done so far, in units that one step must not do many of.
type progress struct{ bindings, draining, listed, cancelled, places int }

func progressOf(r *registry) (p progress) {
	p.bindings = r.owners.Bindings()
	draining, _ := r.table.Matching(table.Filter{State: messages.StateDraining})
	p.draining = draining[messages.StateDraining]
	p.listed = r.inspections.Len()
	for _, srv := range r.table.Servers { // that have their turns; the others are blocked
		p.places += srv.Turns.Waiting()
	}
	p.cancelled = r.cancellations.Waiting()
	return p
}

// most returns by how much two states differ at most.
func (p progress) most(before progress) int {
	distance := func(a, b int) int { return max(a-b, b-a) }
	return max(distance(p.bindings, before.bindings), distance(p.draining, before.draining), p.listed-before.listed, distance(p.cancelled, before.cancelled),
		distance(p.places, before.places))
}

// watchedRegistry is a registry whose steps are watched.
type watchedRegistry struct {
	*registry
	pid    *actor.PID
	system *actor.ActorSystem
	most   int // what one step has done at most
	steps  atomic.Int64
	quiet  atomic.Int64 // how many steps came before the last call of the scope quiet
}

// inWatchedRegistry runs a scenario on a registry with 1,000 open sessions of the scopes scope-0 to scope-999,
// and one of the scope quiet.
func inWatchedRegistry(t *testing.T, scenario func(w *watchedRegistry), changes ...func(cfg *protocol.Config)) {
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan struct{})
		system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
		events := relay.New(100, func(any) {}, nil, nil)
		cfg := protocol.Config{
			Servers: []mcpbridge.Server{{Name: "s"}}, Dialer: new(stub), Strategy: patient{}, Logger: relay.NewLogger(zerolog.Nop()),
			Events: events, Post: relay.NewPost(system, events, nil), Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}},
			MaxSessions: 2000, MaxInFlight: 64, MaxWaiting: 1000, MaxWaitingTotal: 1 << 20, MaxDials: 2000, MaxStarts: 16, Random: rand.Float64,
			ConnectTimeout: time.Minute, CallTimeout: time.Hour, DrainTimeout: time.Minute, CloseTimeout: time.Minute,
			Stopped: func([]messages.Left) { close(stopped) },
		}
		for _, change := range changes {
			change(&cfg)
		}
		w := &watchedRegistry{system: system}
		watch := func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
				if w.registry == nil {
					w.registry = c.Actor().(*registry)
				}
				if call, is := envelope.Message.(*messages.CallTool); is && call.Key.Scope == "quiet" {
					w.quiet.Store(w.steps.Load())
				}
				before := progressOf(w.registry)
				next(c, envelope)
				w.most = max(w.most, progressOf(w.registry).most(before))
				w.steps.Add(1)
			}
		}
		w.pid = system.Root.Spawn(props(configOf(cfg, new(dispatch.Dispatcher))).Configure(actor.WithReceiverMiddleware(watch)))
		for i := range 1000 {
			w.call(fmt.Sprint("scope-", i), "fast")
		}
		w.call("quiet", "fast")
		synctest.Wait()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		w.most = 0
		w.steps.Store(0)
		system.EventStream.Subscribe(func(event any) {
			if letter, is := event.(*actor.DeadLetterEvent); is { // events of ours are not published here
				t.Errorf("the engine has published a dead letter: %T to %s", letter.Message, letter.PID)
			}
		})
		scenario(w)
		system.Root.Send(w.pid, &protocol.Stop{})
		<-stopped
		time.Sleep(10 * time.Second)
		require.Zero(t, w.gate.Sessions.Open)
		require.True(t, w.timer.Stop(), "no message of the timer is on its way")
		require.LessOrEqual(t, w.endpoints(), len(w.table.Servers))
		require.Empty(t, maps.Collect(w.table.Tenants.All()))
		require.Zero(t, w.controls.Count())
	})
}

// call sends a call.
func (w *watchedRegistry) call(scope, tool string) *protocol.Future {
	box := protocol.NewFuture(w.system, nil)
	op := &messages.CallTool{Header: messages.To("s", scope), Params: &mcp.CallToolParams{Name: tool}}
	op.ID = "id"
	w.system.Root.RequestWithCustomSender(w.pid, op, box.PID)
	return box
}

// H-D8: whatever is to be done for many keys, scopes or calls is divided into small steps, and a call of
// another key is handled between two of them.
func TestNoStepGrowsWithTheKeys(t *testing.T) {
	for name, job := range map[string]func(w *watchedRegistry){
		"the end of an owner": func(w *watchedRegistry) {
			owner := w.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
			for i := range 30_000 {
				w.system.Root.Send(w.pid, &messages.Bind{Scope: fmt.Sprint("scope-", i), Owner: owner})
			}
			synctest.Wait()
			w.steps.Store(0)
			w.system.Root.Stop(owner)
		},
		"the end of a handler": func(w *watchedRegistry) {
			handler := w.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
			for i := range 3000 {
				w.system.Root.Send(w.pid, &messages.Bind{Scope: fmt.Sprint("scope-", i), Handler: handler})
			}
			synctest.Wait()
			w.steps.Store(0)
			w.system.Root.Stop(handler)
		},
		"a snapshot of all sessions": func(w *watchedRegistry) { w.system.Root.Send(w.pid, &messages.Inspect{Limit: -1}) },
		"a snapshot":                 func(w *watchedRegistry) { w.system.Root.Send(w.pid, &messages.Inspect{}) },
		"the closing of all":         func(w *watchedRegistry) { w.system.Root.Send(w.pid, &messages.CloseAll{}) },
		"a server that is forgotten": func(w *watchedRegistry) { w.system.Root.Send(w.pid, &messages.Forget{Server: "s"}) },
		"cancelled calls": func(w *watchedRegistry) {
			for i := range 1000 {
				w.call(fmt.Sprint("scope-", i), "slow")
			}
			synctest.Wait()
			w.steps.Store(0)
			for i := range 1000 {
				w.system.Root.Send(w.pid, &messages.Cancel{Key: messages.Key{Server: "s", Scope: fmt.Sprint("scope-", i)}, ID: "id"})
			}
		},
	} {
		scenario := func(w *watchedRegistry) {
			limit := 100
			job(w)
			box := w.call("quiet", "fast")
			before := w.steps.Load() // not earlier: this goroutine may be the one that waits
			require.NotNil(t, <-box.Reply)
			if name == "the closing of all" || name == "cancelled calls" {
				limit += 2 * 1000 // messages of 1,000 keys came first
			}
			// How many steps the registry takes until the scheduler of Go lets the session run, which replies, says nothing about
			// the registry. With an interceptor, the call comes from a goroutine of its own.
			if w.cfg.Interceptors == nil {
				require.LessOrEqual(t, int(w.quiet.Load()-before), limit, "between the call and its turn")
			}
			synctest.Wait()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			require.LessOrEqual(t, w.most, contract.WalkStep+1, "of one step")
			require.Greater(t, w.steps.Load(), int64(10), "the job has steps")
		}
		t.Run(name, func(t *testing.T) { inWatchedRegistry(t, scenario) })
		t.Run(name+", with an interceptor", func(t *testing.T) {
			inWatchedRegistry(t, scenario, func(cfg *protocol.Config) {
				cfg.Interceptors = []actors.Interceptor{func(next actors.Runner) actors.Runner { return next }}
			})
		})
	}
}

// What is due at the same time is done together: alone, each would wait for all messages that came meanwhile.
func TestWhatIsDueAtOnceIsDoneInFewSteps(t *testing.T) {
	inWatchedRegistry(t, func(w *watchedRegistry) {
		const count = 1000
		done := 0
		for range count {
			w.alarm.Set(&alarm.Entry[func()]{What: func() { done++ }}, time.Now().Add(time.Second))
		}
		require.NotNil(t, <-w.call("quiet", "fast").Reply)
		synctest.Wait()
		w.steps.Store(0)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, count, done)
		require.LessOrEqual(t, int(w.steps.Load()), count/contract.WalkStep+10)
	})
}

// A call looks at those close commands that may concern its key, of which there is a bounded number.
func TestCloseCommandsAreBoundedByWhatTheyConcern(t *testing.T) {
	inWatchedRegistry(t, func(w *watchedRegistry) {
		closes := func(cmd messages.Command) *protocol.Future {
			box := protocol.NewFuture(w.system, nil)
			w.system.Root.RequestWithCustomSender(w.pid, cmd, box.PID)
			return box
		}
		for i := range 200 {
			w.call(fmt.Sprint("scope-", i), "slow")
		}
		synctest.Wait()
		var closed []*protocol.Future
		for i := range 2000 { // of each of 200 scopes
			closed = append(closed, closes(&messages.CloseScope{Scope: fmt.Sprint("scope-", i%200)}))
		}
		owner := w.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
		w.system.Root.Send(w.pid, &messages.Bind{Scope: "scope-0", Owner: owner})
		w.system.Root.Stop(owner)
		synctest.Wait()
		require.Equal(t, 1990, w.closings.Count(), "its owner has ended scope-0 at once")
		require.Zero(t, w.closings.Of("").Count)
		require.Equal(t, 10, w.closings.Of("scope-1").Count)
		for range closing.MaxOfScope {
			closed = append(closed, closes(&messages.CloseSession{Key: messages.Key{Server: "s", Scope: "scope-1"}}))
		}
		synctest.Wait()
		require.Equal(t, closing.MaxOfScope, w.closings.Of("scope-1").Count)
		for range closing.MaxOfScope {
			closed = append(closed, closes(&messages.CloseMatching{Scopes: "scope-*"}))
		}
		synctest.Wait()
		for _, cmd := range []messages.Command{&messages.CloseScope{Scope: "scope-1"}, &messages.CloseAll{}, &messages.CloseServer{Server: "s"}} {
			require.Equal(t, messages.CodeBusy, (<-closes(cmd).Reply).(*messages.Failure).Code)
		}
		require.NotNil(t, <-w.call("quiet", "fast").Reply)
		busy := 0
		for _, box := range closed {
			if _, failed := (<-box.Reply).(*messages.Failure); failed {
				busy++
			}
		}
		require.Equal(t, 10, busy)
		synctest.Wait()
		require.Zero(t, w.closings.Count())
	})
}

// A cancellation of what does not exist leaves nothing behind, and those of one key do not delay another's.
func TestCancellationsTakeTurnsByKey(t *testing.T) {
	inWatchedRegistry(t, func(w *watchedRegistry) {
		cancel := func(scope, id string) {
			w.system.Root.Send(w.pid, &messages.Cancel{Key: messages.Key{Server: "s", Scope: scope}, ID: id})
		}
		var flooded []*protocol.Future
		for range 1000 {
			flooded = append(flooded, w.call("scope-0", "slow"))
		}
		other := w.call("quiet", "slow")
		synctest.Wait()
		began := time.Now()
		for i := range 100_000 {
			cancel(fmt.Sprint("none-", i), "id")
			cancel("scope-1", fmt.Sprint(i))
		}
		for range 5000 {
			cancel("scope-0", "id") // all of its calls, each once
		}
		cancel("quiet", "id")
		require.Equal(t, messages.CodeCancelled, (<-other.Reply).(*messages.Failure).Code)
		require.LessOrEqual(t, time.Since(began), 2*pace.Interval)
		for _, box := range flooded {
			require.Equal(t, messages.CodeCancelled, (<-box.Reply).(*messages.Failure).Code)
		}
		require.LessOrEqual(t, time.Since(began), 20*pace.Interval)
		synctest.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Zero(t, w.cancellations.Keys())
		require.Empty(t, w.table.Calls, "no call is remembered")
	})
}

// Bindings to handlers without owners are bounded. Those whose handlers have stopped make room.
func TestBindingsWithoutOwnersAreBounded(t *testing.T) {
	inWatchedRegistry(t, func(w *watchedRegistry) {
		handler := w.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
		mortal := w.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
		bind := func(scope string, to *actor.PID) any {
			box := protocol.NewFuture(w.system, nil)
			defer box.Close()
			w.system.Root.RequestWithCustomSender(w.pid, &messages.Bind{Scope: scope, Handler: to}, box.PID)
			return <-box.Reply
		}
		bind("mortal", mortal)
		for i := range owners.MaxUnowned - 1 {
			require.IsType(t, &messages.Bound{}, bind(fmt.Sprint("scope-", i), handler))
		}
		require.Equal(t, messages.CodeBusy, bind("one more", handler).(*messages.Failure).Code)
		require.IsType(t, &messages.Bound{}, bind("scope-1", mortal), "it is bound already")
		bind("scope-1", handler)
		w.system.Root.Stop(mortal)
		synctest.Wait()
		require.IsType(t, &messages.Bound{}, bind("one more", handler))
		require.Equal(t, messages.CodeBusy, bind("and one more", handler).(*messages.Failure).Code)
		bind("scope-1", nil)
		require.IsType(t, &messages.Bound{}, bind("and one more", handler))
	})
}

func TestAHandlerThatNoServerWouldAskIsRefused(t *testing.T) {
	inWatchedRegistry(t, func(w *watchedRegistry) {
		w.cfg.Capabilities = nil
		box := protocol.NewFuture(w.system, nil)
		defer box.Close()
		w.system.Root.RequestWithCustomSender(w.pid, &messages.Bind{Scope: "a", Handler: w.pid}, box.PID)
		f := (<-box.Reply).(*messages.Failure)
		require.Equal(t, messages.CodeInvalid, f.Code)
		require.Contains(t, f.Detail, "Capabilities")
	})
}

// The calls of a session actor that other code stops are answered, and the registry keeps none of them.
func TestCallsOfASessionThatOtherCodeStopsAreAnswered(t *testing.T) {
	inWatchedRegistry(t, func(w *watchedRegistry) {
		box := w.call("quiet", "slow")
		synctest.Wait()
		w.system.Root.Stop(w.table.Entry(messages.Key{Server: "s", Scope: "quiet"}).Current.PID)
		late := w.call("quiet", "fast") // it may be sent before the registry knows
		require.Equal(t, messages.CodeClosed, (<-box.Reply).(*messages.Failure).Code)
		require.NotNil(t, <-late.Reply)
		synctest.Wait()
		require.Empty(t, w.table.Calls)
	})
}

// placesDialer opens each scope at an address of its own. Those of the scopes down-… are down until they
// are up.
type placesDialer struct {
	stub
	up atomic.Bool
}

func (d *placesDialer) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	if err := req.Resolved(ctx, &mcpbridge.Server{Name: "s", URL: "http://" + req.Key.Scope}); err != nil {
		return nil, err
	}
	if strings.HasPrefix(req.Key.Scope, "down-") && !d.up.Load() {
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Absent, Detail: "connection refused"}
	}
	return d.stub.Dial(ctx, req)
}

// What happens at one place of a server with PerKey is not looked for at all places where sessions wait.
func TestNoStepGrowsWithThePlacesThatAreDown(t *testing.T) {
	for name, tenant := range map[string]func(messages.Key) string{
		"no tenants": nil,
		"tenants":    func(key messages.Key) string { return key.Scope },
	} {
		t.Run(name, func(t *testing.T) {
			dialer := new(placesDialer)
			inWatchedRegistry(t, func(w *watchedRegistry) {
				var waiting []*protocol.Future
				for i := range 1000 {
					waiting = append(waiting, w.call(fmt.Sprint("down-", i), "fast"))
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				srv := w.table.Servers["s"]
				require.Equal(t, messages.HealthDown, w.snapshot("s").Servers[0].Health)
				require.Greater(t, srv.Turns.Down(), 900)
				require.NotNil(t, <-w.call("quiet", "fast").Reply)
				require.NotNil(t, <-w.call("another", "fast").Reply)
				synctest.Wait()
				require.LessOrEqual(t, w.most, contract.WalkStep+1, "of one step")
				require.LessOrEqual(t, srv.Turns.Waiting(), 3, "places to look at")
				require.NotNil(t, <-w.call("quiet", "fast").Reply, "what comes now is after these reads, also for the race detector")
				dialer.up.Store(true)
				for _, box := range waiting {
					require.IsType(t, &messages.ToolResult{}, <-box.Reply)
				}
				synctest.Wait()
				require.LessOrEqual(t, w.most, contract.WalkStep+1, "of one step")
				require.Zero(t, srv.Turns.Down())
				require.Equal(t, messages.HealthUp, w.snapshot("s").Servers[0].Health)
			}, func(cfg *protocol.Config) {
				cfg.Dialer, cfg.Tenant, cfg.MaxSessions = dialer, tenant, 3000
				cfg.Servers[0].PerKey = func(context.Context, messages.Key) (mcpbridge.Server, error) { panic("the dialer does it") }
			})
		})
	}
}
