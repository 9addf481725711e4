package supervisor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

func fault(class mcpbridge.Class, dialing bool) *actors.Fault {
	return &actors.Fault{Class: class, Dialing: dialing, Cause: &mcpbridge.Error{Class: class}}
}

func newBreaker() (actors.Decider, time.Time) {
	return Config{}.withDefaults().Strategy.Decider(messages.Key{}), time.Now()
}

func TestExpiryRestartsAtOnceUntilItBecomesAHabit(t *testing.T) {
	b, now := newBreaker()
	for range 5 {
		v := b.Decide(fault(mcpbridge.Expired, false), now)
		require.Zero(t, v.Delay)
		require.False(t, v.GiveUp)
	}
	for range 1000 {
		v := b.Decide(fault(mcpbridge.Expired, false), now)
		require.LessOrEqual(t, v.Delay, 250*time.Millisecond)
		require.False(t, v.GiveUp)
	}
}

func TestLossBacksOffWithFullJitterUpToTheCap(t *testing.T) {
	s := Strategy{Base: time.Second, Max: 5 * time.Second, Budget: 100, HalfLife: time.Hour, CoolDown: time.Minute}
	ceilings := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}
	most := make([]time.Duration, len(ceilings))
	least := append([]time.Duration(nil), ceilings...)
	for range 500 {
		b, now := s.Decider(messages.Key{}), time.Now()
		for i, ceiling := range ceilings {
			v := b.Decide(fault(mcpbridge.Lost, i > 0), now)
			require.Equal(t, i+1, v.Attempt)
			require.Less(t, v.Delay, ceiling)
			most[i], least[i] = max(most[i], v.Delay), min(least[i], v.Delay)
		}
	}
	for i, ceiling := range ceilings {
		require.Greater(t, most[i], ceiling*9/10)
		require.Less(t, least[i], ceiling/10)
	}
}

func TestBudgetIsSpentFadesAndIsNotResetBySuccess(t *testing.T) {
	b, now := newBreaker()
	for range 5 {
		require.False(t, b.Decide(fault(mcpbridge.Lost, false), now).GiveUp)
	}
	require.True(t, b.Decide(fault(mcpbridge.Lost, false), now).GiveUp, "it was open between any two")

	b, now = newBreaker()
	for range 100 {
		now = now.Add(time.Minute)
		require.False(t, b.Decide(fault(mcpbridge.Lost, false), now).GiveUp, "they fade")
	}
}

func TestBreakerOpensAgainWhenItsTrialFails(t *testing.T) {
	b, now := newBreaker()
	for range 5 {
		b.Decide(fault(mcpbridge.Unavailable, true), now)
	}
	v := b.Decide(fault(mcpbridge.Unavailable, true), now)
	require.True(t, v.GiveUp)
	require.Equal(t, 30*time.Second, v.Delay)
	now = now.Add(time.Hour)
	require.True(t, b.Decide(fault(mcpbridge.Unavailable, true), now).GiveUp, "one trial")
	now = now.Add(time.Hour)
	require.False(t, b.Decide(fault(mcpbridge.Lost, false), now).GiveUp, "the trial had worked")
}

func TestPermanentFaultsAreGivenUpAtOnce(t *testing.T) {
	for _, class := range []mcpbridge.Class{mcpbridge.Unauthorized, mcpbridge.Protocol, mcpbridge.Invalid} {
		b, now := newBreaker()
		require.True(t, b.Decide(fault(class, true), now).GiveUp, "%v", class)
	}
}

func TestServersRetryAfterIsHeeded(t *testing.T) {
	b, now := newBreaker()
	f := fault(mcpbridge.RateLimited, true)
	f.Cause.RetryAfter = time.Hour
	require.Equal(t, time.Hour, b.Decide(f, now).Delay)
}

func TestZeroFieldsMeanTheirDefaults(t *testing.T) {
	c := Config{MaxWaiting: -1, IdleTimeout: Never, Budget: -1}.withDefaults()
	require.Equal(t, 256, c.MaxSessions)
	require.Equal(t, -1, c.MaxWaiting)
	require.Equal(t, Never, c.IdleTimeout)
	require.Equal(t, Strategy{Base: 250 * time.Millisecond, Max: 30 * time.Second, HalfLife: time.Minute, CoolDown: 30 * time.Second}, c.Strategy)
}
