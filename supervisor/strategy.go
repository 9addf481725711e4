package supervisor

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Strategy is the default supervision strategy. For each session:
//
//   - One that expired is opened again at once. Nothing is wrong with the
//     server. If it happens more often than Budget within a few half-lives,
//     each time waits up to Base.
//   - One whose connection broke, or could not be opened, waits: a random time
//     up to Base, doubling with each failure still remembered, up to Max (full
//     jitter), or what the server asks for, if that is longer.
//   - After more than Budget failures that are still remembered, it is given up
//     for CoolDown; then one trial may dial, and if that fails it is given up
//     again. A failure counts half after HalfLife. Success does not reset the
//     count, so that a server that flaps is not dialed without end.
//   - What only a change of configuration can mend, a refused authorization or
//     a server that does not speak MCP, is given up at once.
type Strategy struct {
	Base     time.Duration
	Max      time.Duration
	Budget   int
	HalfLife time.Duration
	CoolDown time.Duration
}

// Decider returns the decider of one session.
func (s Strategy) Decider(messages.Key) actors.Decider {
	return &breaker{Strategy: s}
}

// breaker remembers the failures of one session.
type breaker struct {
	Strategy
	failures decaying
	expiries decaying
	open     bool // given up, and not opened since
}

// Decide decides by the class of the fault.
func (b *breaker) Decide(f *actors.Fault, now time.Time) actors.Verdict {
	if !f.Dialing {
		b.open = false
	}
	if f.Class == mcpbridge.Expired && !f.Dialing {
		v := actors.Verdict{Attempt: b.expiries.add(now, b.HalfLife)}
		if v.Attempt > b.Budget {
			v.Delay = jitter(b.Base)
		}
		return v
	}
	attempt := b.failures.add(now, b.HalfLife)
	if b.open || permanent(f) || attempt > b.Budget {
		b.open = true
		return actors.Verdict{GiveUp: true, Delay: max(b.CoolDown, f.Cause.RetryAfter), Attempt: attempt}
	}
	ceiling := min(float64(b.Max), float64(b.Base)*math.Pow(2, float64(attempt-1)))
	return actors.Verdict{Delay: max(jitter(time.Duration(ceiling)), f.Cause.RetryAfter), Attempt: attempt}
}

// permanent reports whether dialing again would come to the same.
func permanent(f *actors.Fault) bool {
	switch f.Class {
	case mcpbridge.Unauthorized, mcpbridge.Protocol, mcpbridge.Invalid:
		return true
	}
	return false
}

// jitter returns a random duration up to most.
func jitter(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return rand.N(most)
}

// decaying is a count of events that fade: each counts half after a half-life.
type decaying struct {
	count float64
	last  time.Time
}

// add counts one more, and returns the count, rounded.
func (d *decaying) add(now time.Time, halfLife time.Duration) int {
	if halfLife > 0 {
		d.count *= math.Exp2(-float64(now.Sub(d.last)) / float64(halfLife))
	}
	d.count, d.last = d.count+1, now
	return int(math.Round(d.count))
}
