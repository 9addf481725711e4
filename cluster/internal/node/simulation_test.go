package node

import (
	"cmp"
	"crypto/rand"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/quorum"
	"github.com/mcpactor/mcpactor/internal/schedule"
)

// simulation is one schedule of a cluster: several nodes, each with a process of its own, the network between them, and
// who tells them of each other. Their supervisors are scripted. All of it runs in one goroutine, on fake time: the tape
// chooses what happens next, how long each message takes, and what fails. So the same choices always have the same log.
type simulation struct {
	*schedule.Run
	network
	callers

	mu      sync.Mutex   // of the links
	lanes   []*lane      // in which one thing happens after the other
	timers  []*happening // the others
	serial  int
	entered int    // incarnations so far
	voters  uint64 // likewise, of the hosts of raft
	holders int    // members that had all keys at the last look

	processes []*process
	healed    bool
	recovered time.Time             // when all members knew each other after the end of all faults
	overlaps  map[overlap]time.Time // and since when
}

// happening is something that happens at a time, or later.
type happening struct {
	at      time.Time
	serial  int
	of      *process // in which it happens, or nil
	label   string
	do      func()
	stopped bool
}

// Stop has the event not happen.
func (e *happening) Stop() bool {
	was := !e.stopped
	e.stopped = true
	return was
}

// lane has events that happen in their order.
type lane struct {
	events  []*happening
	blocked func() bool // nil is never
}

// event returns an event that happens after a time.
func (s *simulation) event(of *process, d time.Duration, label string, do func()) *happening {
	s.serial++
	return &happening{at: time.Now().Add(max(d, 0)), serial: s.serial, of: of, label: label, do: do}
}

// later has a function called in a process, or in the world, after a time by its clock.
func (s *simulation) later(of *process, d time.Duration, label string, do func()) *happening {
	if of != nil {
		d = of.stretched(d)
	}
	e := s.event(of, d, label, do)
	s.timers = append(s.timers, e)
	return e
}

// newLane returns a lane without events.
func (s *simulation) newLane(blocked func() bool) *lane {
	l := &lane{blocked: blocked}
	s.lanes = append(s.lanes, l)
	return l
}

// waits reports whether an event cannot happen although its time has come.
func (e *happening) waits() bool { return e.of != nil && e.of.paused }

// over reports whether an event does not happen any more.
func (e *happening) over() bool { return e.stopped || e.of != nil && (e.of.dead || e.of.left) }

// next returns the events that can happen now, the oldest first, and when the next one can.
func (s *simulation) next() (ready []*happening, at time.Time) {
	now := time.Now()
	add := func(e *happening) {
		switch {
		case e.waits():
		case !e.at.After(now):
			ready = append(ready, e)
		case at.IsZero() || e.at.Before(at):
			at = e.at
		}
	}
	for _, l := range s.lanes {
		for len(l.events) > 0 && l.events[0].over() {
			l.events = l.events[1:]
		}
		if len(l.events) > 0 && (l.blocked == nil || !l.blocked()) {
			add(l.events[0])
		}
	}
	s.timers = slices.DeleteFunc(s.timers, (*happening).over)
	for _, e := range s.timers {
		add(e)
	}
	slices.SortFunc(ready, func(a, b *happening) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.serial, b.serial)) })
	return ready, at
}

// dice has the random numbers of raft, from a seed.
type dice struct{ *mathrand.Rand }

func (d dice) Read(to []byte) (int, error) {
	for i := range to {
		to[i] = byte(d.IntN(256))
	}
	return len(to), nil
}

// maxSteps bounds a schedule: one without end is not in time.
const maxSteps = 200_000

// step has the next event happen, which the tape chooses among those that can. It reports false if there is none before a
// time, which then has come.
func (s *simulation) step(until time.Time) bool {
	ready, at := s.next()
	if s.Steps > maxSteps && len(ready) > 0 {
		s.Violate("not in time", "%d steps, and now, after %v, %q of %d", s.Steps, time.Since(s.Began), ready[0].label, len(ready))
		return false
	}
	if len(ready) == 0 {
		if at.IsZero() || at.After(until) {
			time.Sleep(time.Until(until))
			return false
		}
		time.Sleep(time.Until(at))
		s.checkOverlaps()
		return true
	}
	e := ready[s.Choose(len(ready), func(r *mathrand.Rand) int {
		if r.IntN(4) > 0 {
			return 0
		}
		return r.IntN(len(ready))
	})]
	e.stopped = true
	s.Steps++
	if e.label != "" {
		s.Logf("%s", e.label)
	}
	e.do()
	s.observe(e.of)
	s.checkOverlaps()
	return true
}

// pass lets time pass.
func (s *simulation) pass(d time.Duration) {
	for until := time.Now().Add(d); s.Intact() && s.step(until); {
	}
}

// await lets time pass until a condition holds, which must be soon.
func (s *simulation) await(limit time.Duration, what string, until func() bool) {
	for end := time.Now().Add(limit); s.Intact() && !until(); {
		if !time.Now().Before(end) {
			s.Violate(what+" in time", "not within %v", limit)
			s.logState()
			return
		}
		for next := time.Now().Add(50 * time.Millisecond); s.Intact() && s.step(next); {
		}
	}
}

// simulate runs a schedule of some actions, in a world that prepare may change.
func simulate(t *testing.T, choices *schedule.Tape, actions int, keep bool) *schedule.Run {
	if n, given := choices.Actions(); given {
		actions = n
	}
	return inBubble(t, choices, keep, func(s *simulation) {
		s.start()
		for ; actions > 0 && s.Intact(); actions-- {
			s.act()
		}
		s.finish()
	}).Run
}

// inBubble returns a simulation that has run.
func inBubble(t *testing.T, choices *schedule.Tape, keep bool, run func(s *simulation)) *simulation {
	s := &simulation{}
	synctest.Test(t, func(*testing.T) {
		s.Run = schedule.Begin(choices, keep, time.Now)
		run(s)
	})
	return s
}

// start makes the world, and waits until its members know each other.
func (s *simulation) start() {
	s.Part()
	s.prepare(config{
		etcd: s.N(3) > 0, members: []int{3, 3, 4, 2, 1}[s.N(5)], drifts: s.N(2) == 1, holds: s.N(2) == 1, lossy: s.N(4) == 1,
		store: s.N(2) == 1, fast: s.N(2) == 1, forgets: s.N(4) == 1,
	})
	s.await(30*time.Second, "all members know each other", s.stable)
}

// prepare starts the members.
func (s *simulation) prepare(cfg config) {
	s.overlaps = map[overlap]time.Time{}
	s.network = network{cfg: cfg, s: s, links: map[[2]string]*line{}, disks: map[string]quorum.State{}}
	rand.Reader = dice{mathrand.New(mathrand.NewPCG(uint64(s.N(1<<20)), 1))}
	s.callers = callers{s: s, executed: map[string]int{}, at: map[string]string{}}
	s.etcd.lane = s.newLane(func() bool { return s.etcd.hung })
	for i := range cfg.members {
		s.spawn(string(rune('a' + i)))
	}
}

// finish ends all faults, waits until all is answered and works again, and has all members leave.
func (s *simulation) finish() {
	s.Part()
	s.heal()
	s.await(callTime+10*time.Second, "all calls are answered", func() bool { return s.unanswered() == 0 })
	var since time.Time
	s.await(recovery, "all members know each other", func() bool {
		if now := time.Now(); !s.stable() || since.IsZero() {
			since = now
		}
		return time.Since(since) > time.Second // nothing is on its way that was sent before
	})
	s.recovered = time.Now()
	s.checkRecovery()
	for _, p := range s.live() {
		if s.N(2) == 0 {
			s.pass(time.Second)
		}
		p.leave()
	}
	s.await(time.Minute, "all members have left", func() bool { return len(s.live()) == 0 })
	s.checkEnd()
	time.Sleep(10 * time.Second) // for the throttle of the dead letters
}
