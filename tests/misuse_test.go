package tests

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	registry "github.com/mcpactor/mcpactor/internal/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// ask sends anything to the supervisor, and returns the reply, or nil when there is
// none in an hour.
func (w *world) ask(msg any) any {
	box := registry.NewFuture(w.system, nil)
	defer box.Close()
	w.system.Root.RequestWithCustomSender(w.pid, msg, box.PID)
	select {
	case reply := <-box.Reply:
		return reply
	case <-time.After(time.Hour): // synctest
		return nil
	}
}

// asValue asks with a command that is no pointer.
func asValue[R any](w *world, cmd any) R {
	w.t.Helper()
	reply := w.ask(cmd)
	require.IsType(w.t, *new(R), reply, "%T", cmd)
	return reply.(R)
}

// Finding G: a command that was sent as a value is understood.
func TestCommandThatIsSentAsAValueIsUnderstood(t *testing.T) {
	passing := func(next actors.Runner) actors.Runner { return next }
	for name, cfg := range map[string]supervisor.Config{"plain": {}, "intercepted": {Interceptors: []actors.Interceptor{passing}}} {
		t.Run(name, func(t *testing.T) {
			imagine(t, cfg, func(w *world) {
				to := messages.To("s", "a")
				asValue[*messages.SessionInfo](w, messages.Open{Header: to})
				result := asValue[*messages.ToolResult](w, *call("a", "count"))
				require.Equal(t, messages.Key{Server: "s", Scope: "a"}, result.Key)
				asValue[*messages.ToolList](w, messages.ListTools{Header: to})
				asValue[*messages.Pong](w, messages.Ping{Header: to})
				require.Len(t, asValue[*messages.Snapshot](w, messages.Inspect{ID: "1"}).Sessions, 1)
				require.Equal(t, messages.CodeInvalid, asValue[*messages.Failure](w, messages.CallTool{Header: to}).Code)

				hanging := w.send(call("a", "hang"))
				w.system.Root.Send(w.pid, messages.Cancel{Key: to.Key, ID: hanging.cmd.RequestID()})
				hanging.fails(messages.CodeCancelled)

				require.Equal(t, 1, asValue[*messages.Closed](w, messages.CloseScope{Scope: "a"}).Sessions)
				asValue[*messages.Closed](w, messages.CloseServer{Server: "s"})
				asValue[*messages.Closed](w, messages.CloseAll{})
			})
		})
	}
}

// traced is a command of a caller's own around one of ours.
type traced struct{ *messages.CallTool }

// Finding G: what is no command is refused, and so is one that is nil; nobody waits
// in vain, and no bug is logged.
func TestWhatIsNoCommandIsRefused(t *testing.T) {
	passing := func(next actors.Runner) actors.Runner { return next }
	for name, cfg := range map[string]supervisor.Config{"plain": {}, "intercepted": {Interceptors: []actors.Interceptor{passing}}} {
		t.Run(name, func(t *testing.T) {
			imagine(t, cfg, func(w *world) {
				w.send(call("a", "count")).ok()
				for _, msg := range []any{
					"text", 7,
					struct{ Secret string }{"x"},
					&messages.ToolResult{}, (*messages.CallTool)(nil), (*messages.Inspect)(nil), (*messages.CloseScope)(nil),
					&messages.Header{}, messages.To("s", "a"), (*messages.Header)(nil),
					traced{call("a", "count")},
					&traced{call("a", "count")},
					traced{},
					&traced{},
				} {
					f, ok := w.ask(msg).(*messages.Failure)
					require.True(t, ok, "%T", msg)
					require.Equal(t, messages.CodeInvalid, f.Code, "%T: %v", msg, f)
					require.NotEmpty(t, f.Detail)
				}
				require.EqualValues(t, 1, w.send(call("a", "count")).ok().Generation)
				require.EqualValues(t, 1, w.inspect().Counters.Dials)
			})
		})
	}
}

// Finding G: after the supervisor has stopped, in any way, every command is answered
// with a failure. A cancellation still has no reply.
func TestCommandsToAStoppedSupervisorAreAnswered(t *testing.T) {
	for name, stop := range map[string]func(w *world){
		"stop":         func(w *world) { w.stop() },
		"from outside": func(w *world) { w.system.Root.Stop(w.pid) },
		"by poison":    func(w *world) { w.system.Root.Poison(w.pid) },
		"while called": func(w *world) {
			w.strict = false // its own messages to itself may come too late
			w.calls(5, "a", "hang")
			w.system.Root.Stop(w.pid)
		},
		"while stopped": func(w *world) {
			w.system.Root.Send(w.pid, &registry.Stop{})
			f, ok := w.send(call("a", "count")).reply().(*messages.Failure)
			require.True(w.t, ok)
			require.Contains(w.t, []messages.Code{messages.CodeDraining, messages.CodeClosed}, f.Code)
		},
	} {
		t.Run(name, func(t *testing.T) {
			imagine(t, supervisor.Config{}, func(w *world) {
				w.send(call("a", "count")).ok()
				stop(w)
				time.Sleep(time.Minute) // synctest
				for range 2 {
					f := w.send(call("a", "count")).fails(messages.CodeClosed)
					require.Equal(t, "a", f.Key.Scope)
					require.Equal(t, "count", f.Target)
					for _, cmd := range []messages.Command{&messages.Inspect{}, &messages.CloseAll{}, &messages.CloseScope{}, &messages.Open{Header: messages.To("s", "a")}} {
						w.send(cmd).fails(messages.CodeClosed)
					}
					require.Equal(t, messages.CodeClosed, w.ask(*call("a", "count")).(*messages.Failure).Code)
					require.Equal(t, messages.CodeClosed, w.ask((*messages.CallTool)(nil)).(*messages.Failure).Code)
					require.Equal(t, messages.CodeClosed, w.ask("text").(*messages.Failure).Code)
					require.Nil(t, w.ask(&messages.Cancel{}))
					w.pid = actor.NewPID(w.pid.Address, w.pid.Id) // a copy, as it comes out of a message
				}
				require.NoError(t, w.sup.Stop(w.t.Context()))
			})
		})
	}
}

// Finding G: commands that come while the supervisor stops are each answered once.
func TestEachCommandIsAnsweredWhileTheSupervisorStops(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		w.strict = false // its own messages to itself may come too late
		var senders sync.WaitGroup
		for range 4 {
			senders.Go(func() {
				for range 50 {
					w.send(call("a", "count"))
					w.send(&messages.Inspect{})
				}
			})
		}
		go w.system.Root.Stop(w.pid)
		senders.Wait()
		for _, p := range w.sent() {
			p.reply()
		}
		synctest.Wait() // an actor that others stop does not wait for its connection to close
	})
}

// watcher tells who has terminated.
type watcher struct {
	pid  *actor.PID
	gone chan *actor.PID
}

func (o *watcher) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *actor.Started:
		c.Watch(o.pid)
	case *actor.Terminated:
		o.gone <- msg.Who
	}
}

func TestStoppedSupervisorIsToldToThoseWhoWatchIt(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		o := &watcher{w.pid, make(chan *actor.PID, 9)}
		props := actor.PropsFromProducer(func() actor.Actor { return o })
		early := w.system.Root.Spawn(props)
		synctest.Wait()
		w.stop()
		require.True(t, w.pid.Equal(<-o.gone))
		late := w.system.Root.Spawn(props)
		require.True(t, w.pid.Equal(<-o.gone))
		for _, pid := range []*actor.PID{early, late} {
			w.system.Root.Stop(pid)
		}
		synctest.Wait()
		require.Empty(t, o.gone)
	})
}

// Finding G: what was not started, or has no context, says so.
func TestWhatWasNotStartedSaysSo(t *testing.T) {
	servers := []mcpbridge.Server{{Name: "s", URL: "http://localhost:1/mcp"}}
	_, err := supervisor.Start(nil, supervisor.Config{})
	require.ErrorContains(t, err, "system: is nil")
	require.ErrorContains(t, err, "servers: is empty")
	_, err = supervisor.Start(nil, supervisor.Config{Servers: servers})
	require.EqualError(t, err, "supervisor: system: is nil: make one with actor.NewActorSystem")

	ctx := context.Background()
	for _, sup := range []*supervisor.Supervisor{nil, {}} {
		require.Nil(t, sup.PID())
		require.Nil(t, sup.System())
		require.ErrorContains(t, sup.Stop(ctx), "is not started")
		_, err = sup.Reload(ctx, servers)
		require.ErrorContains(t, err, "is not started")
		for _, client := range []*supervisor.Client{nil, {}, sup.Client()} {
			_, err = client.CallTool(ctx, "s", "a", &mcp.CallToolParams{Name: "t"})
			require.ErrorIs(t, err, messages.ErrInvalid)
			require.ErrorContains(t, err, "belongs to no supervisor")
			_, err = client.Do(ctx, &messages.Inspect{})
			require.ErrorIs(t, err, messages.ErrInvalid)
			client.Cancel(messages.Key{}, "1")
		}
	}

	imagine(t, supervisor.Config{}, func(w *world) {
		var none context.Context
		_, err := w.sup.Client().CallTool(none, "s", "a", &mcp.CallToolParams{Name: "t"})
		require.ErrorIs(t, err, messages.ErrInvalid)
		require.ErrorContains(t, err, "context")
		require.ErrorContains(t, w.sup.Stop(none), "context")
		_, err = w.sup.Reload(none, servers)
		require.ErrorContains(t, err, "context")
		for _, cmd := range []messages.Command{nil, (*messages.CallTool)(nil), (*messages.Cancel)(nil), traced{}} {
			_, err = w.sup.Client().Do(w.t.Context(), cmd)
			require.ErrorIs(t, err, messages.ErrInvalid)
		}
		w.send(call("a", "count")).ok()
	})
}

func TestStopReloadAndCallsAtOnceAreAllAnswered(t *testing.T) {
	for range 20 {
		imagine(t, supervisor.Config{}, func(w *world) {
			servers := []mcpbridge.Server{{Name: "s", URL: "http://fake.invalid/new"}}
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					if _, err := w.sup.Reload(w.t.Context(), servers); err != nil {
						var f *messages.Failure
						require.ErrorAs(t, err, &f)
						require.Equal(t, "Reload", f.Op)
						require.Contains(t, []messages.Code{messages.CodeClosed, messages.CodeDraining}, f.Code)
					}
				})
				all.Go(func() { require.NoError(t, w.sup.Stop(w.t.Context())) })
				all.Go(func() { w.send(call("a", "count")).reply() })
			}
			all.Wait()
			_, err := w.sup.Reload(w.t.Context(), servers)
			require.EqualError(t, err, "Reload: closed: the supervisor has stopped")
		})
	}
}

// wrapper is a transport around another one, as those are that trace requests.
type wrapper struct {
	http.RoundTripper
	hosts sync.Map
}

func (w *wrapper) RoundTrip(req *http.Request) (*http.Response, error) {
	w.hosts.Store(req.URL.Host, true)
	return w.RoundTripper.RoundTrip(req)
}

// Finding F5: a program that has wrapped http.DefaultTransport sees our requests.
func TestWrapperOfTheDefaultTransportIsUsed(t *testing.T) {
	plain := http.DefaultTransport
	defer func() { http.DefaultTransport = plain }()
	pool := plain.(*http.Transport).Clone()
	wrapped := &wrapper{RoundTripper: pool}
	http.DefaultTransport = wrapped

	before := lookAround()
	one, two := serve(t, faults.NewTools()), serve(t, faults.NewTools())
	defer one.end()
	defer two.end()
	w := start(t, supervisor.Config{Servers: []mcpbridge.Server{at("s", one.URL())}})
	require.Equal(t, "1", w.send(call("a", "count")).text())
	_, err := w.sup.Reload(t.Context(), []mcpbridge.Server{at("s", two.URL())})
	require.NoError(t, err)
	require.Equal(t, "1", w.send(call("a", "count")).text())
	for _, e := range []*endpoint{one, two} {
		u, err := url.Parse(e.URL())
		require.NoError(t, err)
		_, seen := wrapped.hosts.Load(u.Host)
		require.True(t, seen)
	}
	w.end()
	pool.CloseIdleConnections()
	one.end()
	two.end()
	before.verify(t)
}

// Finding G: no line of the log has an empty error, or a duration without a unit.
func TestLogLinesHaveUnitsAndNoEmptyErrors(t *testing.T) {
	var log bytes.Buffer
	imagine(t, supervisor.Config{Logger: zerolog.New(zerolog.SyncWriter(&log))}, func(w *world) {
		w.fake.dial = slowly(1500*time.Millisecond, nil)
		w.send(call("a", "count")).ok()
		w.fake.set(func() { w.fake.dial = nil })
		w.fake.sever("a", true)
		w.send(call("a", "count")).ok()
		w.send(&messages.CloseAll{}).reply()
	})
	lines := log.String()
	for _, message := range []string{"opened", "lost", "restarting", "restarted", "closed"} {
		require.Contains(t, lines, `"message":"session `+message+`"`)
	}
	require.Contains(t, lines, `"elapsed":"1.5s"`)
	require.Regexp(t, `"delay":"[\d.]+[µm]?s"`, lines)
	require.NotRegexp(t, `"(elapsed|delay)":\d`, lines)
	require.NotContains(t, lines, `"err":""`)
}

// Finding G: a configuration that could not work is refused when the supervisor is
// started, by the name of the field.
func TestConfigurationThatCannotWorkIsRefused(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		store := resume.NewMemory()
		user, err := supervisor.Start(w.system, supervisor.Config{Servers: []mcpbridge.Server{{Name: "x", Command: "a"}}, Store: store})
		require.NoError(t, err)
		stranger := actor.NewActorSystem(quiet).Root.SpawnPrefix(actor.PropsFromFunc(func(actor.Context) {}), "agent")
		const centuries = 250 * 365 * 24 * time.Hour
		for want, cfg := range map[string]supervisor.Config{
			"maxSessions: is 1099511627776, which is more than": {MaxSessions: 1 << 40},
			"maxInFlight: is -1":                                         {MaxInFlight: -1},
			"maxWaiting: is 9223372036854775807":                         {MaxWaiting: math.MaxInt},
			"maxDials: is ":                                              {MaxDials: math.MinInt},
			"drainTimeout: 2190000h0m0s is more than":                    {DrainTimeout: centuries},
			"idleTimeout: 2190000h0m0s is more than":                     {IdleTimeout: centuries},
			"idleTimeout: -1s is negative":                               {IdleTimeout: -time.Second},
			"callTimeout: 2562047h47m16.854775807s":                      {CallTimeout: math.MaxInt64},
			"handler: nonhost/agent$1 is no actor of this system: spawn": {Handler: stranger},
			"subscriber: nonhost/agent$1 is no actor":                    {Subscriber: stranger},
			"wrapDialer: returned nil":                                   {WrapDialer: func(mcpbridge.Dialer) mcpbridge.Dialer { return nil }},
			"store: is that of another supervisor":                       {Store: store},
			"setup[0]: the tool name is empty":                           {Servers: []mcpbridge.Server{{Name: "x", Command: "a", Setup: []*mcp.CallToolParams{nil}}}},
			"keepAlive: 2562047h47m16.854775807s is more than":           {Servers: []mcpbridge.Server{{Name: "x", Command: "a", KeepAlive: math.MaxInt64}}},
			"auth: is nil":                                               {Servers: []mcpbridge.Server{{Name: "x", URL: "https://a", Auth: mcpbridge.AuthenticatorFunc(nil)}}},
			"auth: has no handler":                                       {Servers: []mcpbridge.Server{{Name: "x", URL: "https://a", Auth: &mcpbridge.OAuthCredentials{}}}},
		} {
			if cfg.Servers == nil {
				cfg.Servers = []mcpbridge.Server{{Name: "x", Command: "a"}}
			}
			_, err := supervisor.Start(w.system, cfg)
			require.ErrorContains(t, err, want)
		}
		require.NoError(t, user.Stop(w.t.Context()))
		again, err := supervisor.Start(w.system, supervisor.Config{Servers: []mcpbridge.Server{{Name: "x", Command: "a"}}, Store: store})
		require.NoError(t, err)
		require.NoError(t, again.Stop(w.t.Context())) // before any call
	})
}

// Finding G: a deadline of the year 9999 is as good as none.
func TestDeadlineThatIsFarAwayDoesNotOverflow(t *testing.T) {
	passing := func(next actors.Runner) actors.Runner { return next }
	for name, cfg := range map[string]supervisor.Config{"plain": {}, "intercepted": {Interceptors: []actors.Interceptor{passing}}} {
		t.Run(name, func(t *testing.T) {
			imagine(t, cfg, func(w *world) {
				op := call("a", "count")
				op.Deadline = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
				w.fake.dial = slowly(time.Minute/10, nil)
				w.send(op).ok()
				for _, long := range []time.Time{time.Unix(1<<40, 0), time.Now().Add(math.MaxInt64)} {
					op := call("a", "count")
					op.Deadline = long
					w.send(op).ok()
				}
			})
		})
	}
}

// Finding G: an interceptor that gives no runner does not turn the others off.
func TestInterceptorWithoutARunnerLetsNothingThrough(t *testing.T) {
	wrong := func(actors.Runner) actors.Runner { return nil }
	right := func(next actors.Runner) actors.Runner { return next }
	for _, chain := range [][]actors.Interceptor{{wrong}, {wrong, right}, {right, wrong}} {
		imagine(t, supervisor.Config{Interceptors: chain}, func(w *world) {
			require.Contains(t, w.send(call("a", "count")).fails(messages.CodeInternal).Detail, "returned no runner")
			require.Zero(t, w.watch.dialed())
		})
	}
}

// Finding G: the client may be used where our own goroutines call the program.
func TestClientIsUsedInHandlersAndInterceptors(t *testing.T) {
	var sup *supervisor.Supervisor
	again := func(ctx context.Context) error {
		op := call("a", "count")
		_, err := sup.Client().CallTool(ctx, "s", "a", op.Params)
		return err
	}
	t.Run("handler of events", func(t *testing.T) {
		imagine(t, supervisor.Config{}, func(w *world) {
			sup = w.sup
			done := make(chan error, 1)
			w.system.EventStream.Subscribe(func(event any) {
				if _, opened := event.(*messages.SessionOpened); opened {
					done <- again(context.Background())
				}
			})
			w.send(call("a", "count")).ok()
			require.NoError(t, <-done)
		})
	})
	asks := func(next actors.Runner) actors.Runner {
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			if _, call := op.(*messages.CallTool); !call {
				if err := again(ctx); err != nil {
					return nil, err
				}
			}
			return next(ctx, op)
		}
	}
	t.Run("interceptor", func(t *testing.T) {
		imagine(t, supervisor.Config{Interceptors: []actors.Interceptor{asks}}, func(w *world) {
			sup = w.sup
			require.IsType(t, &messages.ToolList{}, w.send(&messages.ListTools{Header: messages.To("s", "a")}).reply())
		})
	})
	t.Run("interceptor of itself", func(t *testing.T) { // without end
		endless := func(next actors.Runner) actors.Runner {
			return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
				if err := again(ctx); err != nil {
					return nil, err
				}
				return next(ctx, op)
			}
		}
		imagine(t, supervisor.Config{MaxInFlight: 2, MaxWaiting: 3, Interceptors: []actors.Interceptor{endless}}, func(w *world) {
			sup = w.sup
			w.send(call("a", "count")).fails(messages.CodeBusy)
		})
	})
}

// Finding G
func TestReplayThatDoesNotExistIsRefused(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		require.Contains(t, w.send(call("a", "count", replay(3))).fails(messages.CodeInvalid).Detail, "replay: 3")
	})
}
