package supervisor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

func fault(class mcpbridge.Class, dialing bool) *Fault {
	return &Fault{Class: class, Dialing: dialing, Cause: &mcpbridge.Error{Class: class}}
}

func newDecider() (Decider, time.Time) {
	return Config{}.WithDefaults().Strategy.Decider(messages.Key{}), time.Now()
}

func expired(lived time.Duration) *Fault {
	f := fault(mcpbridge.Expired, false)
	f.Lived = lived
	return f
}

func TestExpiryRestartsAtOnceUntilItBecomesAHabit(t *testing.T) {
	d, now := newDecider()
	for range 1000 {
		require.Equal(t, Directive{Attempt: 1}, d.Decide(expired(time.Minute), now), "they had lived")
	}
	for i := range 3 {
		require.Equal(t, Directive{Attempt: i + 1}, d.Decide(expired(time.Second), now))
	}
	for i := range 10 {
		v := d.Decide(expired(time.Second), now)
		require.True(t, v.GiveUp)
		require.Equal(t, min(250*time.Millisecond<<i, 30*time.Second), v.Delay)
	}
	require.False(t, d.Decide(expired(time.Minute), now).GiveUp)
	require.False(t, d.Decide(expired(time.Second), now).GiveUp, "they are no longer in a row")
}

func TestLossBacksOffWithFullJitterUpToTheCap(t *testing.T) {
	for _, chance := range []float64{0, 0.25, 0.999} {
		s := DefaultStrategy{BackoffBase: time.Second, BackoffMax: 5 * time.Second, BudgetHalfLife: time.Hour}
		d, now := s.Decider(messages.Key{}).(*decider), time.Now()
		d.random = func() float64 { return chance }
		for i, ceiling := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
			v := d.Decide(fault(mcpbridge.Lost, i > 0), now)
			require.Equal(t, i+1, v.Attempt)
			require.Equal(t, time.Duration(chance*float64(ceiling)), v.Delay)
		}
	}
}

func TestFailuresFadeAndAreNotResetBySuccess(t *testing.T) {
	d, now := newDecider()
	for i := range 20 {
		v := d.Decide(fault(mcpbridge.Lost, false), now)
		require.Equal(t, i+1, v.Attempt, "it was open between any two")
		require.False(t, v.GiveUp)
		require.LessOrEqual(t, v.Delay, 3*time.Second)
	}
	for range 100 {
		now = now.Add(time.Minute)
		d.Decide(fault(mcpbridge.Lost, false), now)
	}
	require.Equal(t, 2, d.Decide(fault(mcpbridge.Lost, false), now.Add(time.Minute)).Attempt)
}

func TestPermanentFaultsAreGivenUpAtOnce(t *testing.T) {
	for _, class := range []mcpbridge.Class{mcpbridge.Unauthorized, mcpbridge.Protocol, mcpbridge.Invalid} {
		d, now := newDecider()
		f := fault(class, true)
		f.Cause.Server = mcpbridge.Present
		require.Equal(t, Directive{GiveUp: true, Delay: 30 * time.Second, Attempt: 1}, d.Decide(f, now), "%v", class)
	}
}

// H-C7: the answer may come from a proxy in front of a server that is starting.
func TestWhatIsNoServerIsTriedAgainSoon(t *testing.T) {
	for _, class := range []mcpbridge.Class{mcpbridge.Unavailable, mcpbridge.Protocol} {
		d, now := newDecider()
		for range 20 {
			f := fault(class, true)
			f.Cause.Server = mcpbridge.Strange
			v := d.Decide(f, now)
			require.LessOrEqual(t, v.Delay, 3*time.Second)
			require.Equal(t, class == mcpbridge.Protocol, v.GiveUp)
		}
	}
}

// H-C3
func TestServersRetryAfterIsHeededWithinBounds(t *testing.T) {
	d, now := newDecider()
	for asked, want := range map[time.Duration]time.Duration{
		time.Minute: time.Minute, 5 * time.Minute: 5 * time.Minute, time.Hour: 5 * time.Minute, 1<<63 - 1: 5 * time.Minute,
	} {
		f := fault(mcpbridge.RateLimited, true)
		f.Cause.RetryAfter = asked
		require.Equal(t, want, d.Decide(f, now).Delay)
	}
}

func TestZeroFieldsMeanTheirDefaults(t *testing.T) {
	c := Config{MaxWaiting: -1, IdleTimeout: -1, Budget: -1}.WithDefaults()
	require.Equal(t, 256, c.MaxSessions)
	require.Equal(t, -1, c.MaxWaiting)
	require.EqualValues(t, -1, c.IdleTimeout)
	want := DefaultStrategy{BackoffBase: 250 * time.Millisecond, BackoffMax: 3 * time.Second, Budget: -1, BudgetHalfLife: time.Minute, CoolDown: 30 * time.Second}
	require.Equal(t, want, c.Strategy)
	after, _ := givesUp(want)
	require.Equal(t, 30, after, "there is no limit")
}

// givesUp returns how many faults a strategy takes until it gives up, and for how long it does so at most.
func givesUp(s Strategy) (after int, longest time.Duration) {
	d := s.Decider(messages.Key{})
	for i := range 30 {
		if v := d.Decide(expired(time.Second), time.Now()); v.GiveUp {
			after, longest = max(after, 30-i), v.Delay
		}
	}
	return 30 - after, longest
}

// wrapping is a strategy that wraps another one.
type wrapping struct {
	Strategy
	_ []int // it cannot be compared
}

func TestFieldsOfTheStrategyHoldWhenTheyAreSet(t *testing.T) {
	check := func(cfg Config, budget int, coolDown time.Duration) {
		t.Helper()
		after, longest := givesUp(cfg.WithDefaults().Strategy)
		require.Equal(t, budget, after)
		require.Equal(t, coolDown, longest)
	}
	check(Config{Budget: 8, CoolDown: time.Minute}, 8, time.Minute)
	cfg := Config{}.WithDefaults()
	cfg.Budget, cfg.CoolDown = 8, time.Minute
	check(cfg, 8, time.Minute)
	cfg = cfg.WithDefaults()
	cfg.Budget = 5
	check(cfg, 5, time.Minute)

	cfg.Strategy = nil
	check(cfg, 5, time.Minute)
	cfg = cfg.WithDefaults()

	check(Config{Strategy: DefaultStrategy{Budget: 2}}, 2, 30*time.Second)
	check(Config{Strategy: DefaultStrategy{Budget: 2}, Budget: 8}, 2, 30*time.Second)
	s := cfg.Strategy.(DefaultStrategy)
	s.Budget = 7
	cfg.Strategy = wrapping{Strategy: s}
	check(cfg, 7, time.Minute)

	wrong := DefaultStrategy{BackoffBase: time.Minute, Budget: -2, CoolDown: -2}
	for _, cfg.Strategy = range []Strategy{wrong, &wrong} {
		err := cfg.WithDefaults().validate()
		require.ErrorContains(t, err, "strategy.backoffMax: 3s is less than backoffBase, 1m0s")
		require.ErrorContains(t, err, "strategy.budget: -2 is negative")
		require.ErrorContains(t, err, "strategy.coolDown: -2ns is negative")
	}
	cfg.Strategy = (*DefaultStrategy)(nil)
	require.ErrorContains(t, cfg.WithDefaults().validate(), "strategy: is a nil pointer")

	d := DefaultStrategy{BackoffBase: -2, BackoffMax: -2, Budget: -2, BudgetHalfLife: -2, CoolDown: -2}.Decider(messages.Key{})
	require.Equal(t, Directive{Attempt: 1}, d.Decide(expired(time.Second), time.Now()))
	require.Equal(t, Directive{GiveUp: true, Attempt: 1}, d.Decide(fault(mcpbridge.Protocol, true), time.Now()))
}
