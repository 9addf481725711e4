package supervisor

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Strategy is the default supervision strategy. It decides about the faults of one session.
// It does not decide whether a server is down. For each session:
//
//   - After an expiry, it restarts at once, because nothing is wrong with the server. But
//     if more than Budget consecutive MCP sessions have expired within seconds of their
//     opening, in the course of a few half-lives, it gives up the key: for Base at first,
//     then for twice as long each time, up to CoolDown.
//   - After the connection broke, or when a server that is up refuses the dial, it waits
//     for a random time (full jitter) of at most Base, which doubles with each failure that
//     it remembers, up to Max. If the server asks for a longer time, it waits for that, up
//     to 5 minutes. A failure counts half as much after HalfLife. A success does not reset
//     the count, so that a server that fails again and again is dialed less often.
//   - When only other credentials or another configuration can help, after a refused
//     authorization or a protocol version that is not supported, it gives up at once, for
//     CoolDown. When the answer is not MCP, it gives up for Base at first, then for twice
//     as long each time, up to Max: the answer may come from a proxy in front of a server
//     that is starting.
type Strategy struct {
	Base     time.Duration // see [Config.BackoffBase]
	Max      time.Duration // see [Config.BackoffMax]
	Budget   int           // see [Config.Budget]
	HalfLife time.Duration // see [Config.BudgetHalfLife]
	CoolDown time.Duration // see [Config.CoolDown]
}

const (
	// shortLife is the longest life of an MCP session that counts as expired at once.
	shortLife = 5 * time.Second
	// maxRetryAfter bounds the delay that a server can ask for.
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
	expiries decaying // of consecutive MCP sessions with a short life
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

// decideExpired decides about an MCP session that has expired.
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

// maxDelay returns the longest delay of an attempt.
func (d *decider) maxDelay(attempt int) time.Duration { return min(doubled(d.Base, attempt), d.Max) }

// doubled returns base for the first attempt, and twice as much for each later one.
func doubled(base time.Duration, attempt int) time.Duration {
	return time.Duration(min(float64(base)*math.Pow(2, float64(attempt-1)), math.MaxInt64/2))
}

// jitter returns a random duration below most.
func jitter(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return rand.N(most)
}

// decaying counts events. Each counts half as much after a half-life.
type decaying struct {
	count float64
	last  time.Time
}

// add adds an event, and returns the rounded count.
func (d *decaying) add(now time.Time, halfLife time.Duration) int {
	if halfLife > 0 {
		d.count *= math.Exp2(-float64(now.Sub(d.last)) / float64(halfLife))
	}
	d.count, d.last = d.count+1, now
	return int(math.Round(d.count))
}
