package registry

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dispatch"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// counter counts the messages of a registry and its sessions by type.
type counter struct {
	mu  sync.Mutex
	got map[string]int
}

// count notes a message.
func (n *counter) count(msg any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.got[fmt.Sprintf("%T", msg)]++
}

// take returns what was counted, and starts again from zero.
func (n *counter) take() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	got := n.got
	n.got = map[string]int{}
	return got
}

func TestMessagesOfAWarmCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &counter{got: map[string]int{}}
		stopped := make(chan struct{})
		system := actor.NewActorSystem()
		events := relay.New(100, func(any) {}, nil, nil)
		cfg := protocol.Config{
			Servers: []mcpbridge.Server{{Name: "s"}}, Dialer: new(stub), Strategy: patient{},
			Logger: relay.NewLogger(zerolog.Nop()), Events: events, Post: relay.NewPost(system, events, nil),
			MaxSessions: 1, MaxInFlight: 64, MaxWaiting: 64, MaxWaitingTotal: 64, MaxDials: 1, MaxStarts: 16, Random: rand.Float64,
			ConnectTimeout: 10 * time.Second, CallTimeout: 10 * time.Second, DrainTimeout: 10 * time.Second, CloseTimeout: 10 * time.Second,
			Stopped: func([]messages.Left) { close(stopped) },
		}
		cfg.Probe = func(c actor.Context) { n.count(c.Message()) }
		receive := func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
				n.count(envelope.Message)
				next(c, envelope)
			}
		}
		pid := system.Root.Spawn(props(configOf(cfg, new(dispatch.Dispatcher))).Configure(actor.WithReceiverMiddleware(receive)))
		ask := func() {
			future := protocol.NewFuture(system, nil)
			defer future.Close()
			system.Root.RequestWithCustomSender(pid, &messages.CallTool{Header: messages.To("s", "a"), Params: &mcp.CallToolParams{Name: "fast"}}, future.PID)
			require.IsType(t, (*messages.ToolResult)(nil), <-future.Reply)
		}
		ask()
		synctest.Wait()
		n.take()

		const calls = 100
		for range calls {
			ask()
		}
		synctest.Wait() // the registry may not have read yet that the last call has ended
		require.Equal(t, map[string]int{
			"*messages.CallTool":    calls, // to the registry
			"*contract.Call":        calls, // to the session
			"*session.callReturned": calls, // from its goroutine
			"*contract.CallReplied": calls, // to the registry, before the reply
		}, n.take())

		system.Root.Send(pid, &protocol.Stop{})
		<-stopped
		time.Sleep(10 * time.Second)
	})
}

// repeating is a process that calls once more as soon as it has a reply, and keeps the reply to that.
type repeating struct {
	box
	again func()
}

func (r *repeating) SendUserMessage(to *actor.PID, message any) {
	if again := r.again; again != nil {
		r.again = nil
		again()
		return
	}
	r.box.SendUserMessage(to, message)
}

func (*repeating) Prompt() {}

// A caller that makes one call after the other is never busy because of its own last call.
func TestTheRegistryKnowsOfAReplyBeforeTheCallerCanCallAgain(t *testing.T) {
	inWatchedRegistry(t, func(w *watchedRegistry) {
		caller := &repeating{box: make(box, 1)}
		self, _ := w.system.ProcessRegistry.Add(caller, w.system.ProcessRegistry.NextId())
		call := func() {
			op := &messages.CallTool{Header: messages.To("one", "a"), Params: &mcp.CallToolParams{Name: "fast"}}
			w.system.Root.RequestWithCustomSender(w.pid, op, self)
		}
		caller.again = call
		call()
		require.IsType(t, &messages.ToolResult{}, <-caller.box)
	}, func(cfg *protocol.Config) {
		cfg.MaxInFlight, cfg.MaxWaiting = 1, 0
		cfg.Servers = append(cfg.Servers, mcpbridge.Server{Name: "one"})
	})
}
