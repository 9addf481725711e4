package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

var now = time.Unix(1000, 0)

func fault(class mcpbridge.Class) *actors.Fault {
	return &actors.Fault{Class: class, Cause: &mcpbridge.Error{Class: class, Detail: "detail", Remedy: "remedy"}}
}

func TestWhatTheStrategyDecidesHoldsUntilThereIsAConnection(t *testing.T) {
	for _, test := range []struct {
		class   mcpbridge.Class
		decided actors.Directive
		open    bool   // the breaker
		detail  string // that callers see
	}{
		{mcpbridge.Lost, actors.Directive{Delay: time.Second}, false, "detail"},
		{mcpbridge.Lost, actors.Directive{Delay: time.Second, GiveUp: true}, true, "detail"},
		{mcpbridge.Expired, actors.Directive{Delay: time.Second}, false, "detail"},
		{mcpbridge.Expired, actors.Directive{Delay: time.Second, GiveUp: true}, true, "sessions of this server expire at once: is it balanced without affinity? The last one: detail"},
	} {
		var f Faults
		original := fault(test.class)
		require.Equal(t, test.detail, f.Decided(original, test.decided, now).Cause.Detail)
		require.Equal(t, "detail", original.Cause.Detail, "others may have it")
		require.Equal(t, now.Add(time.Second), f.NotBefore)
		require.Equal(t, test.open, f.BreakerOpen(now))
		require.False(t, f.BreakerOpen(now.Add(time.Second)))
		f.Opened()
		require.Nil(t, f.Cause)
		require.False(t, f.BreakerOpen(now))
	}
}

// A session that cannot reach a server that others reach dials less and less often.
func TestASessionThatAloneCannotReachItsServerWaits(t *testing.T) {
	var f Faults
	f.Unreachable(fault(mcpbridge.Unavailable), false, now)
	require.Equal(t, now, f.NotBefore, "the outage says when")
	var last time.Duration
	for range 20 {
		f.Unreachable(fault(mcpbridge.Unavailable), true, now)
		delay := f.NotBefore.Sub(now)
		require.GreaterOrEqual(t, delay, last)
		last = delay
	}
	require.Equal(t, admission.MaxProbeInterval, last)
	f.Opened()
	f.Unreachable(fault(mcpbridge.Unavailable), true, now)
	require.Less(t, f.NotBefore.Sub(now), last)
}

func TestAnActorIsRestartedUntilItHasTooManyBugs(t *testing.T) {
	var f Faults
	for range 100 {
		require.True(t, f.Restart(false), "faults that are expected do not count")
	}
	for range maxBugs {
		require.True(t, f.Restart(true))
	}
	require.False(t, f.Restart(true))
	require.EqualValues(t, 100+maxBugs, f.Restarts)
	f.Opened()
	require.True(t, f.Restart(true))
}

// strategy counts the deciders that it was asked for.
type strategy struct{ deciders int }

func (s *strategy) Decider(messages.Key) actors.Decider { s.deciders++; return s }

func (s *strategy) Decide(*actors.Fault, time.Time) actors.Directive {
	return actors.Directive{Attempt: s.deciders}
}

func TestASessionHasOneDeciderUntilItIsForgotten(t *testing.T) {
	var f Faults
	s := &strategy{}
	ask := func() int { return f.Ask(s, messages.Key{}, fault(mcpbridge.Lost), now).Attempt }
	require.Equal(t, []int{1, 1}, []int{ask(), ask()})
	f.Opened()
	require.Equal(t, 1, ask())
	f.Restart(false)
	f.Forget()
	require.Equal(t, 2, ask())
	require.EqualValues(t, 1, f.Restarts)
}

func TestAFaultWithoutItsRemedyIsACopy(t *testing.T) {
	original := fault(mcpbridge.Unavailable)
	require.Empty(t, WithoutRemedy(original).Cause.Remedy)
	require.Equal(t, "remedy", original.Cause.Remedy)
}
