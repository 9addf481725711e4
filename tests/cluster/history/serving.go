package history

import (
	"fmt"
	"slices"
	"time"
)

// State is what a member has said of itself.
type State struct {
	Member string
	At     time.Time
	// Serving says that it is in the view, and has its lease.
	Serving bool
}

// Served is what became of the calls at members that said all the while that they were in the view.
type Served struct {
	// Least and Most are how many members have said so, and Members those that have always done so.
	Least, Most int
	Members     []string
	Calls       int
}

// serving returns the members that said at a time that they were serving, and were not stopped.
func (h *History) serving(at time.Time) (members []string) {
	last := map[string]bool{}
	for _, s := range h.States { // by time
		if s.At.After(at) {
			break
		}
		last[s.Member] = s.Serving
	}
	for member, is := range last {
		if is && !h.inPause(member, at, at) {
			members = append(members, member)
		}
	}
	slices.Sort(members)
	return members
}

// changes returns two times and all times between them at which a member has said something else.
func (h *History) changes(from, to time.Time) []time.Time {
	all := []time.Time{from}
	for _, s := range h.States {
		if s.At.After(from) && s.At.Before(to) {
			all = append(all, s.At)
		}
	}
	return append(all, to)
}

// Serves looks at the calls that were started between two times at members that were serving until they were
// answered. Each must have succeeded, and each of these members must have served each scope.
func (h *History) Serves(from, to time.Time) (s Served, errs []error) {
	s.Least = len(h.serving(from))
	s.Members = h.serving(from)
	for _, at := range h.changes(from, to) {
		now := h.serving(at)
		s.Least, s.Most = min(s.Least, len(now)), max(s.Most, len(now))
		s.Members = slices.DeleteFunc(s.Members, func(m string) bool { return !slices.Contains(now, m) })
	}
	scopes := map[string]bool{}
	served := map[[2]string]bool{}
	for _, c := range h.Calls {
		scopes[c.Scope] = true
		if c.Started.Before(from) || !c.Started.Before(to) || !h.servedAll(c) {
			continue
		}
		s.Calls++
		if served[[2]string{c.Member, c.Scope}] = true; !c.ok() {
			errs = append(errs, fmt.Errorf("call %s of %s at %s, which was in the view, was started at %s and has failed with %q: %s", c.ID, c.Scope, c.Member, c.Started.Format(clock), string(c.Code), c.Detail))
		}
	}
	for _, m := range s.Members {
		for scope := range scopes {
			if !served[[2]string{m, scope}] {
				errs = append(errs, fmt.Errorf("nobody has called %s at %s, which was in the view from %s to %s", scope, m, from.Format(clock), to.Format(clock)))
			}
		}
	}
	return s, errs
}

// servedAll reports whether the member of a call said until its end that it was serving.
func (h *History) servedAll(c *Call) bool {
	for _, at := range h.changes(c.Started, c.Ended) {
		if !slices.Contains(h.serving(at), c.Member) {
			return false
		}
	}
	return true
}

// Worked returns how long after a time all calls at some members succeeded: until the first call that each of them has
// started for each scope, before another time and after its last failure, was answered. It is -1 if one did not succeed
// again.
func (h *History) Worked(since, until time.Time, members []string) time.Duration {
	first := map[[2]string]time.Time{}
	for _, c := range h.Calls { // by their start
		if c.Started.Before(since) || !c.Started.Before(until) || !slices.Contains(members, c.Member) {
			continue
		}
		of := [2]string{c.Member, c.Scope}
		switch at, known := first[of]; {
		case !c.ok():
			first[of] = time.Time{}
		case !known || at.IsZero():
			first[of] = c.Ended
		}
	}
	last := time.Duration(0)
	for _, at := range first {
		if at.IsZero() {
			return -1
		}
		last = max(last, at.Sub(since))
	}
	return last
}
