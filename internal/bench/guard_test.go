package bench

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/actors"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// The guards fail when a call becomes more expensive, or cheaper. Then the figure here
// and the one in docs/performance.md change.

func newTestSetup(t *testing.T) *setup {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p, err := newSetup(t.Context(), Config{Child: []string{self, serveArg}}.withDefaults())
	require.NoError(t, err)
	t.Cleanup(p.close)
	return p
}

// allocsPerCall counts the allocations of warm calls, one after the other. It returns
// the least of several rounds: other activity of the process only adds to it.
func allocsPerCall(t *testing.T, r route, open opener) float64 {
	t.Helper()
	calls, err := repeated(1, r, open)(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, calls.close()) }()
	least := math.Inf(1)
	for range 3 {
		s, err := calls.round(t.Context(), 200)
		require.NoError(t, err)
		least = min(least, s[allocsPerOp])
	}
	return least
}

func TestAllocationsAddedToAWarmCall(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := newTestSetup(t)
	for _, c := range []struct {
		over            route
		message, client float64
	}{
		{p.overMemory(), 8, 10},
		{p.overJSON(), 41, 43},
	} {
		t.Run(c.over.transport, func(t *testing.T) {
			bare := allocsPerCall(t, c.over, openBare)
			message := allocsPerCall(t, c.over, openMessage(supervisor.Config{})) - bare
			client := allocsPerCall(t, c.over, openClient(supervisor.Config{})) - bare
			t.Logf("%.1f of the SDK, %.1f more by message, %.1f more by client", bare, message, client)
			require.InDelta(t, c.message, message, 1, "by message")
			require.InDelta(t, c.client, client, 1, "by supervisor.Client")
		})
	}
}

// counter counts the messages of a supervisor's actors by type.
type counter struct {
	mu  sync.Mutex
	got map[string]int
}

// receive is a middleware that counts.
func (n *counter) receive(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		n.mu.Lock()
		n.got[fmt.Sprintf("%T", envelope.Message)]++
		n.mu.Unlock()
		next(c, envelope)
	}
}

// spawn is a middleware that counts the messages of sessions as well. The publisher of
// events is not counted.
func (n *counter) spawn(next actor.SpawnFunc) actor.SpawnFunc {
	return func(system *actor.ActorSystem, id string, props *actor.Props, parent actor.SpawnerContext) (*actor.PID, error) {
		if strings.Contains(id, "/session") {
			props = props.Configure(actor.WithReceiverMiddleware(n.receive))
		}
		return next(system, id, props, parent)
	}
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
	n := &counter{got: map[string]int{}}
	stopped := make(chan struct{})
	system := actor.NewActorSystem(noLog)
	props := actors.NewRegistry(actors.Config{
		Servers: []mcpbridge.Server{{Name: serverName, URL: "http://instant.invalid"}}, Dialer: instantDialer{}, Strategy: supervisor.Strategy{},
		Logger: relay.NewLogger(zerolog.Nop()), Events: relay.New(100, func(any) {}, nil, nil),
		MaxSessions: 1, MaxInFlight: 64, MaxWaiting: 64, MaxWaitingTotal: 64, MaxDials: 1,
		ConnectTimeout: 10 * time.Second, CallTimeout: 10 * time.Second, DrainTimeout: 10 * time.Second, CloseTimeout: 10 * time.Second,
		Stopped: func([]messages.Left) { close(stopped) },
	})
	pid := system.Root.Spawn(props.Configure(actor.WithReceiverMiddleware(n.receive), actor.WithSpawnMiddleware(n.spawn)))
	a := newAgent(system, 1)
	ask := func() {
		system.Root.RequestWithCustomSender(pid, command(oneKey), a.pid)
		require.IsType(t, (*messages.ToolResult)(nil), <-a.replies)
	}
	// settle waits until the registry knows that the calls have ended: a session tells it
	// after the reply.
	settle := func() {
		for {
			system.Root.RequestWithCustomSender(pid, &messages.Inspect{}, a.pid)
			if (<-a.replies).(*messages.Snapshot).Sessions[0].Outstanding == 0 {
				return
			}
		}
	}
	ask()
	settle()
	n.take()

	const calls = 100
	for range calls {
		ask()
	}
	settle()
	got := n.take()
	delete(got, "*messages.Inspect")
	require.Equal(t, map[string]int{
		"*messages.CallTool":   calls, // to the registry
		"*actors.call":         calls, // to the session
		"*actors.callReturned": calls, // from its goroutine
		"*actors.callReplied":  calls, // to the registry, after the reply
	}, got)

	system.Root.Send(pid, &actors.Stop{})
	<-stopped
}
