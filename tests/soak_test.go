package tests

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

var (
	soakSeed  = flag.Uint64("soak.seed", 0, "seed of the soak; 0 takes a new one for each round")
	soakCalls = flag.Int("soak.calls", 1_000, "calls in each of the 9 imagined rounds of the soak; the rounds on real transports have a part of that")
)

// soakRounds are the rounds on real transports, each with its share of -soak.calls.
// Together with the 9 rounds in fake time they make 10,000 calls by default.
var soakRounds = []struct {
	name  string
	part  float64
	round func(t *testing.T, cfg supervisor.Config, script []action)
}{
	{"in memory", 0.35, soakInMemory},
	{"JSON", 0.25, soakOverHTTP(false, false)},
	{"event streams", 0.2, soakOverHTTP(true, false)},
	{"HTTP+SSE", 0.1, soakOverHTTP(false, true)},
	{"stdio", 0.1, soakOverStdio},
}

// G3: random actions from a seed, with all faults, on all transports.
func TestSoak(t *testing.T) {
	rounds := 9
	if testing.Short() {
		rounds = 3
	}
	for i := range rounds {
		soakRound(t, fmt.Sprint("fake time ", i), 1, soakInFakeTime)
	}
	for _, r := range soakRounds {
		soakRound(t, r.name, r.part, r.round)
	}
}

func soakRound(t *testing.T, name string, part float64, round func(*testing.T, supervisor.Config, []action)) {
	seed := *soakSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Run(name, func(t *testing.T) {
		t.Logf("-soak.seed=%d", seed)
		round(t, soakConfig(seed), soakScript(seed, int(part*float64(*soakCalls))))
	})
}

// The same seed gives the same actions, whatever their outcome is.
func TestSoakIsReproducible(t *testing.T) {
	require.Equal(t, soakScript(7, 1000), soakScript(7, 1000))
	require.NotEqual(t, soakScript(7, 1000), soakScript(8, 1000))
	require.Equal(t, soakConfig(7), soakConfig(7))
}

// action is one step of a script.
type action struct {
	kind     actionKind
	scope    string
	tool     int // index into those of the target
	server   int // index into those of the target
	replay   messages.Replay
	deadline time.Duration // 0 means none
	pick     int           // chooses the call to cancel, the fault, or its target
	pause    time.Duration
}

type actionKind int

const (
	doCall actionKind = iota
	doCancel
	doFault
	doClose
	doOpen
	doPause
)

// soakScript returns actions with n calls among them. They depend on the seed only.
func soakScript(seed uint64, n int) (script []action) {
	r := rand.New(rand.NewPCG(seed, 0))
	for n > 0 {
		a := action{
			scope: fmt.Sprint("scope-", r.IntN(8)), tool: r.IntN(1000), server: r.IntN(1000), replay: messages.Replay(r.IntN(3)),
			deadline: time.Duration(max(0, r.IntN(15_000)-10_000)) * time.Millisecond,
			pick:     r.IntN(1 << 20), pause: time.Duration(r.IntN(1000)) * time.Millisecond,
		}
		switch dice := r.IntN(100); {
		case dice < 70:
			a.kind = doCall
			n--
		case dice < 76:
			a.kind = doCancel
		case dice < 87:
			a.kind = doFault
		case dice < 89:
			a.kind = doClose
		case dice < 90:
			a.kind = doOpen
		default:
			a.kind = doPause
		}
		script = append(script, a)
	}
	return script
}

// soakConfig returns a configuration with low bounds, so that they are reached.
func soakConfig(seed uint64) supervisor.Config {
	r := rand.New(rand.NewPCG(seed, 1))
	return supervisor.Config{
		MaxSessions: 1 + r.IntN(6), MaxInFlight: 1 + r.IntN(4), MaxWaiting: 5 + r.IntN(20), MaxDials: 1 + r.IntN(3),
		IdleTimeout: time.Duration(1+r.IntN(60)) * time.Second, CallTimeout: 20 * time.Second,
		DrainTimeout: time.Duration(1+r.IntN(5)) * time.Second, CloseTimeout: time.Second, CoolDown: 5 * time.Second,
	}
}

// soakTarget is the server on which a script runs.
type soakTarget struct {
	tools   []string
	servers []string
	// fault injects a fault. heal ends the faults that last.
	fault func(pick int)
	heal  func()
	// pause waits between actions.
	pause func(d time.Duration)
	// wait waits until all keys work again after heal.
	wait func()
}

// soak runs a script. It checks the bounds at each pause, and at the end that all keys
// work.
func soak(h *harness, cfg supervisor.Config, st soakTarget, script []action) {
	recent := make([]*sentCommand, 0, 64)
	for _, a := range script {
		switch a.kind {
		case doCall:
			op := call(a.scope, st.tools[a.tool%len(st.tools)], replay(a.replay), on(st.servers[a.server%len(st.servers)]))
			if a.deadline > 0 {
				op.Deadline = time.Now().Add(a.deadline)
			}
			recent = append(recent, h.send(op))
			recent = recent[max(0, len(recent)-64):]
		case doCancel:
			if len(recent) > 0 {
				h.cancel(recent[a.pick%len(recent)])
			}
		case doFault:
			st.fault(a.pick)
		case doClose:
			h.send([]messages.Command{
				&messages.CloseScope{Scope: a.scope}, &messages.CloseServer{Server: "s"}, &messages.CloseAll{}, &messages.Inspect{},
			}[a.pick%4])
		case doOpen:
			h.send(&messages.Open{Header: messages.To("s", a.scope)})
		case doPause:
			st.pause(a.pause)
			require.NoError(h.t, h.dials.violations())
			require.LessOrEqual(h.t, h.dials.mostOpen(), cfg.MaxSessions)
		}
	}
	st.heal()
	for _, p := range h.sent() {
		p.reply()
	}
	st.wait()
	for i := range 8 {
		// A doubt that could not be settled while there were faults is settled after a
		// pause.
		require.Eventually(h.t, func() bool {
			r, ok := h.send(call(fmt.Sprint("scope-", i), st.tools[0], within(30*time.Second))).reply().(*messages.ToolResult)
			return ok && !r.Result.IsError
		}, 2*time.Minute, cfg.CoolDown/5)
	}
	h.send(&messages.CloseAll{}).reply() // closes the leftovers too
	snap := h.inspect()
	require.Zero(h.t, snap.Open)
	require.Empty(h.t, snap.Sessions)
	require.LessOrEqual(h.t, h.dials.mostOpen(), cfg.MaxSessions)
}
