package registry

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/dispatch"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stub is a dialer whose connections answer at once, or never.
type stub struct {
	mu   sync.Mutex
	open int
}

func (s *stub) change(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += by
}

func (s *stub) Dial(ctx context.Context, _ dial.Request) (dial.Conn, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.change(+1)
	return &stubConn{s: s, cut: make(chan struct{})}, nil
}

type stubConn struct {
	s    *stub
	once sync.Once
	cut  chan struct{}
}

func (c *stubConn) Do(ctx context.Context, op messages.Operation) (messages.Result, error) {
	lost := &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Sent: true}
	if op, ok := op.(*messages.CallTool); ok && op.Params.Name == "slow" {
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
			return nil, &mcpbridge.Error{Class: mcpbridge.Cancelled, Sent: true}
		case <-c.cut:
			return nil, lost
		}
	}
	return &messages.ToolResult{Result: &mcp.CallToolResult{}}, nil
}

func (c *stubConn) Hint(string) (safe, known bool) { return false, true }
func (c *stubConn) Info() dial.Info                { return dial.Info{} }
func (c *stubConn) Resume() *mcpbridge.Resume      { return nil }
func (c *stubConn) Detach(context.Context) error {
	c.once.Do(func() { close(c.cut); c.s.change(-1) })
	return nil
}
func (c *stubConn) Close(ctx context.Context) error { return c.Detach(ctx) }

// patient restarts after every fault, at once.
type patient struct{}

func (patient) Decider(messages.Key) actors.Decider { return patient{} }
func (patient) Decide(f *actors.Fault, now time.Time) actors.Directive {
	return actors.Directive{Attempt: 1}
}

// box takes replies.
type box chan messages.Reply

func (b box) SendUserMessage(_ *actor.PID, msg any) {
	if r, ok := actor.UnwrapEnvelopeMessage(msg).(messages.Reply); ok {
		b <- r
	}
}
func (b box) SendSystemMessage(*actor.PID, any) {}
func (b box) Stop(*actor.PID)                   {}

// G1: a bug is planted for each kind of message that a session ever gets, in
// whatever state it gets it. All callers are answered, all connections are
// closed, other keys notice nothing, and the key works again.
func TestBugInASessionLosesNothing(t *testing.T) {
	kinds := map[string]bool{}
	scenario(t, func(c actor.Context) { kinds[fmt.Sprintf("%T", c.Message())] = true })
	require.Contains(t, kinds, "*contract.Drain")
	require.Contains(t, kinds, "*actor.Stopped")
	for kind := range kinds {
		for nth := range 3 {
			t.Run(fmt.Sprintf("%s %d", kind[1:], nth), func(t *testing.T) {
				scenario(t, plant(kind, nth))
			})
		}
	}
	t.Run("actor.Restarting", func(t *testing.T) {
		first, second := plant("*contract.Call", 0), plant("*actor.Restarting", 0)
		log := scenario(t, func(c actor.Context) { first(c); second(c) })
		require.Contains(t, log, "planted in *actor.Restarting")
	})
}

// plant returns a probe that panics at the nth message of a kind, of all actors.
func plant(kind string, nth int) func(actor.Context) {
	var seen atomic.Int64
	return func(c actor.Context) {
		if got := fmt.Sprintf("%T", c.Message()); got == kind {
			if seen.Add(1) == int64(nth)+1 {
				panic("planted in " + got)
			}
		}
	}
}

// scenario takes one session, of key s/a, through its whole life.
func scenario(t *testing.T, probe func(actor.Context)) string {
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		dialer := new(stub)
		stopped := make(chan struct{})
		armed := true
		logger := relay.NewLogger(zerolog.New(zerolog.SyncWriter(&log)))
		cfg := protocol.Config{
			Servers: []mcpbridge.Server{{Name: "s", KeepAlive: 40 * time.Second}}, Dialer: dialer, Strategy: patient{}, Logger: logger, Events: relay.New(100, func(any) {}, nil, nil),
			MaxSessions: 2, MaxInFlight: 2, MaxWaiting: 10, MaxWaitingTotal: 100, MaxDials: 2, MaxStarts: 16, Random: rand.Float64, IdleTimeout: time.Hour,
			ConnectTimeout: 10 * time.Second, CallTimeout: 2 * time.Minute, DrainTimeout: 10 * time.Second, CloseTimeout: 5 * time.Second,
			Stopped: func([]messages.Left) { close(stopped) },
		}
		cfg.Probe = func(c actor.Context) {
			mu.Lock()
			defer mu.Unlock()
			if armed {
				probe(c)
			}
		}
		system := actor.NewActorSystem()
		cfg.Post = relay.NewPost(system, cfg.Events, nil)
		pid := system.Root.Spawn(props(configOf(cfg, new(dispatch.Dispatcher))))
		var boxes []box
		send := func(cmd messages.Command) box {
			b := make(box, 5)
			boxes = append(boxes, b)
			self, _ := system.ProcessRegistry.Add(b, system.ProcessRegistry.NextId())
			system.Root.RequestWithCustomSender(pid, cmd, self)
			return b
		}
		run := func(scope, tool, id string) box {
			op := &messages.CallTool{Header: messages.To("s", scope), Params: &mcp.CallToolParams{Name: tool}}
			op.ID = id
			return send(op)
		}
		for range 2 {
			run("a", "fast", "1")
			run("a", "slow", "2")
			synctest.Wait()
			time.Sleep(2 * time.Second) // synctest
			run("a", "slow", "3")
			run("a", "slow", "4")
			run("a", "fast", "5")
			synctest.Wait()
			system.Root.Send(pid, &messages.Cancel{Key: messages.Key{Server: "s", Scope: "a"}, ID: "3"})
			time.Sleep(3 * time.Minute) // past every deadline, and some pings
			run("a", "slow", "6")
			synctest.Wait()
			send(&messages.CloseScope{Scope: "a"})
			time.Sleep(time.Minute) // synctest
		}
		mu.Lock()
		armed = false
		mu.Unlock()
		again, other := run("a", "fast", "7"), run("b", "fast", "8")
		require.IsType(t, &messages.ToolResult{}, <-again)
		require.IsType(t, &messages.ToolResult{}, <-other)
		system.Root.Send(pid, &protocol.Stop{})
		<-stopped
		time.Sleep(10 * time.Second) // synctest
		for i, b := range boxes {
			if i < len(boxes)-2 { // those were received
				require.Len(t, b, 1, "command %d", i)
			}
		}
		require.Zero(t, dialer.open)
		require.True(t, logger.Flush(t.Context()))
		require.Equal(t, strings.Contains(log.String(), "planted"), strings.Contains(log.String(), "stack"))
	})
	return log.String()
}

// H-F5: a reload that panics is answered, and the registry still works.
func TestReloadThatPanicsIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan struct{})
		system := actor.NewActorSystem()
		events := relay.New(100, func(any) {}, nil, nil)
		pid, _ := start(system, protocol.Config{
			Servers: []mcpbridge.Server{{Name: "s"}}, Dialer: new(stub), Strategy: patient{}, Logger: relay.NewLogger(zerolog.Nop()),
			Events: events, Post: relay.NewPost(system, events, nil),
			MaxSessions: 1, MaxInFlight: 1, MaxWaitingTotal: 1, MaxDials: 1, MaxStarts: 1, Random: rand.Float64,
			ConnectTimeout: time.Minute, CallTimeout: time.Minute, DrainTimeout: time.Minute, CloseTimeout: time.Minute,
			Stopped: func([]messages.Left) { close(stopped) },
		})
		box := protocol.NewFuture(system, nil)
		defer box.Close()
		system.Root.RequestWithCustomSender(pid, &protocol.Reload{Apply: func() { panic("planted") }}, box.PID)
		require.Equal(t, messages.CodeInternal, (<-box.Reply).(*messages.Failure).Code)
		system.Root.RequestWithCustomSender(pid, &messages.CallTool{Header: messages.To("s", "a"), Params: &mcp.CallToolParams{Name: "fast"}}, box.PID)
		require.IsType(t, &messages.ToolResult{}, <-box.Reply)
		system.Root.Send(pid, &protocol.Stop{})
		<-stopped
		time.Sleep(10 * time.Second) // synctest
	})
}
