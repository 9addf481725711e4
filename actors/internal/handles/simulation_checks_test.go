package handles

import (
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// check notes what does not hold.
func (s *simulation) check(ok bool, kind string, args ...any) {
	if !ok {
		s.Violate(kind, kind, args...)
	}
}

// release carries out the release of a handle. Nobody who is known to the book may hold it, and no agent that has minted or used it.
func (s *simulation) release(h *Handle, until time.Time) {
	i := s.meant[h]
	if i == nil { // it was found in a list
		s.Crossed("a lost mint is found")
		i = s.find(h.ID)
		if s.meant[h] = i; i != nil {
			i.isWeak = false // as it was listed now
			s.check(i.by.life != s.life || i.by.state != underWay, "what a mint that is under way has minted is taken for a lost one's")
		}
	}
	s.Logf("release of %s", h.ID)
	s.met(h.busy > 0, "a call is cut")
	s.check(len(h.holders) == 0, "a handle is released that is held")
	isIdle := s.idle > 0 && !s.now.Before(h.Used.Add(s.idle))
	s.met(isIdle, "idle")
	if isIdle && i != nil {
		maps.Copy(i.former, i.users)
		clear(i.users)
	}
	if i != nil {
		i.isOrphan = false
	}
	s.check(i == nil || s.isFree(i), "a handle is released that an agent uses")
	if until.IsZero() {
		until = s.now.Add(35 * time.Second)
	}
	s.later("a release begins", func() { s.attempt(h, h.Attempt(), until) })
}

// isFree reports whether no agent uses a handle, or it may be mistaken for another one.
func (s *simulation) isFree(i *instance) bool {
	return !i.isOpen || len(i.users) == 0 || s.own && s.several
}

// attempt takes the next step of a release.
func (s *simulation) attempt(h *Handle, a *Attempt, until time.Time) {
	again := func() { s.attempt(h, a, until) }
	switch a.Next() {
	case Finished:
		if i := s.meant[h]; i != nil && a.Outcome == (Outcome{}) {
			i.released = s.life
		}
		s.fact(func() { s.book.Released(h, a.Outcome, s.now) })
	case List:
		s.Crossed("a release is asked about")
		s.call(&call{scope: a.By.Scope, what: "list", until: until, run: s.list, got: func(r *mcp.CallToolResult, _ *messages.Failure) {
			if r == nil {
				a.Listed(nil, false)
			} else {
				a.Listed(a.Kind.ListedIn(r), true)
			}
			again()
		}})
	case Call:
		i := s.meant[h]
		s.call(&call{
			scope: a.By.Scope, what: "close " + a.ID, until: until, guard: func() error {
				err := a.Begin()
				s.check(i == nil || i.released != s.life || s.own && s.several, "a handle is released twice")
				s.check(err != nil || s.unique || i == nil || !i.isWeak || s.own && s.several, "an id is released that may be another one's")
				return err
			},
			run: func() *mcp.CallToolResult {
				if there := s.find(a.ID); there != nil {
					s.check(there == i || i == nil && there.by != nil || i != nil && i.isClosed, "the handle of somebody else is released")
				}
				return s.called("close", a.ID, i != nil && i.isOpen)
			},
			got: func(r *mcp.CallToolResult, f *messages.Failure) {
				if f != nil {
					if i != nil && f.MayHaveRun {
						i.isWeak = true
					}
					a.Failed(f)
				} else {
					a.Answered(a.Kind.Used(r, true))
				}
				again()
			},
		})
	}
}

// look asks which handles there are.
func (s *simulation) look(kind *Kind, by messages.Key) {
	s.several = s.several || len(s.k.lost()) > 1
	s.later("a list is asked for", func() {
		s.call(&call{scope: by.Scope, what: "list", run: s.list, got: func(r *mcp.CallToolResult, _ *messages.Failure) {
			s.several = s.several || len(s.k.lost()) > 1
			s.fact(func() {
				if r == nil {
					s.book.Listed(kind, nil, false, s.now)
				} else {
					s.book.Listed(kind, kind.ListedIn(r), true, s.now)
				}
			})
		}})
	})
}

// checkBook checks what always holds in the book.
func (s *simulation) checkBook() {
	l := &s.k.line
	s.check(l.used == len(s.k.all)+len(s.k.mints), "a place is lost, or is there twice")
	count := 0
	for _, all := range l.mints {
		count += len(all)
	}
	s.check(l.waiting == count && len(l.turns) == len(l.mints), "the line is not what it says")
	for _, holder := range l.turns {
		if s.passed[holder] == nil {
			s.passed[holder] = map[Holder]int{}
		}
	}
	maps.DeleteFunc(s.passed, func(holder Holder, _ map[Holder]int) bool { return len(l.mints[holder]) == 0 })
	for id, h := range s.k.all {
		s.check(h.ID == id && h.busy >= 0, "a handle is not where it belongs")
		isTheirs := slices.ContainsFunc(h.holders, func(o Holder) bool { return o.Scope == h.By.Scope })
		s.check(h.state != held || len(h.holders) == 0 || s.bound || isTheirs, "a handle is of the session of somebody who does not hold it")
		s.check(h.state != held || len(h.holders) > 0 || h.busy > 0, "a handle is held that nobody holds")
		s.check(h.state != held || len(h.holders) == 0 || len(h.ends) == 0 || s.bound, "somebody who has ended waits for a handle that others hold")
		at := s.conns[h.key.Scope]
		s.check(!s.bound || h.state == left || !at.isOpen || h.Generation == 0 || h.restored != (Holder{}) || h.Generation == at.generation, "a handle is known that has ended with its session")
	}
}

// checkTimes checks what is in time.
func (s *simulation) checkTimes() {
	for _, of := range s.ends {
		s.check(s.now.Before(of.by), "an end is not over in time")
	}
	if s.k.line.waiting == 0 || s.most > 0 && s.k.certain() >= s.most {
		s.moved = s.now
	}
	s.check(!s.now.After(s.moved.Add(2*time.Second)), "a mint waits although there is room")
}

// fair checks that nobody takes more turns than one, and one that was in vain, while another one waits.
func (s *simulation) fair(m *mint) {
	s.moved = s.now
	delete(s.passed, m.Holder)
	for other, by := range s.passed {
		by[m.Holder]++
		s.check(by[m.Holder] <= 2, "somebody takes turns while another one waits: %v", other)
	}
}

// inVain notes that a turn was in vain: the next one is a second later.
func (s *simulation) inVain(h Holder) {
	s.moved = s.now
	for _, by := range s.passed {
		by[h] = max(0, by[h]-1)
	}
}

// checkRest checks what is left when all have ended.
func (s *simulation) checkRest() {
	leftOpen := 0
	for _, i := range s.all {
		if !i.isOpen || i.by == nil {
			continue
		}
		leftOpen++
		s.check(!s.unique || !i.isLearned, "a handle is left that was answered")
		s.check(!s.unique || !s.own || s.several, "a handle is left that is ours") // several: the record of one may be that of another
		s.check(!i.isLearned || i.isWeak || i.isTaken || s.own && s.several, "a handle is left although its id was sure")
	}
	if leftOpen > s.named {
		s.Violate("what is left is not named", "%d are left, %d are named", leftOpen, s.named)
	}
	s.check(len(s.ends) == 0, "an end is not over")
	s.check(len(s.book.records) <= len(s.k.all)+len(s.k.mints), "a record is known that is of nothing")
	s.check(s.k.line.waiting == 0 && len(s.mints) == 0, "a mint is not answered")
	for _, h := range s.k.all {
		s.check(h.state == left && !s.unique, "a handle is left in the book")
	}
	if n := len(s.k.mints); n > 0 && (s.own || s.life == 1) {
		for m := range s.k.mints {
			s.check(!s.own && m.state == lost, "a mint is left in the book")
		}
	}
	for at, r := range s.store {
		s.check(s.hasRecord(at) || r.ID == "" && !s.own, "a record is left")
	}
}

// hasRecord reports whether a record is of a handle or a mint in the book.
func (s *simulation) hasRecord(at messages.Key) bool {
	for m := range s.k.mints {
		if m.Record == at {
			return true
		}
	}
	for _, h := range s.k.all {
		if h.Record == at {
			return true
		}
	}
	return false
}
