package supervisor

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/limits"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// A strategy decides about sessions that have failed. These are aliases, so that most programs need no import of package
// actors.
type (
	// Strategy is [actors.Strategy].
	Strategy = actors.Strategy
	// Decider is [actors.Decider].
	Decider = actors.Decider
	// Directive is [actors.Directive].
	Directive = actors.Directive
	// Fault is [actors.Fault].
	Fault = actors.Fault
)

// DefaultStrategy is the default of [Config.Strategy]. It decides about the faults of one session, and not whether a server
// is down. For each session:
//
//   - After an expiry, it restarts at once, because nothing is wrong with the server. But
//     if more than Budget consecutive MCP sessions have expired within 5 seconds of their
//     opening, in the course of a few half-lives, it gives up the key: for BackoffBase at
//     first, then for twice as long each time, up to CoolDown.
//   - After the connection broke, or when a server that is up refuses the dial, it waits
//     for a random time (full jitter) of at most BackoffBase, which doubles with each failure
//     that it remembers, up to BackoffMax. If the server asks for a longer time, it waits for
//     that, up to 5 minutes. A failure counts half as much after BudgetHalfLife. A success
//     does not reset the count, so that a server that fails again and again is dialed less
//     often.
//   - When only other credentials or another configuration can help, after a refused
//     authorization or a protocol version that is not supported, it gives up at once, for
//     CoolDown. When the answer is not MCP, it gives up for BackoffBase at first, then for
//     twice as long each time, up to BackoffMax: the answer may come from a proxy in front of
//     a server that is starting.
//
// Its fields are those of [Config] with the same names and defaults. If you wrap it, set the fields of the wrapped value;
// those of Config do not reach it. [Start] does not validate a wrapped value: any negative value is no limit there.
type DefaultStrategy struct {
	// BackoffBase is the maximum of the first delay. Defaults to 250 ms. If it is more than BackoffMax, raise that with it.
	BackoffBase time.Duration
	// BackoffMax is the maximum of all delays. Defaults to 3 s. It must not be less than BackoffBase.
	BackoffMax time.Duration
	// Budget is how many consecutive MCP sessions of a key may expire within seconds of their
	// opening before the key is given up. Defaults to 3; with -1 it is never given up for that.
	Budget int
	// BudgetHalfLife is the time after which a failure counts half as much. Defaults to 1
	// minute; with -1 each counts in full for ever.
	BudgetHalfLife time.Duration
	// CoolDown is how long the calls of a key fail after the key was given up. Defaults to 30 s.
	CoolDown time.Duration
}

const (
	// shortLife is the longest life of an MCP session that counts as expired at once.
	shortLife = 5 * time.Second
	// maxRetryAfter bounds the delay that a server can ask for.
	maxRetryAfter = 5 * time.Minute
)

// withDefaults returns the strategy with the defaults of the fields that are zero.
func (s DefaultStrategy) withDefaults() DefaultStrategy {
	setDefault(&s.BackoffBase, 250*time.Millisecond)
	setDefault(&s.BackoffMax, 3*time.Second)
	setDefault(&s.Budget, 3)
	setDefault(&s.BudgetHalfLife, time.Minute)
	setDefault(&s.CoolDown, 30*time.Second)
	return s
}

// Decider returns the decider of one session.
func (s DefaultStrategy) Decider(messages.Key) Decider {
	s = s.withDefaults()
	s.BackoffBase, s.BackoffMax, s.Budget, s.CoolDown = max(0, s.BackoffBase), limits.Of(s.BackoffMax), limits.Of(s.Budget), limits.Of(s.CoolDown)
	return &decider{DefaultStrategy: s, random: rand.Float64}
}

// decider remembers the failures of one session.
type decider struct {
	DefaultStrategy
	random   func() float64
	failures decaying
	expiries decaying // of consecutive MCP sessions with a short life
}

// Decide decides by the class of the fault.
func (d *decider) Decide(f *Fault, now time.Time) Directive {
	if f.Class == mcpbridge.Expired && !f.Dialing {
		return d.decideExpired(f, now)
	}
	attempt := d.failures.add(now, d.BudgetHalfLife)
	asked := min(f.Cause.RetryAfter, maxRetryAfter)
	switch {
	case f.Class == mcpbridge.Protocol && f.Cause.Server != mcpbridge.Present:
		return Directive{GiveUp: true, Delay: d.maxDelay(attempt), Attempt: attempt}
	case f.Class == mcpbridge.Unauthorized, f.Class == mcpbridge.Protocol, f.Class == mcpbridge.Invalid:
		return Directive{GiveUp: true, Delay: max(d.CoolDown, asked), Attempt: attempt}
	}
	jittered := time.Duration(d.random() * float64(d.maxDelay(attempt)))
	return Directive{Delay: max(jittered, asked), Attempt: attempt}
}

// decideExpired decides about an MCP session that has expired.
func (d *decider) decideExpired(f *Fault, now time.Time) Directive {
	if f.Lived > shortLife {
		d.expiries = decaying{}
		return Directive{Attempt: 1}
	}
	attempt := d.expiries.add(now, d.BudgetHalfLife)
	if over := attempt - d.Budget; over > 0 {
		return Directive{GiveUp: true, Delay: min(doubled(d.BackoffBase, over), d.CoolDown), Attempt: attempt}
	}
	return Directive{Attempt: attempt}
}

// maxDelay returns the longest delay of an attempt.
func (d *decider) maxDelay(attempt int) time.Duration {
	return min(doubled(d.BackoffBase, attempt), d.BackoffMax)
}

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
