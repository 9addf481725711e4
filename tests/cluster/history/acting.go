package history

import (
	"fmt"
	"slices"
	"time"
)

// Act is something that a member has done for a key after it has looked at its lease: it has opened or resumed a session,
// or has run an operation on it. The times are those of the member's clock, which is that of the machine.
type Act struct {
	Member string `json:"member"`
	Scope  string `json:"scope"`
	// Dial is the number of the session among the dials of the process.
	Dial int64 `json:"dial"`
	// Call is the id of the call. It is empty for a dial, and for what no agent has asked for.
	Call string    `json:"call,omitempty"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Period is a time in which a member has acted for a scope with one session. It reaches from its dial until it has begun
// to run its last operation, by the clock of the member, or until that has come to the server, if that was later. What the
// member had begun before it was stopped counts as of then, because nobody can keep it from being sent afterwards.
type Period struct {
	Member, Scope string
	Dial          int64
	From, To      time.Time
}

// Doubled is a time in which two members have acted for a scope.
type Doubled struct {
	Scope      string
	One, Other string
	From       time.Time
	For        time.Duration
}

// periods returns the periods by scope.
func (h *History) periods() map[string][]*Period {
	type session struct {
		member string
		dial   int64
	}
	of := map[session]*Period{}
	type sending struct {
		*Period
		from time.Time
	}
	sent := map[[2]string]sending{} // by the member and the call
	all := map[string][]*Period{}
	for _, a := range h.Acts {
		is := session{a.Member, a.Dial}
		p := of[is]
		if p == nil {
			p = &Period{a.Member, a.Scope, a.Dial, a.From, a.From}
			of[is] = p
			all[a.Scope] = append(all[a.Scope], p)
		}
		if a.From.Before(p.From) {
			p.From = a.From
		}
		if a.From.After(p.To) {
			p.To = a.From
		}
		if a.Call != "" {
			sent[[2]string{a.Member, a.Call}] = sending{p, a.From}
		}
	}
	for _, e := range h.Executions {
		if of, known := sent[[2]string{e.Member, e.Call}]; known && e.Started.After(of.To) && !h.inPause(e.Member, of.from, e.Started) {
			of.To = e.Started
		}
	}
	return all
}

// DoublyActing returns the times in which two members have acted for one scope, the longest first.
func (h *History) DoublyActing() (all []Doubled) {
	for scope, periods := range h.periods() {
		for i, p := range periods {
			for _, q := range periods[i+1:] {
				if p.Member == q.Member {
					continue
				}
				from, to := p.From, p.To
				if q.From.After(from) {
					from = q.From
				}
				if q.To.Before(to) {
					to = q.To
				}
				if to.After(from) {
					all = append(all, Doubled{scope, p.Member, q.Member, from, to.Sub(from)})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b Doubled) int { return int(b.For - a.For) })
	return all
}

// checkActs returns an error for each time in which two members have acted for one key for longer than a call takes
// from the look at the lease to the server, and for each execution that no member has reported.
func (h *History) checkActs() (errs []error) {
	for _, d := range h.DoublyActing() {
		if d.For > margin {
			errs = append(errs, fmt.Errorf("%s and %s have both acted for %s, for %v from %s on", d.One, d.Other, d.Scope, d.For, d.From.Format(clock)))
		}
	}
	reported := map[[2]string]bool{}
	for _, a := range h.Acts {
		reported[[2]string{a.Member, a.Call}] = true
	}
	for _, e := range h.Executions {
		if !reported[[2]string{e.Member, e.Call}] && h.fault(Kill, e.Member) == nil {
			errs = append(errs, fmt.Errorf("call %s ran at %s, and %s has not reported that it has sent it", e.Call, e.Started.Format(clock), e.Member))
		}
	}
	return errs
}

// clock is how errors write a time.
const clock = "15:04:05.000"
