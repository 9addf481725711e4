package history

import (
	"errors"
	"fmt"
	"time"
)

// lateness is how much later than its deadline a call may be answered: the grace for the reply
// of another member, and the time that a busy machine needs for all calls that waited for a
// member to return.
const lateness = 3 * time.Second

// maxViolations bounds the errors of a check, so that a report is read.
const maxViolations = 20

// Check returns an error for each condition that does not hold:
//
//   - each call got exactly one reply, at most three seconds after its deadline
//   - a call that has succeeded has run, on the session that its result names
//   - a call that is said not to have run has not run
//   - no call ran twice, unless its tool is safe to run twice, and then at most twice
//   - no two members acted for one key at the same time, and what has run was sent by a member after it
//     has looked at its lease
//   - no scope had two live sessions, unless the members of the cluster changed, or its member has settled doubt about the
//     first with the second
//   - a generation of a scope is one MCP session, and later sessions have later generations
//   - a member that was stopped, and removed, sent no new call before it was a member again,
//     one that was cut off sent no call after its lease, and while etcd was down nobody did
//   - each scope works after each fault
//
// Replies to agents of a member that was stopped may be late, and calls that were in flight
// when a member was stopped are not part of the last but one condition.
func (h *History) Check() error {
	var errs []error
	for _, check := range []func() []error{
		h.checkReplies, h.checkExecutions, h.checkActs, h.checkSessions, h.checkGenerations, h.checkFences, h.checkRecovery,
	} {
		found := check()
		if n := len(found); n > maxViolations {
			found = append(found[:maxViolations], fmt.Errorf("and %d more", n-maxViolations))
		}
		errs = append(errs, found...)
	}
	return errors.Join(errs...)
}

// checkReplies returns an error for each call that did not get its one reply in time. The
// calls of an agent whose process was killed are not checked.
func (h *History) checkReplies() (errs []error) {
	seen := map[string]bool{}
	for _, c := range h.Calls {
		if seen[c.ID] {
			errs = append(errs, fmt.Errorf("call %s is recorded twice", c.ID))
		}
		seen[c.ID] = true
		if c.Replies != 1 {
			if c.Replies == 0 && h.fault(Kill, c.Member) != nil {
				continue
			}
			errs = append(errs, fmt.Errorf("call %s got %d replies", c.ID, c.Replies))
			continue
		}
		if late := c.Ended.Sub(c.Deadline); late > lateness && !h.inPause(c.Member, c.Started, c.Ended) {
			errs = append(errs, fmt.Errorf("call %s was answered %v after its deadline, with %q by %s", c.ID, late, string(c.Code), c.Supervisor))
		}
	}
	return errs
}

// executions returns the executions by the ids of their calls.
func (h *History) executions() map[string][]*Execution {
	all := map[string][]*Execution{}
	for _, e := range h.Executions {
		all[e.Call] = append(all[e.Call], e)
	}
	return all
}

// checkExecutions returns an error for each call whose reply is wrong about what has run,
// and for each that ran too often.
func (h *History) checkExecutions() (errs []error) {
	ran := h.executions()
	for _, c := range h.Calls {
		runs := ran[c.ID]
		switch {
		case c.Replies == 0:
		case c.ok():
			found := false
			for _, e := range runs {
				found = found || e.Session == c.Session && e.Count == c.Count
			}
			if !found {
				errs = append(errs, fmt.Errorf("call %s has a result of session %.8s, and did not run there: it ran %d times", c.ID, c.Session, len(runs)))
			}
		case !c.MayHaveRun && len(runs) > 0:
			errs = append(errs, fmt.Errorf("call %s has failed with %q (%s), is said not to have run, and ran %v after its start, sent by %s",
				c.ID, string(c.Code), c.Detail, runs[0].Started.Sub(c.Started), runs[0].Member))
		}
	}
	for id, runs := range ran {
		if n := len(runs); n > 2 || n == 2 && !Safe(runs[0].Tool) {
			errs = append(errs, fmt.Errorf("call %s of %s ran %d times, sent by %s and %s", id, runs[0].Tool, n, runs[0].Member, runs[1].Member))
		}
	}
	return errs
}

// Overlap is a time during which a scope had two live sessions at the server.
type Overlap struct {
	Scope    string
	From, To time.Time
	// Control says that the member of the first session has compared it with the second one, which has taken no call
	// meanwhile: that is how a supervisor settles doubt about a session.
	Control bool
}

// connectTimeout is how long a control may live: it is that of the supervisors.
const connectTimeout = 30 * time.Second

// Overlaps returns the overlaps. A session is live from its opening until the server is told to
// end it, or until the member that used it last is killed.
func (h *History) Overlaps() (all []Overlap) {
	ends := map[*Session]time.Time{}
	scopes := map[string][]*Session{}
	called := map[string]time.Time{} // when each session has taken its first call
	for _, e := range h.Executions { // by time
		if _, is := called[e.Session]; !is {
			called[e.Session] = e.Started
		}
	}
	for _, s := range h.Sessions {
		ends[s] = h.end(s)
		scopes[s.Scope] = append(scopes[s.Scope], s)
	}
	for scope, sessions := range scopes {
		for i, old := range sessions {
			for _, young := range sessions[i+1:] { // they are sorted
				to := ends[old]
				if ends[young].Before(to) {
					to = ends[young]
				}
				if young.Opened.Before(to) {
					_, used := old.Used[young.Opener]
					at, calls := called[young.ID]
					control := used && (!calls || !at.Before(to)) && to.Sub(young.Opened) <= connectTimeout
					all = append(all, Overlap{scope, young.Opened, to, control})
				}
			}
		}
	}
	return all
}

// end returns when a session was no longer live.
func (h *History) end(s *Session) time.Time {
	if !s.Ended.IsZero() {
		return s.Ended
	}
	user, used := "", time.Time{}
	for member, at := range s.Used {
		if at.After(used) {
			user, used = member, at
		}
	}
	if f := h.fault(Kill, user); f != nil {
		return f.At
	}
	return h.End
}

// checkSessions returns an error for each overlap while the cluster did not change, and for
// each that did not end.
func (h *History) checkSessions() (errs []error) {
	for _, o := range h.Overlaps() {
		switch {
		case !o.Control && !h.disturbed(o.From):
			errs = append(errs, fmt.Errorf("scope %s had two sessions for %v, while the members did not change", o.Scope, o.To.Sub(o.From)))
		case !o.To.Before(h.End):
			errs = append(errs, fmt.Errorf("scope %s has two sessions at the end", o.Scope))
		}
	}
	return errs
}

// checkGenerations returns an error for each result whose generation is not that of its
// session. Generations are counted by all members together if they share a store, and
// otherwise by each.
func (h *History) checkGenerations() (errs []error) {
	type generation struct {
		supervisor, scope string
		number            uint64
	}
	sessions := map[generation]string{}
	opened := map[string]time.Time{}
	for _, s := range h.Sessions {
		opened[s.ID] = s.Opened
	}
	latest := map[generation]generation{} // without its number: the generation of the youngest session
	for _, c := range h.Calls {
		if !c.ok() || c.Session == "" {
			continue
		}
		g := generation{c.Supervisor, c.Scope, c.Generation}
		if h.Shared {
			g.supervisor = ""
		}
		if known := sessions[g]; known != "" && known != c.Session {
			errs = append(errs, fmt.Errorf("generation %d of %s is both session %.8s and %.8s", g.number, g.scope, known, c.Session))
		}
		sessions[g] = c.Session
		whole := generation{g.supervisor, g.scope, 0}
		if l, found := latest[whole]; found && (l.number < g.number) != opened[sessions[l]].Before(opened[c.Session]) && l.number != g.number {
			errs = append(errs, fmt.Errorf("generations %d and %d of %s are not in the order of their sessions", l.number, g.number, g.scope))
		}
		latest[whole] = g
	}
	return errs
}

// margin is how long after the end of its lease a member may send a call that it has begun.
const margin = 250 * time.Millisecond

// checkFences returns an error for each call that a member sent while it was none: after its
// lease while it was cut off, or etcd was down, or between the end of its pause and its return,
// if the call was not in flight when the pause began.
func (h *History) checkFences() (errs []error) {
	started := map[string]time.Time{}
	for _, c := range h.Calls {
		started[c.ID] = c.Started
	}
	for _, f := range h.Faults {
		var from, to time.Time
		switch f.Kind {
		case Cut, CutFromEtcd, Down:
			from, to = f.At.Add(h.Lease+margin), f.Until
		case Pause:
			from, to = f.Until, f.Rejoined
		default:
			continue
		}
		for _, e := range h.Executions {
			if f.Member != "" && e.Member != f.Member || !e.Started.After(from) || !e.Started.Before(to) {
				continue
			}
			if at, known := started[e.Call]; f.Kind != Pause || known && at.After(f.At) {
				errs = append(errs, fmt.Errorf("call %s was sent by %s %v after the fault %s began, and %v before it was a member again",
					e.Call, e.Member, e.Started.Sub(f.At), f.Kind, to.Sub(e.Started)))
			}
		}
	}
	return errs
}

// checkRecovery returns an error for each scope that did not work after a fault.
func (h *History) checkRecovery() (errs []error) {
	for _, f := range h.Faults {
		for scope, took := range h.recovery(f, false) {
			if took < 0 {
				errs = append(errs, fmt.Errorf("scope %s did not work after the fault %s of %s", scope, f.Kind, f.Member))
			}
		}
	}
	return errs
}

// recovery returns how long each scope took after a fault until a call that was started after
// the fault succeeded, or -1 for those that did not work again. After etcd was down, it is the
// time from its return. The calls of the member's own agents do not count. With affected it
// returns only the scopes that the member had.
func (h *History) recovery(f *Fault, affected bool) map[string]time.Duration {
	since := f.At
	if f.Kind == Down {
		since = f.Until
	}
	all := map[string]time.Duration{}
	for _, c := range h.Calls { // by the time of their start
		switch {
		case c.Member == f.Member && c.Member != "":
		case c.Started.Before(f.At):
			if c.ok() && c.Ended.Before(f.At) {
				all[c.Scope] = -1
				if affected && f.Member != "" && c.Supervisor != f.Member {
					delete(all, c.Scope)
				}
			}
		default:
			took, known := all[c.Scope]
			if known && c.ok() && !c.Ended.Before(since) && (took < 0 || c.Ended.Sub(since) < took) {
				all[c.Scope] = c.Ended.Sub(since)
			}
		}
	}
	return all
}
