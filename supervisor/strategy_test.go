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

func newDecider() (actors.Decider, time.Time) {
	return Config{}.WithDefaults().Strategy.Decider(messages.Key{}), time.Now()
}

func expired(lived time.Duration) *actors.Fault {
	f := fault(mcpbridge.Expired, false)
	f.Lived = lived
	return f
}

func TestExpiryRestartsAtOnceUntilItBecomesAHabit(t *testing.T) {
	d, now := newDecider()
	for range 1000 {
		require.Equal(t, actors.Directive{Attempt: 1}, d.Decide(expired(time.Minute), now), "they had lived")
	}
	for i := range 3 {
		require.Equal(t, actors.Directive{Attempt: i + 1}, d.Decide(expired(time.Second), now))
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
		s := strategy{base: time.Second, max: 5 * time.Second, budget: 100, halfLife: time.Hour, coolDown: time.Minute, random: func() float64 { return chance }}
		d, now := s.Decider(messages.Key{}), time.Now()
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
		require.Equal(t, actors.Directive{GiveUp: true, Delay: 30 * time.Second, Attempt: 1}, d.Decide(f, now), "%v", class)
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
	s := c.Strategy.(strategy)
	s.random = nil // functions are not equal
	require.Equal(t, strategy{base: 250 * time.Millisecond, max: 3 * time.Second, halfLife: time.Minute, coolDown: 30 * time.Second}, s)
}
