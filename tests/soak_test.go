package tests

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

var (
	soakSeed  = flag.Uint64("soak.seed", 0, "seed of the soak; 0 takes a new one for each round")
	soakCalls = flag.Int("soak.calls", 3000, "calls in each round of the soak")
)

// G3: seeded random actions, in fake time. A seed reproduces the sequence of
// actions.
func TestSoak(t *testing.T) {
	for round := range 8 {
		seed := *soakSeed
		if seed == 0 {
			seed = rand.Uint64()
		}
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			t.Logf("-soak.seed=%d", seed)
			soak(t, seed)
		})
	}
}

func soak(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	cfg := supervisor.Config{
		MaxSessions: 1 + r.IntN(6), MaxInFlight: 1 + r.IntN(4), MaxWaiting: r.IntN(20), MaxDials: 1 + r.IntN(3),
		IdleTimeout: time.Duration(1+r.IntN(60)) * time.Second, CallTimeout: 20 * time.Second,
		DrainTimeout: time.Duration(r.IntN(5)) * time.Second, CloseTimeout: time.Second, CoolDown: 5 * time.Second,
	}
	imagine(t, cfg, func(w *world) {
		scope := func() string { return fmt.Sprint("scope-", r.IntN(8)) }
		tools := []string{"count", "count", "count", "slow", "slow/ro", "hang", "fail", "refuse", "panic", "stuck"}
		recent := make([]*pending, 0, 64)
		for n := 0; n < *soakCalls; {
			switch action := r.IntN(100); {
			case action < 70:
				op := call(scope(), tools[r.IntN(len(tools))], replay(messages.Replay(r.IntN(3))))
				if r.IntN(3) == 0 {
					op.Deadline = time.Now().Add(time.Duration(r.IntN(5000)) * time.Millisecond)
				}
				op.Key.Server = []string{"s", "other"}[r.IntN(2)]
				recent = append(recent, w.send(op))
				recent = recent[max(0, len(recent)-64):]
				n++
			case action < 76 && len(recent) > 0:
				w.cancel(recent[r.IntN(len(recent))])
			case action < 80:
				w.fake.expireAny(r)
			case action < 84:
				w.fake.severAny(r, r.IntN(2) == 0)
			case action < 86:
				w.fake.set(func() {
					w.fake.dial = []func(context.Context, mcpbridge.DialRequest) error{nil, nil, refused(unavailable("down")), slowly(time.Second, nil), slowly(time.Second, unavailable("down"))}[r.IntN(5)]
				})
			case action < 87:
				w.fake.set(func() {
					w.fake.close = []func(context.Context, messages.Key) error{nil, nil, func(context.Context, messages.Key) error { return errors.New("refused") }}[r.IntN(3)]
				})
			case action < 89:
				w.send([]messages.Command{&messages.CloseScope{Scope: scope()}, &messages.CloseServer{Server: "s"}, &messages.CloseAll{}, &messages.Inspect{}}[r.IntN(4)])
			case action < 90:
				w.send(&messages.Open{Header: messages.To("s", scope())})
			default:
				time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond) // synctest
			}
		}
		w.fake.set(func() { w.fake.dial, w.fake.close, w.fake.forgetful = nil, nil, false })
		w.mu.Lock()
		all := w.pending
		w.mu.Unlock()
		for _, p := range all {
			p.reply()
		}
		time.Sleep(time.Minute) // synctest: breakers close
		for i := range 8 {
			w.send(call(fmt.Sprint("scope-", i), "count")).ok()
		}
		w.send(&messages.CloseAll{}).reply() // what could not be closed before
		snap := w.inspect()
		require.Zero(t, snap.Open)
		require.Empty(t, snap.Sessions)
		require.LessOrEqual(t, w.watch.most, cfg.MaxSessions)
	})
}
