package handles

import (
	"maps"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/mcpactor/mcpactor/internal/schedule"
	"github.com/mcpactor/mcpactor/messages"
)

var schedules = schedule.Simulation{
	Test: "go test ./actors/internal/handles", Seeds: 1000, Simulate: simulate, Many: 20_000, Crossings: []string{
		"we are killed", "a write outlives us", "a write dies with us", "the server restarts", "a session is lost", "a session is evicted", "a scope moves", "a scope comes home",
		"a mint is lost", "a lost mint is found", "a late answer", "full", "a mint is refused", "a mint is withdrawn", "a handle is taken over", "a stale holder is refused",
		"an id comes again", "a call is cut", "a handle is left", "a handle is gone", "a scope comes back", "a release is asked about", "an end names what is left", "idle", "a release is not sent any more",
	},
}

// TestSimulation runs schedules whose every choice comes from a seed: of agents that mint, use and release handles, and end, of a server whose answers are
// late or lost, and of ends of ourselves.
func TestSimulation(t *testing.T) { schedules.TestSeeds(t) }

func TestSimulationReplaysTapes(t *testing.T) { schedules.TestTapes(t) }

func TestSimulationIsReproducible(t *testing.T) { schedules.TestRepeats(t, 20, 1, func(int) {}) }

const (
	arrival = 20 * time.Second // what is on its way arrives within this time
	comeBy  = time.Minute      // scopes of an earlier process come back within this time
)

// simulation is one schedule.
type simulation struct {
	*schedule.Run
	now time.Time
	fakeServer
	book   *Book
	kinds  Kinds
	k      *kind // of the book
	agents []*agent
	conns  map[string]*conn // by scope

	messages   []*message
	mints      []*mint // without a reply
	ends       map[*End]ending
	life       int // of us
	serial     int
	healed     bool
	lostBefore int  // mints, before the last fact: they may be found by it
	several    bool // mints were lost at once: nobody can tell them apart
	named      int  // what is said to be lost or left

	store map[messages.Key]Record
	wrote map[messages.Key]*instance // what the records are about
	meant map[*Handle]*instance
	taken map[*Handle]bool // by somebody who uses it

	moved  time.Time                 // when a mint was granted last, or there was none to grant
	passed map[Holder]map[Holder]int // how many turns others have had while somebody waits
}

// agent is a holder.
type agent struct {
	Holder
	era int // how often it has ended
}

// conn is the connection of a scope, with an MCP session.
type conn struct {
	isOpen, isAway bool
	generation     uint64
}

// message is on its way.
type message struct {
	what  string
	life  int // of us, or 0 if it outlives us
	by    time.Time
	write func() // to the store, before anything else
	do    func()
}

// ending is what an End is about.
type ending struct {
	by      time.Time
	scope   string
	whole   bool
	handles []*Handle // that it ends
}

// mint is a call that mints.
type mint struct {
	*Mint
	a         *agent
	era, life int
	isOver    bool
	isSent    bool
}

func simulate(_ *testing.T, choices *schedule.Tape, actions int, keep bool) (r *schedule.Run) {
	if n, given := choices.Actions(); given {
		actions = n
	}
	s := &simulation{
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), life: 1, conns: map[string]*conn{}, ends: map[*End]ending{}, store: map[messages.Key]Record{},
		wrote: map[messages.Key]*instance{}, meant: map[*Handle]*instance{}, taken: map[*Handle]bool{}, passed: map[Holder]map[Holder]int{},
	}
	r = schedule.Begin(choices, keep, func() time.Time { return s.now })
	s.Run = r
	defer func() {
		if reason := recover(); reason != nil {
			s.Logf("%s", debug.Stack())
			s.Violate("a panic", "%v", reason)
		}
	}()
	s.Part()
	for _, h := range []Holder{{"a", ""}, {"b", ""}, {"c", "one"}, {"c", "two"}} {
		s.agents = append(s.agents, &agent{Holder: h})
		s.conns[h.Scope] = &conn{}
	}
	s.fakeServer = aServer(r)
	s.kinds = s.declared()
	s.Logf("%+v", s.traits)
	s.begin()
	for ; actions > 0 && s.Intact(); actions-- {
		s.Part()
		s.act()
		for range s.N(10) {
			s.step()
		}
	}
	s.Part()
	s.finish()
	return r
}

// begin begins a life of ours.
func (s *simulation) begin() {
	s.book = New()
	s.book.Declare("server", s.kinds)
	s.k, s.moved = s.book.kindOf("server", "open"), s.now
	clear(s.passed)
	s.restore(func(string) bool { return true })
}

// restore restores what the store has of scopes.
func (s *simulation) restore(of func(scope string) bool) {
	until := s.now.Add(comeBy)
	for _, at := range slices.SortedFunc(maps.Keys(s.store), messages.Key.Compare) {
		if of(s.store[at].Key.Scope) {
			if i := s.wrote[at]; i != nil {
				i.isWeak = true
			}
			s.fact(func() { s.book.Restore(at, s.store[at], until, s.now) })
		}
	}
	for _, h := range s.k.all {
		if i := s.wrote[h.Record]; i != nil && s.meant[h] == nil {
			s.meant[h] = i
		}
	}
}

// act does one of the things that may happen.
func (s *simulation) act() {
	a := s.agents[s.N(len(s.agents))]
	if s.conns[a.Scope].isAway && s.Rarely(2, 3) == 0 {
		s.comeHome(a.Scope)
	}
	switch n := s.N(32); {
	case s.conns[a.Scope].isAway:
	case n < 9:
		s.mint(a)
	case n < 14:
		s.use(a, "use")
	case n < 16:
		s.use(a, "close")
	case n < 19:
		s.end(a)
	case n == 19:
		s.withdraw()
	case n == 20:
		s.lose(a.Scope)
	case n == 21:
		s.evict(a.Scope)
	case n == 22 && s.Rarely(2, 2) == 1:
		s.restartServer()
	case n == 23:
		s.kill()
	case n == 24 && !s.own && s.Rarely(2, 2) == 1: // nothing is Own in a cluster
		s.move(a.Scope)
	case n == 25 && s.unique:
		s.dies()
	case n == 26 && !s.own:
		s.others()
	case n < 30:
		s.pass(time.Duration(1+s.N(3000)) * time.Millisecond)
	case n == 30:
		s.pass(time.Duration(1+s.N(40)) * time.Second)
	}
}

// fact tells the book a fact, and carries out what it decides.
func (s *simulation) fact(tell func()) {
	if !s.Intact() {
		return
	}
	s.Steps++
	if s.k.line.waiting == 0 {
		s.moved = s.now
	}
	s.lostBefore = len(s.k.lost())
	tell()
	for decided := s.book.Decided(); len(decided) > 0; decided = s.book.Decided() {
		for _, d := range decided {
			s.carryOut(d)
		}
	}
	s.checkBook()
}

func (s *simulation) carryOut(d Decision) {
	switch {
	case d.Grant != nil:
		s.granted(d.Grant.Ticket.(*mint))
	case d.Refuse != nil:
		s.Crossed("a mint is refused")
		s.replied(d.Refuse.Ticket.(*mint), false)
	case d.Release != nil:
		s.release(d.Release, d.Until)
	case d.List != nil:
		s.look(d.List, d.By)
	case d.Forget != messages.Key{}:
		s.write("a record is deleted", func() { delete(s.store, d.Forget) }, func() { s.book.Forgotten(d.Forget) })
	case d.Over != nil:
		s.over(d.Over)
	case d.Said != nil:
		s.Logf("said: %d of %s: %s", d.Said.What, d.Said.Key.Scope, d.Said.Reason)
		switch d.Said.What {
		case IsLost, IsLeft:
			s.named++
			s.met(d.Said.What == IsLeft, "a handle is left")
		case IsGone:
			s.Crossed("a handle is gone")
		}
	}
}

func (s *simulation) met(is bool, what string) {
	if is {
		s.Crossed(what)
	}
}

// later sends a message that this life of ours gets.
func (s *simulation) later(what string, do func()) { s.write(what, nil, do) }

// write sends a write to the store. It may be done although we are killed.
func (s *simulation) write(what string, write, do func()) {
	s.messages = append(s.messages, &message{what, s.life, s.arrival(), write, do})
}

// arrival returns when what is sent now arrives at the latest.
func (s *simulation) arrival() time.Time {
	if s.healed {
		return s.now.Add(10 * time.Millisecond)
	}
	return s.now.Add(arrival)
}

// step delivers one of the messages.
func (s *simulation) step() {
	if len(s.messages) > 0 && s.Intact() {
		s.deliver(s.N(len(s.messages)))
	}
}

func (s *simulation) deliver(n int) {
	m := s.messages[n]
	s.messages = slices.Delete(s.messages, n, n+1)
	s.Steps++
	s.Logf("%s", m.what)
	if m.write != nil {
		m.write()
	}
	m.do()
}

// pass lets time pass, with all that is due until then.
func (s *simulation) pass(d time.Duration) {
	for end := s.now.Add(d); s.Intact(); {
		next := end
		if due := s.book.Next(); !due.IsZero() && due.Before(next) {
			next = due
		}
		for _, m := range s.messages {
			if m.by.Before(next) {
				next = m.by
			}
		}
		if next.After(s.now) {
			s.now = next
		}
		for n := slices.IndexFunc(s.messages, func(m *message) bool { return !s.now.Before(m.by) }); n >= 0 && s.Intact(); {
			s.deliver(n)
			n = slices.IndexFunc(s.messages, func(m *message) bool { return !s.now.Before(m.by) })
		}
		if due := s.book.Next(); !due.IsZero() && !s.now.Before(due) {
			s.fact(func() { s.book.Due(s.now) })
			s.check(s.book.Next().IsZero() || s.book.Next().After(s.now), "Due is due again at once")
		}
		s.checkTimes()
		if s.now.Equal(end) {
			return
		}
	}
}
