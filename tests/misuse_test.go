package tests

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// request sends any message to the supervisor. It returns the reply, or nil if there is
// none within an hour.
func (h *harness) request(msg any) any {
	box := protocol.NewFuture(h.system, nil)
	defer box.Close()
	h.system.Root.RequestWithCustomSender(h.pid, msg, box.PID)
	select {
	case reply := <-box.Reply:
		return reply
	case <-time.After(time.Hour): // synctest
		return nil
	}
}

// asValue sends a command that is not a pointer, and returns the reply.
func asValue[R any](h *harness, cmd any) R {
	h.t.Helper()
	reply := h.request(cmd)
	require.IsType(h.t, *new(R), reply, "%T", cmd)
	return reply.(R)
}

// H-G: a command that was sent as a value is understood.
func TestCommandThatIsSentAsAValueIsUnderstood(t *testing.T) {
	passing := func(next actors.Runner) actors.Runner { return next }
	for name, cfg := range map[string]supervisor.Config{"plain": {}, "intercepted": {Interceptors: []actors.Interceptor{passing}}} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, cfg, func(h *harness) {
				to := messages.To("s", "a")
				asValue[*messages.SessionInfo](h, messages.Open{Header: to})
				result := asValue[*messages.ToolResult](h, *call("a", "count"))
				require.Equal(t, messages.Key{Server: "s", Scope: "a"}, result.Key)
				asValue[*messages.ToolList](h, messages.ListTools{Header: to})
				asValue[*messages.Ack](h, messages.Ping{Header: to})
				require.Len(t, asValue[*messages.Snapshot](h, messages.Inspect{ID: "1"}).Sessions, 1)
				require.Equal(t, messages.CodeInvalid, asValue[*messages.Failure](h, messages.CallTool{Header: to}).Code)

				hanging := h.send(call("a", "hang"))
				h.system.Root.Send(h.pid, messages.Cancel{Key: to.Key, ID: hanging.cmd.RequestID()})
				hanging.fails(messages.CodeCancelled)

				require.Equal(t, 1, asValue[*messages.Closed](h, messages.CloseScope{Scope: "a"}).Sessions)
				asValue[*messages.Closed](h, messages.CloseServer{Server: "s"})
				asValue[*messages.Closed](h, messages.CloseAll{})
			})
		})
	}
}

// embeddedCall is a type of the user that embeds a command.
type embeddedCall struct{ *messages.CallTool }

// H-G: messages that are not commands and commands that are nil are rejected. Each gets a
// reply, and no bug is logged.
func TestWhatIsNoCommandIsRefused(t *testing.T) {
	passing := func(next actors.Runner) actors.Runner { return next }
	for name, cfg := range map[string]supervisor.Config{"plain": {}, "intercepted": {Interceptors: []actors.Interceptor{passing}}} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, cfg, func(h *harness) {
				h.send(call("a", "count")).ok()
				for _, msg := range []any{
					"text", 7,
					struct{ Secret string }{"x"},
					&messages.ToolResult{}, (*messages.CallTool)(nil), (*messages.Inspect)(nil), (*messages.CloseScope)(nil),
					&messages.Header{}, messages.To("s", "a"), (*messages.Header)(nil),
					embeddedCall{call("a", "count")},
					&embeddedCall{call("a", "count")},
					embeddedCall{},
					&embeddedCall{},
				} {
					f, ok := h.request(msg).(*messages.Failure)
					require.True(t, ok, "%T", msg)
					require.Equal(t, messages.CodeInvalid, f.Code, "%T: %v", msg, f)
					require.NotEmpty(t, f.Detail)
				}
				require.EqualValues(t, 1, h.send(call("a", "count")).ok().Generation)
				require.EqualValues(t, 1, h.inspect().Counters.Dials)
			})
		})
	}
}

// H-G: after the supervisor has stopped, in any way, every command is answered
// with a failure. A cancellation still has no reply.
func TestCommandsToAStoppedSupervisorAreAnswered(t *testing.T) {
	for name, stop := range map[string]func(h *harness){
		"stop":         func(h *harness) { h.stop() },
		"from outside": func(h *harness) { h.system.Root.Stop(h.pid) },
		"by poison":    func(h *harness) { h.system.Root.Poison(h.pid) },
		"while called": func(h *harness) {
			h.strict = false // messages of the registry to itself may become dead letters
			h.calls(5, "a", "hang")
			h.system.Root.Stop(h.pid)
		},
		"while stopped": func(h *harness) {
			h.system.Root.Send(h.pid, &protocol.Stop{})
			f, ok := h.send(call("a", "count")).reply().(*messages.Failure)
			require.True(h.t, ok)
			require.Contains(h.t, []messages.Code{messages.CodeDraining, messages.CodeClosed}, f.Code)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, supervisor.Config{}, func(h *harness) {
				h.send(call("a", "count")).ok()
				stop(h)
				time.Sleep(time.Minute) // synctest
				for range 2 {
					f := h.send(call("a", "count")).fails(messages.CodeClosed)
					require.Equal(t, "a", f.Key.Scope)
					require.Equal(t, "count", f.Target)
					for _, cmd := range []messages.Command{&messages.Inspect{}, &messages.CloseAll{}, &messages.CloseScope{}, &messages.Open{Header: messages.To("s", "a")}} {
						h.send(cmd).fails(messages.CodeClosed)
					}
					require.Equal(t, messages.CodeClosed, h.request(*call("a", "count")).(*messages.Failure).Code)
					require.Equal(t, messages.CodeClosed, h.request((*messages.CallTool)(nil)).(*messages.Failure).Code)
					require.Equal(t, messages.CodeClosed, h.request("text").(*messages.Failure).Code)
					require.Nil(t, h.request(&messages.Cancel{}))
					h.pid = actor.NewPID(h.pid.Address, h.pid.Id) // a copy, as a message would contain it
				}
				require.NoError(t, h.sup.Stop(h.t.Context()))
			})
		})
	}
}

// H-G: each command that comes while the supervisor stops is answered once.
func TestEachCommandIsAnsweredWhileTheSupervisorStops(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.strict = false // messages of the registry to itself may become dead letters
		var senders sync.WaitGroup
		for range 4 {
			senders.Go(func() {
				for range 50 {
					h.send(call("a", "count"))
					h.send(&messages.Inspect{})
				}
			})
		}
		go h.system.Root.Stop(h.pid)
		senders.Wait()
		for _, p := range h.sent() {
			p.reply()
		}
		synctest.Wait() // until the connections are closed: an actor that is stopped from outside does not wait for them
	})
}

// terminationWatcher watches an actor, and reports its termination.
type terminationWatcher struct {
	pid  *actor.PID
	gone chan *actor.PID
}

func (o *terminationWatcher) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *actor.Started:
		c.Watch(o.pid)
	case *actor.Terminated:
		o.gone <- msg.Who
	}
}

func TestStoppedSupervisorIsToldToThoseWhoWatchIt(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		o := &terminationWatcher{h.pid, make(chan *actor.PID, 9)}
		props := actor.PropsFromProducer(func() actor.Actor { return o })
		early := h.system.Root.Spawn(props)
		synctest.Wait()
		h.stop()
		require.True(t, h.pid.Equal(<-o.gone))
		late := h.system.Root.Spawn(props)
		require.True(t, h.pid.Equal(<-o.gone))
		for _, pid := range []*actor.PID{early, late} {
			h.system.Root.Stop(pid)
		}
		synctest.Wait()
		require.Empty(t, o.gone)
	})
}

// Nothing keeps a supervisor in memory that has stopped and is not used any longer. Its name is free then. The
// runtime may keep a timer that was stopped, and all that the timer leads to, until the time that it was set to. The
// longest one here, that of the closing, is set to 7.5 s.
func TestStoppedSupervisorIsFreed(t *testing.T) {
	system := actor.NewActorSystem(quietLog)
	var freed atomic.Bool
	func() {
		held := new([64]byte)
		runtime.AddCleanup(held, func(struct{}) { freed.Store(true) }, struct{}{})
		sup, err := supervisor.Start(system, dial.Wrap(supervisor.Config{
			Name: "one", Servers: []mcpbridge.Server{{Name: "s", URL: "http://fake.invalid"}}, DrainTimeout: time.Millisecond, CloseTimeout: time.Millisecond,
		}, func(d dial.Dialer) dial.Dialer { runtime.KeepAlive(held); return d }))
		require.NoError(t, err)
		require.NoError(t, sup.Stop(t.Context()))
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		_, named := system.ProcessRegistry.GetLocal("one")
		return freed.Load() && !named
	}, 30*time.Second, 10*time.Millisecond)
}

// H-G: the methods of a supervisor that was not started, or that get a nil context, return
// an error that says so.
func TestWhatWasNotStartedSaysSo(t *testing.T) {
	servers := []mcpbridge.Server{{Name: "s", URL: "http://localhost:1/mcp"}}
	ctx := context.Background()
	for _, sup := range []*supervisor.Supervisor{nil, {}} {
		require.Nil(t, sup.PID())
		require.Nil(t, sup.System())
		require.ErrorContains(t, sup.Stop(ctx), "is not started")
		_, err := sup.Reload(ctx, servers)
		require.ErrorContains(t, err, "is not started")
		for _, client := range []*supervisor.Client{nil, {}, sup.Client()} {
			_, err = client.CallTool(ctx, "s", "a", &mcp.CallToolParams{Name: "t"})
			require.ErrorIs(t, err, messages.CodeInvalid)
			require.ErrorContains(t, err, "belongs to no supervisor")
			_, err = client.Do(ctx, &messages.Inspect{})
			require.ErrorIs(t, err, messages.CodeInvalid)
			client.Cancel(messages.Key{}, "1")
		}
	}

	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		var none context.Context
		_, err := h.sup.Client().CallTool(none, "s", "a", &mcp.CallToolParams{Name: "t"})
		require.ErrorIs(t, err, messages.CodeInvalid)
		require.ErrorContains(t, err, "context")
		require.ErrorContains(t, h.sup.Stop(none), "context")
		_, err = h.sup.Reload(none, servers)
		require.ErrorContains(t, err, "context")
		for _, cmd := range []messages.Command{nil, (*messages.CallTool)(nil), (*messages.Cancel)(nil), embeddedCall{}} {
			_, err = h.sup.Client().Do(h.t.Context(), cmd)
			require.ErrorIs(t, err, messages.CodeInvalid)
		}
		h.send(call("a", "count")).ok()
	})
}

func TestStopReloadAndCallsAtOnceAreAllAnswered(t *testing.T) {
	for range 20 {
		inFakeTime(t, supervisor.Config{}, func(h *harness) {
			servers := []mcpbridge.Server{{Name: "s", URL: "http://fake.invalid/new"}}
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					if _, err := h.sup.Reload(h.t.Context(), servers); err != nil {
						var f *messages.Failure
						require.ErrorAs(t, err, &f)
						require.Equal(t, "Reload", f.Op)
						require.Contains(t, []messages.Code{messages.CodeClosed, messages.CodeDraining}, f.Code)
					}
				})
				all.Go(func() { require.NoError(t, h.sup.Stop(h.t.Context())) })
				all.Go(func() { h.send(call("a", "count")).reply() })
			}
			all.Wait()
			_, err := h.sup.Reload(h.t.Context(), servers)
			require.EqualError(t, err, "Reload: closed: the supervisor has stopped")
		})
	}
}

// tracingTransport wraps another http.RoundTripper, as libraries for tracing do.
type tracingTransport struct {
	http.RoundTripper
	hosts sync.Map
}

func (w *tracingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	w.hosts.Store(req.URL.Host, true)
	return w.RoundTripper.RoundTrip(req)
}

// H-F5: a program that has wrapped http.DefaultTransport sees our requests.
func TestWrapperOfTheDefaultTransportIsUsed(t *testing.T) {
	plain := http.DefaultTransport
	defer func() { http.DefaultTransport = plain }()
	pool := plain.(*http.Transport).Clone()
	wrapped := &tracingTransport{RoundTripper: pool}
	http.DefaultTransport = wrapped

	before := resourcesInUse()
	one, two := serve(t, faults.NewTools()), serve(t, faults.NewTools())
	defer one.close()
	defer two.close()
	h := start(t, supervisor.Config{Servers: []mcpbridge.Server{serverAt("s", one.URL())}})
	require.Equal(t, "1", h.send(call("a", "count")).text())
	_, err := h.sup.Reload(t.Context(), []mcpbridge.Server{serverAt("s", two.URL())})
	require.NoError(t, err)
	require.Equal(t, "1", h.send(call("a", "count")).text())
	for _, e := range []*testServer{one, two} {
		u, err := url.Parse(e.URL())
		require.NoError(t, err)
		_, seen := wrapped.hosts.Load(u.Host)
		require.True(t, seen)
	}
	h.stopAndVerify()
	pool.CloseIdleConnections()
	one.close()
	two.close()
	before.verify(t)
}

// H-G: no line of the log has an empty error, or a duration without a unit.
func TestLogLinesHaveUnitsAndNoEmptyErrors(t *testing.T) {
	var log bytes.Buffer
	inFakeTime(t, supervisor.Config{Logger: zerolog.New(zerolog.SyncWriter(&log))}, func(h *harness) {
		h.server.dial = slowDial(1500*time.Millisecond, nil)
		h.send(call("a", "count")).ok()
		h.server.set(func() { h.server.dial = nil })
		h.server.breakConnection("a", true)
		h.send(call("a", "count")).ok()
		h.send(&messages.CloseAll{}).reply()
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

// A12, H-G: Start refuses a configuration that cannot work, and names the field.
func TestConfigurationThatCannotWorkIsRefused(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		store := new(resume.Memory)
		user, err := supervisor.Start(h.system, supervisor.Config{Servers: []mcpbridge.Server{{Name: "x", Command: "a"}}, Store: store})
		require.NoError(t, err)
		stranger := actor.NewActorSystem(quietLog).Root.SpawnPrefix(actor.PropsFromFunc(func(actor.Context) {}), "agent")
		const centuries = 250 * 365 * 24 * time.Hour
		for want, cfg := range map[string]supervisor.Config{
			"maxSessions: 1099511627776 is more than":                        {MaxSessions: 1 << 40},
			"servers: is empty":                                              {Servers: []mcpbridge.Server{}},
			`servers[1] "x": name: is already that of servers[0]`:            {Servers: []mcpbridge.Server{{Name: "x", Command: "a"}, {Name: "x", Command: "b"}}},
			`servers[0] "x": url: scheme "ftp"`:                              {Servers: []mcpbridge.Server{serverAt("x", "ftp://host")}},
			"maxInFlight: -2 is negative":                                    {MaxInFlight: -2},
			"maxWaiting: 9223372036854775807 is":                             {MaxWaiting: math.MaxInt},
			"maxDials: -9":                                                   {MaxDials: math.MinInt},
			"drainTimeout: 2190000h0m0s is more than":                        {DrainTimeout: centuries},
			"idleTimeout: 2190000h0m0s is more than":                         {IdleTimeout: centuries},
			"idleTimeout: -1s is negative":                                   {IdleTimeout: -time.Second},
			"callTimeout: 2562047h47m16.854775807s":                          {CallTimeout: math.MaxInt64},
			"handler: nonhost/agent$1 is not an actor of this system: spawn": {Handler: stranger},
			"subscriber: nonhost/agent$1 is not an actor":                    {Subscriber: stranger},
			"store: is in use by another supervisor":                         {Store: store},
			"setup[0]: the tool name is empty":                               {Servers: []mcpbridge.Server{{Name: "x", Command: "a", Setup: []*mcp.CallToolParams{nil}}}},
			"keepAlive: 2562047h47m16.854775807s is more than":               {Servers: []mcpbridge.Server{{Name: "x", Command: "a", KeepAlive: math.MaxInt64}}},
			"auth: the function of Bearer is nil":                            {Servers: []mcpbridge.Server{{Name: "x", URL: "https://a", Auth: mcpbridge.Bearer(nil)}}},
			"auth: is nil":                                                   {Servers: []mcpbridge.Server{{Name: "x", URL: "https://a", Auth: mcpbridge.AuthenticatorFunc(nil)}}},
			"auth: has no handler":                                           {Servers: []mcpbridge.Server{{Name: "x", URL: "https://a", Auth: &mcpbridge.OAuthCredentials{}}}},
		} {
			if cfg.Servers == nil {
				cfg.Servers = []mcpbridge.Server{{Name: "x", Command: "a"}}
			}
			_, err := supervisor.Start(h.system, cfg)
			require.ErrorContains(t, err, want)
		}
		require.NoError(t, user.Stop(h.t.Context()))
		again, err := supervisor.Start(h.system, supervisor.Config{Servers: []mcpbridge.Server{{Name: "x", Command: "a"}}, Store: store})
		require.NoError(t, err)
		require.NoError(t, again.Stop(h.t.Context())) // it was stopped before any call
	})
}

// H-G: a deadline in the year 9999 works like no deadline.
func TestDeadlineThatIsFarAwayDoesNotOverflow(t *testing.T) {
	passing := func(next actors.Runner) actors.Runner { return next }
	for name, cfg := range map[string]supervisor.Config{"plain": {}, "intercepted": {Interceptors: []actors.Interceptor{passing}}} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, cfg, func(h *harness) {
				op := call("a", "count")
				op.Deadline = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
				h.server.dial = slowDial(time.Minute/10, nil)
				h.send(op).ok()
				for _, long := range []time.Time{time.Unix(1<<40, 0), time.Now().Add(math.MaxInt64)} {
					op := call("a", "count")
					op.Deadline = long
					h.send(op).ok()
				}
			})
		})
	}
}

// H-G: if an interceptor returns no runner, the other interceptors still run.
func TestInterceptorWithoutARunnerLetsNothingThrough(t *testing.T) {
	wrong := func(actors.Runner) actors.Runner { return nil }
	right := func(next actors.Runner) actors.Runner { return next }
	for _, chain := range [][]actors.Interceptor{{wrong}, {wrong, right}, {right, wrong}} {
		inFakeTime(t, supervisor.Config{Interceptors: chain}, func(h *harness) {
			require.Contains(t, h.send(call("a", "count")).fails(messages.CodeInternal).Detail, "returned no runner")
			require.Zero(t, h.dials.dialed())
		})
	}
}

// H-G: the client can be used in handlers, interceptors and other functions of the user
// that mcpactor calls.
func TestClientIsUsedInHandlersAndInterceptors(t *testing.T) {
	var sup *supervisor.Supervisor
	again := func(ctx context.Context) error {
		op := call("a", "count")
		_, err := sup.Client().CallTool(ctx, "s", "a", op.Params)
		return err
	}
	t.Run("handler of events", func(t *testing.T) {
		inFakeTime(t, supervisor.Config{}, func(h *harness) {
			sup = h.sup
			done := make(chan error, 1)
			h.system.EventStream.Subscribe(func(event any) {
				if _, opened := event.(*messages.SessionOpened); opened {
					done <- again(context.Background())
				}
			})
			h.send(call("a", "count")).ok()
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
		inFakeTime(t, supervisor.Config{Interceptors: []actors.Interceptor{asks}}, func(h *harness) {
			sup = h.sup
			require.IsType(t, &messages.ToolList{}, h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply())
		})
	})
	t.Run("interceptor of itself", func(t *testing.T) { // recursion without end
		endless := func(next actors.Runner) actors.Runner {
			return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
				if err := again(ctx); err != nil {
					return nil, err
				}
				return next(ctx, op)
			}
		}
		inFakeTime(t, supervisor.Config{MaxInFlight: 2, MaxWaiting: 3, Interceptors: []actors.Interceptor{endless}}, func(h *harness) {
			sup = h.sup
			h.send(call("a", "count")).fails(messages.CodeBusy)
		})
	})
}

// H-G
func TestReplayThatDoesNotExistIsRefused(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		require.Contains(t, h.send(call("a", "count", replay(3))).fails(messages.CodeInvalid).Detail, "replay: 3")
	})
}
