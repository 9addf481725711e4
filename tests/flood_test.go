package tests

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// floods are what one side does to exhaust the others. Each returns what ends it.
var floods = []struct {
	name  string
	flood func(h *harness, size int) (end func())
}{
	{"a server that asks", func(h *harness, size int) func() {
		return h.asking(h.refusing(), size)
	}},
	{"a server that asks a handler that does not answer", func(h *harness, size int) func() {
		return h.asking(h.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {})), size)
	}},
	{"a server that asks a handler that blocks", func(h *harness, size int) func() {
		release := make(chan struct{})
		pid, _ := h.system.ProcessRegistry.Add(blockedProcess(release), "handler")
		end := h.asking(pid, size)
		return func() { end(); close(release) }
	}},
	{"what is logged, for a writer that blocks", func(h *harness, size int) func() {
		return h.floodBy(size, func(pid *actor.PID, i int) {
			h.system.Root.RequestWithCustomSender(h.pid, call(fmt.Sprint("logged-", i), "count"), pid)
			h.system.Root.RequestWithCustomSender(h.pid, &messages.CloseScope{Scope: fmt.Sprint("logged-", i)}, pid)
		})
	}},
	{"a server that sends notifications", func(h *harness, size int) func() {
		h.send(call("flooded", "count")).ok()
		heard := h.hearing("flooded")
		for range size {
			heard(&messages.ToolsChanged{})
		}
		return nothing
	}},
	{"a caller that calls", func(h *harness, size int) func() {
		return h.floodBy(size, func(pid *actor.PID, _ int) {
			h.system.Root.RequestWithCustomSender(h.pid, call("flooded", "count"), pid)
		})
	}},
	{"a caller whose calls hang", func(h *harness, size int) func() {
		end := h.floodBy(size, func(pid *actor.PID, _ int) {
			h.system.Root.RequestWithCustomSender(h.pid, call("flooded", "hang"), pid)
		})
		return func() {
			h.send(&messages.CancelScope{Scope: "flooded"}).reply()
			end()
		}
	}},
	{"a caller that cancels what does not exist", func(h *harness, size int) func() {
		return h.floodBy(size, func(_ *actor.PID, i int) {
			h.system.Root.Send(h.pid, &messages.Cancel{Key: messages.Key{Server: "s", Scope: fmt.Sprint("none-", i)}, ID: fmt.Sprint(i)})
		})
	}},
	{"a caller that cancels unknown calls of its session", func(h *harness, size int) func() {
		h.calls(100, "flooded", "slow")
		return h.floodBy(size, func(_ *actor.PID, i int) {
			h.system.Root.Send(h.pid, &messages.Cancel{Key: messages.Key{Server: "s", Scope: "flooded"}, ID: fmt.Sprint("none-", i)})
		})
	}},
	{"a caller that inspects", func(h *harness, size int) func() {
		h.openMany(300)
		return h.floodBy(size, func(pid *actor.PID, _ int) {
			h.system.Root.RequestWithCustomSender(h.pid, &messages.Inspect{Limit: -1}, pid)
		})
	}},
	{"an owner of many scopes that ends", func(h *harness, size int) func() {
		pid := owner(h)
		for i := range size {
			h.system.Root.Send(h.pid, &messages.Bind{Scope: fmt.Sprint("owned-", i), Owner: pid})
		}
		h.system.Root.Stop(pid)
		return nothing
	}},
	{"callers that have stopped, and a handler of dead letters that blocks", func(h *harness, size int) func() {
		release := make(chan struct{})
		subscription := h.system.EventStream.Subscribe(func(event any) {
			if _, is := event.(*actor.DeadLetterEvent); is {
				<-release
			}
		})
		gone := actor.NewPID("nonhost", "gone")
		for i := range size {
			h.system.Root.RequestWithCustomSender(h.pid, call("flooded", "count"), gone)
			h.system.Root.RequestWithCustomSender(h.pid, call("flooded", "count", on("unknown")), gone)
			if i%10 == 0 {
				h.system.Root.RequestWithCustomSender(h.pid, &messages.Inspect{}, gone)
				h.system.Root.RequestWithCustomSender(h.pid, call("flooded", "count", ownedBy(gone)), gone)
			}
		}
		return func() {
			close(release)
			h.system.EventStream.Unsubscribe(subscription)
		}
	}},
	{"callers that have stopped, and a handler of dead letters that panics", func(h *harness, size int) func() {
		subscription := h.system.EventStream.Subscribe(func(event any) {
			if _, is := event.(*actor.DeadLetterEvent); is {
				panic("a bug of a handler")
			}
		})
		for range size {
			h.system.Root.RequestWithCustomSender(h.pid, call("flooded", "count"), actor.NewPID("nonhost", "gone"))
		}
		return func() { h.system.EventStream.Unsubscribe(subscription) }
	}},
	{"a subscriber that has died", func(h *harness, size int) func() {
		subscriber := owner(h)
		op := &messages.Subscribe{Header: messages.To("s", "flooded"), URI: "a:b"}
		op.Subscriber = subscriber
		h.send(op).reply()
		heard := h.hearing("flooded")
		h.system.Root.Stop(subscriber)
		for range size {
			heard(&messages.ResourceUpdated{URI: "a:b"})
		}
		return nothing
	}},
	{processesThatBlock, func(h *harness, size int) func() {
		release := make(chan struct{})
		for i := range size {
			pid, _ := h.system.ProcessRegistry.Add(blockedProcess(release), fmt.Sprint("blocked-", i))
			h.system.Root.RequestWithCustomSender(h.pid, call("flooded", "count"), pid)
		}
		return func() { close(release) }
	}},
	{"actors whose mailboxes run code of theirs", func(h *harness, size int) func() {
		release := make(chan struct{})
		pid := h.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, actor.WithMailbox(actor.Unbounded(blockedMailbox(release)))))
		for range size {
			h.system.Root.RequestWithCustomSender(h.pid, call("flooded", "count"), pid)
		}
		return func() { close(release) }
	}},
	{"watchers that have stopped", func(h *harness, size int) func() {
		release := make(chan struct{})
		subscription := h.system.EventStream.Subscribe(func(event any) {
			if _, is := event.(*actor.DeadLetterEvent); is {
				<-release
			}
		})
		for range size {
			h.system.Root.RequestWithCustomSender(h.pid, &actor.Touch{}, actor.NewPID("nonhost", "gone"))
		}
		return func() {
			close(release)
			h.system.EventStream.Unsubscribe(subscription)
		}
	}},
}

const processesThatBlock = "callers whose processes block"

func nothing() {}

// blockedProcess is a process that blocks whoever sends to it.
type blockedProcess chan struct{}

func (b blockedProcess) SendUserMessage(*actor.PID, any)   { <-b }
func (b blockedProcess) SendSystemMessage(*actor.PID, any) { <-b }
func (blockedProcess) Stop(*actor.PID)                     {}

// blockedMailbox is a middleware of a mailbox that blocks whoever sends it a reply.
type blockedMailbox chan struct{}

func (b blockedMailbox) MessagePosted(message any) {
	if _, is := message.(messages.Reply); is {
		<-b
	}
}
func (blockedMailbox) MailboxStarted()     {}
func (blockedMailbox) MessageReceived(any) {}
func (blockedMailbox) MailboxEmpty()       {}

// floodBy sends messages whose replies go to an actor.
func (h *harness) floodBy(size int, send func(pid *actor.PID, i int)) (end func()) {
	pid := h.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	for i := range size {
		send(pid, i)
	}
	return func() { h.system.Root.Stop(pid) }
}

// openMany opens sessions.
func (h *harness) openMany(n int) {
	for i := range n {
		h.send(call(fmt.Sprint("many-", i), "count")).ok()
	}
}

// hearing returns what the server of a scope notifies by.
func (h *harness) hearing(scope string) func(messages.Notification) {
	heard := h.dialed("s", scope).Heard
	return func(n messages.Notification) { heard(n, nil) }
}

// dialed returns what the connection of a key was dialed with.
func (h *harness) dialed(server, scope string) dial.Request {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	req, there := h.server.dialed[messages.Key{Server: server, Scope: scope}]
	require.True(h.t, there)
	return req
}

// refusing spawns a handler that refuses all requests.
func (h *harness) refusing() *actor.PID {
	return h.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if _, is := c.Message().(messages.Request); is {
			c.Respond(&messages.Refusal{})
		}
	}))
}

// asking floods a handler with the requests of a server. As many are open at once as the bridge lets through.
func (h *harness) asking(handler *actor.PID, size int) (end func()) {
	h.send(call("flooded", "count")).ok()
	bound := h.send(&messages.Bind{Scope: "flooded", Handler: handler}).reply()
	require.IsType(h.t, &messages.Bound{}, bound)
	ask := h.dialed("s", "flooded").Ask
	ctx, cancel := context.WithCancel(h.t.Context())
	const open = 64
	for range open {
		go func() {
			for range size / open {
				ask(ctx, &messages.Elicit{Params: &mcp.ElicitParams{Message: "?"}}, nil)
				ask(ctx, &messages.Sample{Params: &mcp.CreateMessageWithToolsParams{}}, nil)
				ask(ctx, &messages.ListRoots{}, nil)
			}
		}()
	}
	return cancel
}

// C13 and H-D8: whoever floods, the call of another key is answered before the time of the clock moves, and
// neither goroutines nor memory nor descriptors grow with what was sent. Only a process of a caller that
// blocks holds a goroutine. The writer of the log blocks meanwhile.
func TestNobodyWhoFloodsDelaysAnotherKey(t *testing.T) {
	const size = 3000
	for _, f := range floods {
		t.Run(f.name, func(t *testing.T) {
			release := lazyChannel()
			writer := &blockedWriter{open: func() <-chan struct{} { return release() }}
			cfg := supervisor.Config{
				MaxSessions: 10_000, Logger: zerolog.New(writer), Capabilities: elicits,
				Servers: []mcpbridge.Server{{Name: "process", Command: "none"}},
			}
			inFakeTime(t, cfg, func(h *harness) {
				h.strict = false // there are dead letters
				h.send(call("quiet", "count")).ok()
				synctest.Wait()
				goroutines, memory, files := runtime.NumGoroutine(), usedMemory(), openFiles()
				end := f.flood(h, size)
				began := time.Now()
				for range 3 {
					h.send(call("quiet", "count")).ok()
				}
				p := h.send(call("quiet", "hang"))
				h.cancel(p)
				p.fails(messages.CodeCancelled)
				require.LessOrEqual(t, time.Since(began), 5*time.Millisecond)
				ctx, cancel := context.WithCancel(h.t.Context())
				time.AfterFunc(time.Second, cancel)
				began = time.Now()
				_, err := h.sup.Client().CallTool(ctx, "s", "quiet", call("quiet", "hang").Params)
				require.ErrorIs(t, err, messages.CodeCancelled)
				require.LessOrEqual(t, time.Since(began), time.Second+5*time.Millisecond)
				synctest.Wait()
				most := 200
				if f.name == processesThatBlock {
					most += size
				}
				require.Less(t, runtime.NumGoroutine()-goroutines, most, "goroutines")
				require.Empty(t, difference(openFiles(), files))
				require.Less(t, int64(usedMemory()-memory), int64(30<<20), "memory")
				end()
				close(release())
			})
		})
	}
}

// usedMemory returns how much memory is in use.
func usedMemory() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// H-D9: a store that never answers delays no session that is open, and no more than its time those that
// open.
func TestAStoreThatHangsDelaysNoOpenSession(t *testing.T) {
	hung := &hungStore{}
	inFakeTime(t, supervisor.Config{Store: hung}, func(h *harness) {
		h.send(call("quiet", "count")).ok()
		hung.hangs.Store(true)
		for i := range 100 {
			h.send(&messages.CloseScope{Scope: fmt.Sprint("closed-", i)})
		}
		began := time.Now()
		h.send(call("quiet", "count")).ok()
		require.Zero(t, time.Since(began))
	})
}

// hungStore is a store whose requests wait for the end of their contexts.
type hungStore struct{ hangs atomic.Bool }

func (s *hungStore) wait(ctx context.Context) error {
	if !s.hangs.Load() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (s *hungStore) Load(ctx context.Context, _ messages.Key) (*mcpbridge.Record, error) {
	return nil, s.wait(ctx)
}

func (s *hungStore) Save(ctx context.Context, _ messages.Key, _ *mcpbridge.Record) error {
	return s.wait(ctx)
}
func (s *hungStore) Delete(ctx context.Context, _ messages.Key) error { return s.wait(ctx) }
func (s *hungStore) Keys(ctx context.Context) ([]messages.Key, error) { return nil, s.wait(ctx) }

var floodSeconds = flag.Int("flood.seconds", 0, "how long each flood of the flood test lasts in real time; 0 skips it")

// In real time, a server, a caller or an owner that floods from one processor does not delay another key:
// the slowest of its calls but 1 % take at most three times as long as without a flood, or 10 ms longer.
func TestFloodsInRealTime(t *testing.T) {
	if *floodSeconds == 0 {
		t.Skip("takes long: set -flood.seconds")
	}
	require.Greater(t, runtime.GOMAXPROCS(0), 1, "the flooder takes a processor")
	var ending *actor.PID
	for name, flood := range map[string]func(h *harness, pid *actor.PID, i int){
		"calls": func(h *harness, pid *actor.PID, _ int) {
			h.system.Root.RequestWithCustomSender(h.pid, call("flooded", "count"), pid)
		},
		"cancels": func(h *harness, _ *actor.PID, i int) {
			h.system.Root.Send(h.pid, &messages.Cancel{Key: messages.Key{Server: "s", Scope: fmt.Sprint(i)}, ID: "1"})
		},
		"snapshots of all sessions": func(h *harness, pid *actor.PID, i int) {
			h.system.Root.RequestWithCustomSender(h.pid, &messages.Inspect{Limit: -1}, pid)
		},
		"notifications": func(h *harness, _ *actor.PID, _ int) { h.hearing("flooded")(&messages.ToolsChanged{}) },
		"requests": func(h *harness, _ *actor.PID, _ int) {
			h.dialed("s", "flooded").Ask(context.Background(), &messages.Elicit{Params: &mcp.ElicitParams{Message: "?"}}, nil)
		},
		"owners that end": func(h *harness, _ *actor.PID, i int) { // each of 100 scopes
			if i%100 == 0 {
				ending = owner(h)
			}
			h.system.Root.Send(h.pid, &messages.Bind{Scope: fmt.Sprint(i), Owner: ending})
			if i%100 == 99 {
				h.system.Root.Stop(ending)
			}
		},
		"calls of the dead": func(h *harness, _ *actor.PID, _ int) {
			h.system.Root.RequestWithCustomSender(h.pid, call("flooded", "count", on("unknown")), actor.NewPID("nonhost", "gone"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeServer()
			h := newHarness(t)
			h.strict, h.log, h.server = false, nil, f
			h.start(dial.Replace(supervisor.Config{
				Servers: []mcpbridge.Server{{Name: "s", URL: "http://fake.invalid"}, {Name: "process", Command: "none"}}, MaxSessions: 10_000,
				Handler: h.refusing(), Capabilities: elicits,
			}, f))
			h.openMany(1000)
			for _, scope := range []string{"quiet", "flooded"} {
				h.send(call(scope, "count")).ok()
			}
			quiet := h.slowestButOnePercent()
			stop, stopped := make(chan struct{}), make(chan int)
			pid := h.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
			go func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						stopped <- i
						return
					default:
						flood(h, pid, i)
					}
					if i%100 == 99 { // a caller in the same process that never waits is not bounded by anything
						h.sup.Client().Inspect(t.Context())
					}
				}
			}()
			flooded := h.slowestButOnePercent()
			close(stop)
			t.Logf("%d messages; p99 %v, without %v", <-stopped, flooded, quiet)
			require.LessOrEqual(t, flooded, max(3*quiet, quiet+10*time.Millisecond))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var left *supervisor.StopError
			if err := h.sup.Stop(ctx); err != nil {
				require.True(t, errors.As(err, &left), "%v", err)
				require.Empty(t, left.Left)
			}
		})
	}
}

// slowestButOnePercent calls another key for a while, and returns the 99th percentile of the times.
func (h *harness) slowestButOnePercent() time.Duration {
	var all []time.Duration
	for end := time.Now().Add(time.Duration(*floodSeconds) * time.Second); time.Now().Before(end); {
		began := time.Now()
		_, err := h.sup.Client().CallTool(h.t.Context(), "s", "quiet", &mcp.CallToolParams{Name: "count", Arguments: map[string]any{"call": "quiet"}})
		require.NoError(h.t, err)
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}
