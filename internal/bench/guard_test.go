package bench

import (
	"context"
	"fmt"
	"os"
	"reflect"
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

// leastPerCall measures warm calls, one after the other. It returns the least of several
// rounds: other activity of the process only adds to what a call allocates.
func leastPerCall(t *testing.T, start starter, rounds, calls int) sample {
	t.Helper()
	contender, err := start(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, contender.close()) }()
	least, err := contender.round(t.Context(), calls)
	require.NoError(t, err)
	for range rounds - 1 {
		s, err := contender.round(t.Context(), calls)
		require.NoError(t, err)
		for unit, value := range s {
			least[unit] = min(least[unit], value)
		}
	}
	return least
}

func TestAllocationsAndBytesAddedToAWarmCall(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := newTestSetup(t)
	for _, c := range []struct {
		over            route
		message, client float64 // allocations
		bytes           float64
	}{
		{p.overMemory(), -11.5, -9.5, -131_500},
		{p.overStdio(nil), 2, 4, -130_100},
		{p.overJSON(), 20.5, 22.5, -128_700},
		{p.overSSE(), 17.5, 19.5, -128_800},
	} {
		t.Run(c.over.transport, func(t *testing.T) {
			bare := leastPerCall(t, repeated(1, c.over, openBare), 3, 200)
			check := func(name string, open opener, allocs float64) {
				s := leastPerCall(t, repeated(1, c.over, open), 3, 200)
				t.Logf("by %s: %+.1f to %.1f allocations, %+.0f to %.0f bytes", name,
					s[allocsPerOp]-bare[allocsPerOp], bare[allocsPerOp], s[bytesPerOp]-bare[bytesPerOp], bare[bytesPerOp])
				require.InDelta(t, allocs, s[allocsPerOp]-bare[allocsPerOp], 1.5, "allocations by %s", name)
				require.InDelta(t, c.bytes, s[bytesPerOp]-bare[bytesPerOp], 600, "bytes by %s", name)
			}
			check(messageName, openMessage(supervisor.Config{}), c.message)
			check(clientName, openClient(supervisor.Config{}), c.client)
		})
	}
}

func TestBytesAllocatedForALargeResult(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	p := newTestSetup(t)
	// The figures are sizes of the result.
	for content, most := range map[string]map[string]float64{
		contentText:  {"stdio": 4.7, nameJSON: 2.2, nameSSE: 5.8},
		contentImage: {"stdio": 4.3, nameJSON: 2.0, nameSSE: 5.3},
	} {
		for _, r := range p.overLarge(content) {
			s := leastPerCall(t, inBodies(content, r, openClient(supervisor.Config{})), 1, 1)
			t.Logf("%s over %s: %.2f", content, r.transport, s[bodiesPerOp])
			require.LessOrEqual(t, s[bodiesPerOp], most[r.transport], "%s over %s", content, r.transport)
		}
	}
}

func TestLargeResultsArriveWhole(t *testing.T) {
	p := newTestSetup(t)
	for _, content := range largeContents {
		for _, r := range p.overLarge(content) {
			s, err := supervise(r, supervisor.Config{})
			require.NoError(t, err)
			result, err := s.plain.CallTool(t.Context(), serverName, oneKey, echoParams())
			require.NoError(t, err)
			require.True(t, reflect.DeepEqual(largeResult(content).Content, result.Result.Content), "%s over %s", content, r.transport)
			require.NoError(t, s.close())
		}
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
	events := relay.New(100, func(any) {}, nil, nil)
	props := actors.NewRegistry(actors.Config{
		Servers: []mcpbridge.Server{{Name: serverName, URL: "http://instant.invalid"}}, Dialer: instantDialer{}, Strategy: supervisor.Strategy{},
		Logger: relay.NewLogger(zerolog.Nop()), Events: events, Post: relay.NewPost(system, events, nil),
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

// The values of a client's context cost one allocation, and a message that carries
// attributes none.
func TestAllocationsOfACallersContext(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	allocsPerCall := func(open opener) float64 {
		return leastPerCall(t, repeated(1, instantly(), open), 3, 200)[allocsPerOp]
	}
	message := allocsPerCall(openMessage(supervisor.Config{}))
	plain := allocsPerCall(openClient(supervisor.Config{}))
	attributes := messages.NewAttributes(map[string]string{"tenant": "acme"})
	attributed := allocsPerCall(func(r route) (client, error) {
		s, err := supervise(r, supervisor.Config{})
		return attributedMessage{byMessage{s}, attributes}, err
	})
	t.Logf("%.1f by message, %.1f with attributes, %.1f by client", message, attributed, plain)
	require.InDelta(t, 0, attributed-message, 0.5)
	require.Less(t, plain-message, clientAllocs+0.5)
}

// clientAllocs is how many allocations a client adds to a message: one of its own, and one
// for the values of its caller's context.
const clientAllocs = 2

// attributedMessage calls by messages with attributes.
type attributedMessage struct {
	byMessage
	attributes messages.Attributes
}

func (m attributedMessage) call(_ context.Context, key string) error {
	a := m.agents.Get().(*agent)
	defer m.agents.Put(a)
	cmd := command(key)
	cmd.Attributes = m.attributes
	m.system.Root.RequestWithCustomSender(m.PID(), cmd, a.pid)
	if f, ok := (<-a.replies).(*messages.Failure); ok {
		return f
	}
	return nil
}
