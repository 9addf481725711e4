package supervisor

import (
	"math"
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// strategy is the default supervision strategy: see [Config.BackoffBase] and the fields after it.
type strategy struct {
	base     time.Duration // BackoffBase
	max      time.Duration // BackoffMax
	budget   int           // Budget
	halfLife time.Duration // BudgetHalfLife
	coolDown time.Duration // CoolDown
	random   func() float64
}

const (
	// shortLife is the longest life of an MCP session that counts as expired at once.
	shortLife = 5 * time.Second
	// maxRetryAfter bounds the delay that a server can ask for.
	maxRetryAfter = 5 * time.Minute
)

// Decider returns the decider of one session.
func (s strategy) Decider(messages.Key) actors.Decider {
	return &decider{strategy: s}
}

// decider remembers the failures of one session.
type decider struct {
	strategy
	failures decaying
	expiries decaying // of consecutive MCP sessions with a short life
}

// Decide decides by the class of the fault.
func (d *decider) Decide(f *actors.Fault, now time.Time) actors.Directive {
	if f.Class == mcpbridge.Expired && !f.Dialing {
		return d.decideExpired(f, now)
	}
	attempt := d.failures.add(now, d.halfLife)
	asked := min(f.Cause.RetryAfter, maxRetryAfter)
	switch {
	case f.Class == mcpbridge.Protocol && f.Cause.Server != mcpbridge.Present:
		return actors.Directive{GiveUp: true, Delay: d.maxDelay(attempt), Attempt: attempt}
	case f.Class == mcpbridge.Unauthorized, f.Class == mcpbridge.Protocol, f.Class == mcpbridge.Invalid:
		return actors.Directive{GiveUp: true, Delay: max(d.coolDown, asked), Attempt: attempt}
	}
	jittered := time.Duration(d.random() * float64(d.maxDelay(attempt)))
	return actors.Directive{Delay: max(jittered, asked), Attempt: attempt}
}

// decideExpired decides about an MCP session that has expired.
func (d *decider) decideExpired(f *actors.Fault, now time.Time) actors.Directive {
	if f.Lived > shortLife {
		d.expiries = decaying{}
		return actors.Directive{Attempt: 1}
	}
	attempt := d.expiries.add(now, d.halfLife)
	if over := attempt - d.budget; over > 0 {
		return actors.Directive{GiveUp: true, Delay: min(doubled(d.base, over), d.coolDown), Attempt: attempt}
	}
	return actors.Directive{Attempt: attempt}
}

// maxDelay returns the longest delay of an attempt.
func (d *decider) maxDelay(attempt int) time.Duration { return min(doubled(d.base, attempt), d.max) }

// doubled returns base for the first attempt, and twice as much for each later one.
func doubled(base time.Duration, attempt int) time.Duration {
	return time.Duration(min(float64(base)*math.Pow(2, float64(attempt-1)), math.MaxInt64/2))
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
