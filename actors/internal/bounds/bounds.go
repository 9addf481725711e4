// Package bounds counts the calls of tools against the bounds of their servers. It is told which calls begin and end, and says which may
// not begin. It knows no session.
package bounds

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/internal/clock"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// keptFor is how long the count of calls is kept since the last one.
	keptFor = 24 * time.Hour
	// maxCounts bounds the counts. Beyond it, the one that was used least recently is forgotten.
	maxCounts = 1 << 16
)

// Book has the counts of all bounds. The zero value is empty. It is not safe for use by several goroutines.
type Book struct {
	counts map[counted]*Count
	recent ring.Ring[*Count] // the one that was used last is the last
}

// counted is what is counted together.
type counted struct {
	server, scope string // scope is empty if all scopes are
	bound         mcpbridge.Bound
}

// Count is how often tools were called.
type Count struct {
	of       counted
	rate     *rate.Limiter // nil without PerMinute
	total    int           // that have begun
	inFlight int
	used     time.Time // when a call began or ended last
	node     ring.Node[*Count]
}

// Taken are the counts of a call that has begun.
type Taken []*Count

// Refused is why a call may not begin.
type Refused struct {
	Code   messages.Code
	Detail string // for a model
	// RetryAfter is the time until a call may begin, or 0 if that is not known.
	RetryAfter time.Duration
}

// isLongerThan reports whether a caller had better be told of r than of the other. The end of a Total counts as the longest, and calls in
// flight as the shortest.
func (r *Refused) isLongerThan(other *Refused) bool {
	return r.Code == messages.CodeRefused || other.Code != messages.CodeRefused && r.RetryAfter > other.RetryAfter
}

// Take counts a call of a tool that begins, or returns why it may not begin: for how long, whatever the bound. Then it counts for no bound.
func (b *Book) Take(key messages.Key, tool string, bounds []mcpbridge.Bound, now time.Time) (Taken, *Refused) {
	var (
		taken   Taken
		longest *Refused
	)
	for _, bound := range bounds {
		if !bound.Counts(tool) {
			continue
		}
		c := b.count(key, bound, now)
		if slices.Contains(taken, c) {
			continue // the same bound twice
		}
		if r := c.refuses(now); longest == nil || r != nil && r.isLongerThan(longest) {
			longest = r
		}
		taken = append(taken, c)
	}
	if longest != nil {
		return nil, longest
	}
	for _, c := range taken {
		c.begin(now)
	}
	return taken, nil
}

// End notes that a call has ended. One that was not sent does not count for a total.
func (t Taken) End(sent bool, now time.Time) {
	for _, c := range t {
		c.inFlight--
		c.used = now
		if !sent {
			c.total--
		}
	}
}

// InFlight returns how many calls are counted for a bound and have not ended, for each bound.
func (b *Book) InFlight() (calls int) {
	for _, c := range b.counts {
		calls += c.inFlight
	}
	return calls
}

// count returns the count that a key has for a bound.
func (b *Book) count(key messages.Key, bound mcpbridge.Bound, now time.Time) *Count {
	of := counted{key.Server, key.Scope, bound}
	if bound.Shared {
		of.scope = ""
	}
	c := b.counts[of]
	if c != nil && c.isOver(now) {
		b.drop(c)
		c = nil
	}
	if c == nil {
		b.forget(now)
		c = &Count{of: of, used: now}
		if bound.PerMinute > 0 {
			c.rate = rate.NewLimiter(rate.Limit(float64(bound.PerMinute)/60), bound.PerMinute)
		}
		if b.counts == nil {
			b.counts = map[counted]*Count{}
		}
		b.counts[of] = c
	}
	b.recent.Remove(&c.node)
	b.recent.Push(&c.node, c)
	return c
}

// forget forgets counts that are no longer of use, before one is added.
func (b *Book) forget(now time.Time) {
	for c := range b.recent.All() {
		if !c.isOver(now) && len(b.counts) < maxCounts {
			return
		}
		b.drop(c)
	}
}

func (b *Book) drop(c *Count) {
	b.recent.Remove(&c.node)
	delete(b.counts, c.of)
}

// isOver reports whether a count begins anew.
func (c *Count) isOver(now time.Time) bool { return c.inFlight == 0 && now.Sub(c.used) >= keptFor }

// refuses returns why another call may not begin, or nil.
func (c *Count) refuses(now time.Time) *Refused {
	b, wait := c.of.bound, c.wait(now)
	switch {
	case b.Total > 0 && c.total >= b.Total:
		return &Refused{Code: messages.CodeRefused, Detail: fmt.Sprintf("the limit of calls %s is %d in all, and is reached", c.words(), b.Total)}
	case wait > 0:
		return &Refused{Code: messages.CodeRateLimited, RetryAfter: wait, Detail: fmt.Sprintf("the limit of calls %s is %d a minute: the next one may begin at %s",
			c.words(), b.PerMinute, clock.Text(now.Add(wait)))}
	case b.InFlight > 0 && c.inFlight >= b.InFlight:
		return &Refused{Code: messages.CodeBusy, Detail: fmt.Sprintf("the limit of calls %s is %d at one time: wait for the result of one", c.words(), b.InFlight)}
	}
	return nil
}

// wait returns the time until PerMinute allows another call, or 0 if it does so now.
func (c *Count) wait(now time.Time) time.Duration {
	if c.rate == nil {
		return 0
	}
	missing := 1 - c.rate.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing/float64(c.rate.Limit())*float64(time.Second)).Truncate(time.Millisecond) + time.Millisecond
}

// words says what is counted.
func (c *Count) words() string {
	of := "of the tools of this server"
	if c.of.bound.Tool != "" {
		of = fmt.Sprintf("of %q", c.of.bound.Tool)
	}
	if c.of.bound.Shared {
		return of + ", by all callers together,"
	}
	return of
}

func (c *Count) begin(now time.Time) {
	if c.rate != nil {
		c.rate.AllowN(now, 1)
	}
	c.total++
	c.inFlight++
	c.used = now
}
