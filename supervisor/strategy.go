package supervisor

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Strategy is the default supervision strategy. It decides about faults of one
// session; whether a server is down is known to the supervisor by itself. For each
// session:
//
//   - One that expired is opened again at once. Nothing is wrong with the
//     server, unless more than Budget sessions in a row, within a few half-lives,
//     have expired within seconds of their opening: then the key is given up, for
//     Base, doubling up to CoolDown.
//   - One whose connection broke, or that a server which is there would not open,
//     waits: a random time up to Base, doubling with each failure still
//     remembered, up to Max (full jitter), or what the server asks for, up to 5
//     minutes, if that is longer. A failure counts half after HalfLife. Success
//     does not reset the count, so that a server that flaps is not dialed without
//     end.
//   - What only a change of credentials or configuration can mend, a refused
//     authorization or a protocol version that we do not speak, is given up at once,
//     for CoolDown. What answers and is no MCP server is given up for Base, doubling
//     up to Max: it may be a proxy in front of one that is being started.
type Strategy struct {
	Base     time.Duration
	Max      time.Duration
	Budget   int
	HalfLife time.Duration
	CoolDown time.Duration
}

const (
	// short is the life of a session that has expired at once.
	shortLife = 5 * time.Second
	// maxRetryAfter bounds what a server can ask for.
	maxRetryAfter = 5 * time.Minute
)

// Decider returns the decider of one session.
func (s Strategy) Decider(messages.Key) actors.Decider {
	return &decider{Strategy: s}
}

// decider remembers the failures of one session.
type decider struct {
	Strategy
	failures decaying
	expiries decaying // of sessions that lived for a short time, in a row
}

// Decide decides by the class of the fault.
func (d *decider) Decide(f *actors.Fault, now time.Time) actors.Decision {
	if f.Class == mcpbridge.Expired && !f.Dialing {
		return d.decideExpired(f, now)
	}
	attempt := d.failures.add(now, d.HalfLife)
	asked := min(f.Cause.RetryAfter, maxRetryAfter)
	switch {
	case f.Class == mcpbridge.Protocol && f.Cause.Server != mcpbridge.Present:
		return actors.Decision{GiveUp: true, Delay: d.maxDelay(attempt), Attempt: attempt}
	case f.Class == mcpbridge.Unauthorized, f.Class == mcpbridge.Protocol, f.Class == mcpbridge.Invalid:
		return actors.Decision{GiveUp: true, Delay: max(d.CoolDown, asked), Attempt: attempt}
	}
	return actors.Decision{Delay: max(jitter(d.maxDelay(attempt)), asked), Attempt: attempt}
}

// expired decides about a session that the server does not know any more.
func (d *decider) decideExpired(f *actors.Fault, now time.Time) actors.Decision {
	if f.Lived > shortLife {
		d.expiries = decaying{}
		return actors.Decision{Attempt: 1}
	}
	attempt := d.expiries.add(now, d.HalfLife)
	if over := attempt - d.Budget; over > 0 {
		return actors.Decision{GiveUp: true, Delay: min(doubled(d.Base, over), d.CoolDown), Attempt: attempt}
	}
	return actors.Decision{Attempt: attempt}
}

// ceiling returns the longest delay after so many failures.
func (d *decider) maxDelay(attempt int) time.Duration { return min(doubled(d.Base, attempt), d.Max) }

// doubled returns base for the first attempt, and double that for each later one.
func doubled(base time.Duration, attempt int) time.Duration {
	return time.Duration(min(float64(base)*math.Pow(2, float64(attempt-1)), math.MaxInt64/2))
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
