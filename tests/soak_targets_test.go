package tests

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/tests/internal/stdioserver"
)

// soakInFakeTime runs a script on the fake server. Some configurations have interceptors
// and a store.
func soakInFakeTime(t *testing.T, cfg supervisor.Config, script []action) {
	if cfg.MaxInFlight%2 == 0 {
		cfg.Interceptors = []actors.Interceptor{func(next actors.Runner) actors.Runner { return next }}
	}
	if cfg.MaxSessions%2 == 0 {
		cfg.Store = new(resume.Memory)
	}
	inFakeTime(t, cfg, func(h *harness) {
		dials := []func(context.Context, dial.Request) error{
			nil, nil, failingDial(unavailableError("down")), slowDial(time.Second, nil), slowDial(time.Second, unavailableError("down")),
		}
		closes := []func(context.Context, messages.Key) error{
			nil, nil, func(context.Context, messages.Key) error { return errors.New("refused") },
		}
		soak(h, cfg, soakTarget{
			tools:   []string{"count", "count", "count", "slow", "slow/ro", "hang", "fail", "refuse", "panic", "stuck"},
			servers: []string{"s", "other"},
			fault: func(pick int) {
				switch of := pick / 16; pick % 16 {
				case 0, 1, 2, 3, 4:
					h.server.expireAny(of)
				case 5, 6:
					h.server.breakAnyConnection(of, true)
				case 7, 8, 9:
					h.server.breakAnyConnection(of, false)
				case 10:
					go h.sup.Reload(context.WithoutCancel(h.t.Context()), []mcpbridge.Server{
						serverAt("s", "http://fake.invalid"), {Name: "other", URL: "http://other.invalid", MaxResult: of % 2},
					})
				case 11, 12:
					h.server.set(func() { h.server.dial = dials[of%len(dials)] })
				default:
					h.server.set(func() { h.server.close = closes[of%len(closes)] })
				}
			},
			heal:  func() { h.server.set(func() { h.server.dial, h.server.close = nil, nil }) },
			pause: func(d time.Duration) { time.Sleep(d) },           // synctest
			wait:  func() { time.Sleep(time.Minute) /* synctest */ }, // until no session is given up
		}, script)
	})
}

// withShortTimeouts returns the configuration for real transports, where time is not fake.
func withShortTimeouts(cfg supervisor.Config) supervisor.Config {
	cfg.CallTimeout, cfg.ConnectTimeout, cfg.DrainTimeout = 300*time.Millisecond, time.Second, 100*time.Millisecond
	cfg.CloseTimeout, cfg.CoolDown, cfg.MaxSessions = 500*time.Millisecond, 100*time.Millisecond, cfg.MaxSessions+3
	cfg.BackoffBase, cfg.BackoffMax, cfg.Budget = time.Millisecond, 20*time.Millisecond, 1000
	return cfg
}

// withShortDeadlines returns a script with shorter deadlines.
func withShortDeadlines(script []action) []action {
	script = slices.Clone(script)
	for i := range script {
		script[i].deadline /= 20
	}
	return script
}

// pacer returns the pause for real transports. It waits until at most 32 commands are not
// answered, and sometimes until all are answered.
func (h *harness) pacer() func(time.Duration) {
	answered := 0
	return func(d time.Duration) {
		sent := h.sent()
		until := max(answered, len(sent)-32)
		if d/time.Millisecond%16 == 0 {
			until = len(sent)
		}
		for ; answered < until; answered++ {
			sent[answered].reply()
		}
	}
}

// soakInMemory runs a script on a server in this process. The faults come from hooks.
func soakInMemory(t *testing.T, cfg supervisor.Config, script []action) {
	cfg = withShortTimeouts(cfg)
	before := resourcesInUse()
	tools := faults.NewTools()
	var dial, lose, expire atomic.Int64
	hit := func(n *atomic.Int64) bool { return n.Add(-1) >= 0 }
	hooks := faults.Hooks{
		BeforeDial: func(context.Context, messages.Key) error {
			if hit(&dial) {
				return unavailableError("down")
			}
			return nil
		},
		BeforeCall: func(context.Context, messages.Key, messages.Operation) error {
			if hit(&expire) {
				return &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Sent: true}
			}
			return nil
		},
		AfterCall: func(_ context.Context, _ messages.Key, _ messages.Operation, result messages.Result, err error) (messages.Result, error) {
			if hit(&lose) {
				return nil, brokenError("the answer was lost")
			}
			return result, err
		},
	}
	cfg.Servers = []mcpbridge.Server{{Name: "s", InMemory: tools.Server()}}
	h := start(t, hooks.Config(cfg))
	defer h.stop()
	h.executed = tools.Executions
	set := func(n *atomic.Int64, value int) { n.Store(int64(value)) }
	soak(h, cfg, soakTarget{
		tools: []string{"count", "count", "count/ro", "fail"}, servers: []string{"s"},
		fault: func(pick int) { set([]*atomic.Int64{&dial, &lose, &expire}[pick%3], 1+pick/3%2) },
		heal:  func() { set(&dial, 0); set(&lose, 0); set(&expire, 0) },
		pause: h.pacer(), wait: h.cooler(cfg),
	}, withShortDeadlines(script))
	h.stopAndVerify()
	before.verify(t)
}

// cooler returns a function that waits until each scope can be opened again.
func (h *harness) cooler(cfg supervisor.Config) func() {
	return func() {
		for i := range 8 {
			scope := "scope-" + strconv.Itoa(i)
			require.Eventually(h.t, func() bool {
				_, ok := h.send(&messages.Open{Header: messages.To("s", scope)}).reply().(*messages.SessionInfo)
				return ok
			}, 30*time.Second, cfg.CoolDown/5)
		}
	}
}

// soakOverHTTP runs a script on a real socket.
func soakOverHTTP(streams, sse bool) func(*testing.T, supervisor.Config, []action) {
	return func(t *testing.T, cfg supervisor.Config, script []action) {
		cfg = withShortTimeouts(cfg)
		cfg.Servers = []mcpbridge.Server{{Name: "s"}}
		tools := faults.NewTools()
		tools.JSON, tools.Resumable, tools.SSE = !streams && !sse, streams, sse
		overHTTPWith(t, cfg, tools, func(h *harness, e *testServer) {
			forms := faults.Expiries()
			passing := []faults.Fault{
				faults.Cut(), faults.CutAnswer(0), faults.CutAnswer(60), faults.Refuse(500, "oops"), faults.Refuse(503, ""),
				faults.RefuseFor(1, 429, "slow down"), faults.Refuse(401, "who are you?"), faults.Delay(20 * time.Millisecond), faults.Hang(),
			}
			kinds := []string{"tools/call", "tools/call", "tools/call", "initialize", "ping", "GET", "DELETE", "notifications/cancelled"}
			var healing []func()
			soak(h, cfg, soakTarget{
				tools: []string{
					"count", "count", "count", "count", "count", "count", "count/ro", "count/ro", "count/ro", "count/ro", "fail", "wait/ro",
				},
				servers: []string{"s"},
				fault: func(pick int) {
					switch of := pick / 16; pick % 16 {
					case 0, 1, 2, 3, 4:
						e.ExpireSome(1, forms[of%len(forms)])
					case 5:
						e.Expire(forms[of%len(forms)])
					case 6:
						e.Stop()
						require.NoError(t, e.Start())
					case 7:
						require.NoError(t, e.Restart())
					default:
						healing = append(healing, e.Inject(kinds[of%len(kinds)], faults.Times(1, passing[of/8%len(passing)])))
					}
				},
				heal: func() {
					for _, heal := range healing {
						heal()
					}
					e.Release() // a waiting call would prevent the end of its session
				},
				pause: h.pacer(), wait: h.cooler(cfg),
			}, withShortDeadlines(script))
		})
	}
}

// soakOverStdio runs a script on real processes.
func soakOverStdio(t *testing.T, cfg supervisor.Config, script []action) {
	cfg = withShortTimeouts(cfg)
	cfg.ConnectTimeout, cfg.CallTimeout, cfg.CloseTimeout = 10*time.Second, 10*time.Second, 5*time.Second // a process takes some time to start
	overProcess(t, stdioserver.New(t.TempDir(), ""), func(*mcpbridge.Server) {}, cfg, func(h *harness) {
		soak(h, cfg, soakTarget{
			tools:   []string{"count", "count", "count", "count/ro", "count/ro", "fail", "pid", "exit", "garble", "half"},
			servers: []string{"s"},
			fault:   killAny, heal: func() {}, pause: h.pacer(), wait: h.cooler(cfg),
		}, withShortDeadlines(script))
	})
}

// killAny kills one of the server processes.
func killAny(pick int) {
	exe, err := os.Executable()
	if err != nil {
		return
	}
	servers := slices.DeleteFunc(children(), func(pid string) bool {
		cmdline, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		return !strings.HasPrefix(string(cmdline), exe)
	})
	if len(servers) == 0 {
		return
	}
	if pid, err := strconv.Atoi(servers[pick%len(servers)]); err == nil {
		if process, err := os.FindProcess(pid); err == nil {
			process.Kill()
		}
	}
}
