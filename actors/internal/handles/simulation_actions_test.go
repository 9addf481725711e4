package handles

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/messages"
)

// mint mints a handle for an agent.
func (s *simulation) mint(a *agent) {
	s.alive(a)
	s.serial++
	key := messages.Key{Server: "server", Scope: a.Scope}
	m := &mint{a: a, era: a.era, life: s.life}
	m.Mint = &Mint{Kind: s.kinds[0], By: key, Holder: a.Holder, Record: recordkey.Handle(key, fmt.Sprintf("%04d", s.serial)), Ticket: m}
	s.Logf("%v asks for mint %d", a.Holder, s.serial)
	s.mints = append(s.mints, m)
	s.fact(func() { s.check(s.book.Ask(m.Mint, s.now), "too many wait") })
}

// replied ends a mint: its caller has a reply.
func (s *simulation) replied(m *mint, mayHaveMinted bool) {
	if !m.isOver {
		m.isOver = true
		s.mints = slices.DeleteFunc(s.mints, func(other *mint) bool { return other == m })
		s.later("the reply to a mint", func() {
			s.several = s.several || mayHaveMinted && m.state == underWay && len(s.k.lost()) > 0
			s.fact(func() { s.book.Failed(m.Mint, mayHaveMinted, s.now) })
		})
	}
}

// withdraw has the caller of a mint give up that is not sent.
func (s *simulation) withdraw() {
	waiting := slices.DeleteFunc(slices.Clone(s.mints), func(m *mint) bool { return m.isSent })
	if len(waiting) > 0 {
		m := waiting[s.N(len(waiting))]
		s.Logf("a mint of %v is withdrawn", m.Holder)
		s.Crossed("a mint is withdrawn")
		s.replied(m, false)
		s.fact(func() { s.book.Failed(m.Mint, false, s.now) })
	}
}

// granted sends a mint, once that is stored.
func (s *simulation) granted(m *mint) {
	s.fair(m)
	again := s.k.sorted(func(h *Handle) bool { return h.tries > 1 }) // were left as it was granted
	s.check(s.most == 0 || s.k.certain()-len(again)-s.lostBefore <= s.most, "more are granted than there may be")
	if m.isOver || m.isSent {
		return // nobody takes the turn: the caller has given up, or is about to
	}
	m.isSent = true
	record := Record{Key: m.By, Holder: m.Holder.Name, Mint: "open", Since: m.Since}
	s.write("the intent of a mint is stored", func() { s.store[m.Record] = record }, func() {
		var i *instance
		s.call(&call{
			scope: m.a.Scope, what: "open", run: func() (r *mcp.CallToolResult) { r, i = s.open(m); return r },
			got: func(r *mcp.CallToolResult, f *messages.Failure) {
				if f != nil {
					s.met(f.MayHaveRun, "a mint is lost")
					s.replied(m, f.MayHaveRun)
					return
				}
				s.answered(m, r, i, true)
			},
			late: func(r *mcp.CallToolResult) { s.Crossed("a late answer"); s.answered(m, r, i, false) },
		})
	})
}

// answered notes the answer to a mint, once that is stored. The caller gets it, or has given up.
func (s *simulation) answered(m *mint, r *mcp.CallToolResult, i *instance, inTime bool) {
	answer, generation := m.Kind.Minted(r), uint64(0)
	if i != nil {
		generation = i.session
	}
	tell := func() {
		before := s.k.all[answer.ID]
		isDead := i != nil && !i.isOpen
		s.fact(func() {
			s.book.Answered(m.Mint, answer, generation, s.now)
			if h := s.k.all[answer.ID]; h != nil && h.Record == m.Record {
				s.meant[h] = i
				i.isWeak = i.isWeak || s.own && h.suspect.isRaised()
			}
		})
		if before != nil && s.k.all[answer.ID] != before {
			s.Crossed("an id comes again")
			if of := s.meant[before]; of != nil && (m.turn <= before.turn || isDead) {
				of.isWeak = true // nobody can tell which of the two was first
			}
		}
		if inTime && !answer.Full {
			s.replied(m, true)
		}
	}
	if answer.ID == "" {
		s.met(answer.Full, "full")
		s.later("the answer to a mint: "+textOf(r), func() {
			if answer.Full {
				m.isSent = !inTime
				s.inVain(m.Holder)
			}
			tell()
		})
		return
	}
	record := Record{Key: m.By, Holder: m.Holder.Name, Mint: "open", ID: answer.ID, Generation: generation, Since: m.Since}
	s.write("a handle is stored: "+answer.ID, func() { s.store[m.Record], s.wrote[m.Record] = record, i }, func() {
		i.isLearned = true
		s.knows(m.a, i.id) // or could: see ListHandles
		i.isWeak = i.isWeak || m.state == settled && m.found != i.id
		i.isTaken = m.state == lost && s.k.all[i.id] != nil
		if inTime && m.era == m.a.era {
			i.users[m.a], i.known = true, true
		}
		tell()
	})
}

// alive notes that an agent does something. What it has minted in an earlier life it still holds.
func (s *simulation) alive(a *agent) {
	for _, h := range s.k.all {
		if i := s.meant[h]; h.isOrphan && i != nil && i.isOrphan && i.by.a == a {
			s.Crossed("a scope comes back")
			i.users[a], i.isOrphan = true, false
		}
	}
	s.fact(func() { s.book.Alive(a.Holder) })
}

// use calls a tool with a handle that some agent has told.
func (s *simulation) use(a *agent, tool string) {
	known := slices.DeleteFunc(slices.Clone(s.all), func(i *instance) bool { return !i.known || !i.users[a] && !i.isOpen })
	if len(known) == 0 {
		return
	}
	i := known[max(0, len(known)-1-s.N(6))]
	s.alive(a)
	params := &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(fmt.Sprintf(`{"id": %q}`, i.id))}
	var uses []*Use
	isStale := false
	wasHeld := i.users[a] || i.former[a]
	if h := s.k.all[i.id]; h != nil && slices.Contains(h.holders, a.Holder) {
		wasHeld = false // it may mean this one
	}
	s.Logf("%v calls %s with %s", a.Holder, tool, i)
	s.fact(func() { uses, isStale = s.book.Begins(tool, s.kinds.Given(params), a.Holder, s.now) })
	if isStale {
		s.Crossed("a stale holder is refused")
		s.check(s.holding(a, i) == nil, "who holds a handle is refused")
		return
	}
	for _, u := range uses {
		of := s.meant[u.of]
		s.taken[u.of] = true
		s.check(of == i || of == nil || !wasHeld || i.life != s.life, "who has held a handle gets another one")
		if of == i {
			s.met(u.of.state == held && len(u.of.holders) > 1, "a handle is taken over")
			i.users[a] = true
		}
	}
	s.call(&call{
		scope: a.Scope, what: tool + " " + i.id, run: func() *mcp.CallToolResult {
			i.isClosed = i.isClosed || tool == "close"
			return s.called(tool, i.id, false)
		},
		got: func(r *mcp.CallToolResult, f *messages.Failure) {
			if r != nil && (r.IsError || tool == "close") {
				s.knows(a, i.id)
			}
			for _, u := range uses {
				var answer *Answer
				if r != nil {
					said := u.Kind.Used(r, u.Releases)
					answer = &said
				} else if of := s.meant[u.of]; of != nil && f.MayHaveRun && u.Releases {
					of.isWeak = true
				}
				s.fact(func() { s.book.Ends(u, answer, f == nil || f.MayHaveRun, s.now) })
			}
		},
	})
}

// knows notes that an agent knows that a handle is no more.
func (s *simulation) knows(a *agent, id string) {
	for _, i := range s.all {
		if i.id == id {
			delete(i.users, a)
			delete(i.former, a)
		}
	}
}

// holding returns the handle of the book that an agent holds, and that is this one.
func (s *simulation) holding(a *agent, i *instance) *Handle {
	if h := s.k.all[i.id]; h != nil && s.meant[h] == i && slices.Contains(h.holders, a.Holder) {
		return h
	}
	return nil
}

// end ends the scope of an agent, or only the agent.
func (s *simulation) end(a *agent) {
	m := Matches{Key: func(key messages.Key) bool { return key.Scope == a.Scope }, Scope: a.Scope}
	if a.Name != "" && s.N(2) == 1 {
		m.Holder = a.Name
	}
	grace := s.now.Add(time.Duration(s.N(2)*5) * time.Second)
	s.endAll(m, grace)
}

func (s *simulation) endAll(m Matches, grace time.Time) {
	s.Logf("the end of %s %s", m.Scope, m.Holder)
	matches := m.holderOf("server")
	for _, a := range s.agents {
		if !matches(a.Holder) {
			continue
		}
		a.era++
		for _, i := range s.all {
			delete(i.users, a)
			delete(i.former, a)
			i.isOrphan = i.isOrphan && i.by.a.Scope != a.Scope
		}
	}
	for _, i := range s.all {
		if s.bound && m.Holder == "" && i.by != nil && m.Key(i.by.By) {
			clear(i.users)
		}
	}
	of := ending{by: grace.Add(10 * time.Second), scope: m.Scope, whole: m.Holder == ""}
	var e *End
	s.fact(func() {
		e = s.book.End(m, grace, of.by, s.now)
		of.handles = s.k.sorted(func(h *Handle) bool { return h.By.Scope == m.Scope && len(h.holders) == 0 })
		if e != nil {
			s.ends[e] = of
		}
	})
	if e == nil {
		s.ended(of, 0)
	}
}

func (s *simulation) over(e *End) {
	of, is := s.ends[e]
	s.check(is, "an end is over twice")
	delete(s.ends, e)
	s.met(len(e.Left) > 0, "an end names what is left")
	s.ended(of, len(e.Left))
}

// ended checks that nothing of a scope that has ended is forgotten, and closes its session.
func (s *simulation) ended(of ending, leftCount int) {
	if !of.whole || of.scope == "" {
		return
	}
	for _, h := range of.handles {
		s.check(leftCount > 0 || s.taken[h] || h.state != held && h.state != releasing, "an end is over too early")
	}
	s.later("the session of "+of.scope+" is closed", func() { s.closeConn(of.scope) })
}

// kill kills us, and starts us again. Some of what is being written is written.
func (s *simulation) kill() {
	s.Logf("we are killed")
	s.Crossed("we are killed")
	s.messages = slices.DeleteFunc(s.messages, func(m *message) bool {
		if m.life == s.life && m.write != nil && s.N(2) == 1 {
			s.Logf("%s", m.what)
			s.Crossed("a write outlives us")
			m.write()
		} else if m.life == s.life && m.write != nil {
			s.Crossed("a write dies with us")
		}
		return m.life == s.life
	})
	s.life++
	s.mints = nil
	clear(s.ends)
	s.forgotten(func(*instance) bool { return true })
	for _, scope := range s.scopes() {
		s.conns[scope].isAway = false
		s.closeConn(scope)
	}
	s.begin()
}

// forgotten notes that the book forgets handles. Who has minted one keeps it by coming back.
func (s *simulation) forgotten(matches func(*instance) bool) {
	for _, i := range s.all {
		if i.by != nil && matches(i) {
			i.isOrphan = i.isOrphan || i.users[i.by.a]
			clear(i.users)
		}
	}
}

func (s *simulation) scopes() []string { return slices.Sorted(maps.Keys(s.conns)) }

// move has another member of the cluster have a scope.
func (s *simulation) move(scope string) {
	s.Logf("%s moves", scope)
	s.Crossed("a scope moves")
	s.forgotten(func(i *instance) bool { return i.by.a.Scope == scope })
	s.conns[scope].isAway = true
	for _, m := range slices.Clone(s.mints) {
		if m.a.Scope == scope && !m.isSent {
			s.replied(m, false)
			s.fact(func() { s.book.Failed(m.Mint, false, s.now) })
		}
	}
	s.fact(func() { s.book.Moved(func(key messages.Key) bool { return key.Scope == scope }, s.now) })
}

// comeHome has a scope move back, when its calls have ended.
func (s *simulation) comeHome(scope string) {
	s.pass(5 * arrival)
	s.Logf("%s comes home", scope)
	s.Crossed("a scope comes home")
	s.conns[scope].isAway = false
	s.forgotten(func(i *instance) bool { return i.by.a.Scope == scope }) // what was answered since
	s.restore(func(of string) bool { return of == scope })
}

// finish ends all faults and all scopes.
func (s *simulation) finish() {
	s.Logf("the faults end")
	s.healed = true
	for _, scope := range s.scopes() {
		if s.conns[scope].isAway {
			s.comeHome(scope)
		}
	}
	s.pass(2 * arrival)
	for range 4 {
		s.endAll(Matches{Key: func(messages.Key) bool { return true }}, s.now.Add(time.Second))
		s.pass(90 * time.Second)
		for _, scope := range s.scopes() {
			s.connect(scope)
		}
		s.pass(2 * arrival)
	}
	s.checkRest()
}
