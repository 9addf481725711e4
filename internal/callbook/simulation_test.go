package callbook

import (
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpactor/mcpactor/internal/schedule"
	"github.com/mcpactor/mcpactor/messages"
)

var schedules = schedule.Simulation{
	Test: "go test ./internal/callbook", Seeds: 300, Simulate: simulate, Many: 20_000, Crossings: append(transitions(),
		"a process dies", "a request to the store outlives its process", "resolved: ran", "resolved: not_run",
		"a task is followed by another asker", "the next round is sent by another asker", "a call is lost", "a second answer", "a call is refused for another one",
	),
}

// transitions returns the changes of states that calls make, but for those that are rare: directed tests make them.
func transitions() (all []string) {
	for state, next := range follows {
		for _, to := range next {
			all = append(all, fmt.Sprintf("%s → %s", state, to))
		}
	}
	all = slices.DeleteFunc(all, func(name string) bool {
		return name == "sent → failed" || name == "unknown → done" || name == "done → done"
	})
	slices.Sort(all)
	return all
}

// TestSimulation runs schedules whose every choice comes from a seed: of processes that ask for the same calls, propose and answer
// them, and die, with a store and a server that are slow and fail.
func TestSimulation(t *testing.T) { schedules.TestSeeds(t) }

func TestSimulationReplaysTapes(t *testing.T) { schedules.TestTapes(t) }

// simulation is one schedule.
type simulation struct {
	scheduler
	world
	cfg       config
	processes []*process // that live
	books     []*Book    // also of those that have died
	spawned   int
	asked     int
	askers    []*asker
	never     map[string]string // why a call may never run
	got       map[string]bool   // calls whose result has come to the run that has sent them
	most      int               // processes
}

// simulate runs a schedule of some actions.
func simulate(t *testing.T, choices *schedule.Tape, actions int, keep bool) (r *schedule.Run) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one goroutine runs at a time
	if n, given := choices.Actions(); given {
		actions = n
	}
	s := &simulation{never: map[string]string{}, got: map[string]bool{}}
	s.ran, s.sent, s.tasks = map[string][]time.Time{}, map[string]int{}, map[string]string{}
	defer func() {
		if reason := recover(); reason != nil { // of synctest: goroutines are left
			s.Violate("goroutines are left", "%v", reason)
		}
		r = s.Run
	}()
	synctest.Test(t, func(*testing.T) {
		s.Run = schedule.Begin(choices, keep, time.Now)
		s.start()
		for ; actions > 0 && s.Intact(); actions-- {
			s.Part()
			s.act()
		}
		s.finish()
		s.close()
	})
	return r
}

// start chooses what the schedule is about, and starts the processes.
func (s *simulation) start() {
	s.Part()
	s.arrived = make(chan struct{}, 1)
	s.cfg = config{
		mild: s.N(4) == 1, limited: s.N(3) > 0, plain: s.N(8) == 1, resolves: s.N(3) > 0, knows: s.N(2) == 0, keeps: s.N(4) > 0, asTasks: s.N(3) == 1,
	}
	if s.most = 1 + s.N(3); s.cfg.plain {
		s.most = 1
	}
	s.Logf("%+v", s.cfg)
	for range s.most {
		s.spawn()
	}
}

// act does one of the things that may happen, and lets some of what waits go on.
func (s *simulation) act() {
	switch p := s.processes[s.N(len(s.processes))]; s.N(16) {
	case 0, 1, 2, 3:
		s.someone(p, asks)
	case 4, 5:
		s.someone(p, proposes)
	case 6, 7:
		s.someone(p, allows)
	case 8:
		s.someone(p, []string{denies, cancels}[s.N(2)])
	case 9:
		if s.rarely(2) && !s.cfg.mild {
			s.kill(p)
		}
	case 10:
		s.leave()
	case 11, 12:
		s.pass(time.Duration(1+s.N(4000)) * time.Millisecond)
	case 13:
		s.pass(time.Duration(1+s.N(400)) * 50 * time.Millisecond)
	}
	for range s.N(12) {
		s.step()
	}
}

// someone does something about some call.
func (s *simulation) someone(p *process, does string) {
	id := []string{"x", "y"}[s.Rarely(2, 3)]
	if does != asks {
		id = []string{"m", "n"}[s.Rarely(2, 3)]
	} else if s.rarely(4) {
		id = "m"
	}
	s.ask(p, does, id, 1+s.Rarely(2, 6), time.Duration(500+s.N([]int{15_000, 2000}[s.N(2)]))*time.Millisecond+137*time.Microsecond*time.Duration(s.asked))
}

// leave ends the context of somebody who asks.
func (s *simulation) leave() {
	waiting := slices.DeleteFunc(slices.Clone(s.askers), func(a *asker) bool { return a.over || a.in.isDead() || a.until.Before(time.Now()) })
	if len(waiting) > 0 {
		a := waiting[s.N(len(waiting))]
		s.Logf("%s leaves", a.name)
		a.until = time.Now()
		a.cancel()
	}
}

// kill kills a process, and starts another one. Requests to the store may be on their way.
func (s *simulation) kill(p *process) {
	s.rest()
	s.Logf("%s dies", p)
	s.Crossed("a process dies")
	p.dead.Store(true)
	for _, t := range s.waiting {
		if t.in == p && t.isRequest && !s.cfg.plain && s.rarely(2) {
			s.Crossed("a request to the store outlives its process")
			t.in = nil
		}
	}
	s.processes = slices.DeleteFunc(s.processes, func(other *process) bool { return other == p })
	s.spawn()
}

// finish ends all faults, waits until all is answered, and asks for all calls again.
func (s *simulation) finish() {
	s.Part()
	s.healed.Store(true)
	s.hurries = true
	s.Logf("the faults end")
	s.until("all askers have their replies", s.isAnswered)
	s.pass(6 * time.Second) // until stores are asked again that have not answered
	s.checkRest()
	for _, id := range []string{"x", "y", "m", "n"} {
		for range 2 {
			for _, p := range s.processes {
				s.askFinally(p, id)
			}
		}
	}
	for _, p := range s.processes {
		s.check(!p.works(), "an entry is left")
	}
}

// until lets all go on until something holds.
func (s *simulation) until(what string, holds func() bool) {
	if s.Intact() && !s.settle(2*time.Minute, holds) {
		s.Violate("not in time", "%s", what)
	}
}

// isAnswered reports whether all that was asked in processes that live has its reply, and no run goes on.
func (s *simulation) isAnswered() bool {
	for _, p := range s.processes {
		if p.works() {
			return false
		}
	}
	return !slices.ContainsFunc(s.askers, func(a *asker) bool { return !a.over && !a.in.isDead() }) &&
		!slices.ContainsFunc(s.waiting, func(t *turning) bool { return !t.in.isDead() })
}

// checkRest checks the records when nobody works on a call.
func (s *simulation) checkRest() {
	if !s.cfg.mild || !s.Intact() {
		return
	}
	for _, of := range slices.Sorted(maps.Keys(s.got)) {
		s.check(s.record(KeyOf("c", of[:1])).State == Done, "a result came, and is not written")
	}
	for _, id := range []string{"x", "y", "m", "n"} {
		switch r := s.record(KeyOf("c", id)); r.State {
		case Sent:
			s.check(s.sent[id+"1"]+s.sent[id+"2"] > 0, "a call that was not sent is left as one that was")
		case Asking:
			s.check(false, "nobody finds out what became of a call, but its record says so")
		}
	}
}

// askFinally asks for a call when nothing fails.
func (s *simulation) askFinally(p *process, id string) {
	if !s.Intact() {
		return
	}
	before := s.record(KeyOf("c", id))
	variant := 1
	if before.Call == DigestOf(callOf(id, 2)) {
		variant = 2
	}
	a := s.ask(p, asks, id, variant, time.Minute)
	s.until("the last asker has its reply", func() bool { return a.over && s.isAnswered() })
	if !s.Intact() {
		return
	}
	if want := s.expected(before, a.of); a.got != want {
		s.Violate("another reply than expected", "%s for %s, which was %q: not %s", a.got, a.of, before.State, want)
	}
}

// expected returns the reply that somebody gets who asks for a call when nothing fails.
func (s *simulation) expected(r Record, of string) string {
	switch r.State {
	case Proposed, Failed:
		return "not run"
	case Done:
		if r.Result == nil {
			return "lost"
		}
	case Task:
		if s.tasks[r.Task] == "gone" {
			return map[bool]string{true: "ok", false: "lost"}[s.cfg.resolves]
		}
	case Unknown:
		if !s.cfg.resolves || r.Resolved {
			return "lost"
		}
	case Sent, Asking:
		if !s.cfg.resolves {
			return "lost"
		}
	}
	return "ok"
}

// check notes what does not hold.
func (s *simulation) check(ok bool, kind string) {
	if !ok {
		s.Violate(kind, "%s", kind)
	}
}

// neverRuns notes that a call has not run, and never may.
func (s *simulation) neverRuns(of, why string) {
	if len(s.ran[of]) > 0 {
		s.Violate("a call has run that never may", "%s: %s", of, why)
	}
	s.never[of] = why
}

// replied checks the reply to somebody who has asked for a call, or has answered it.
func (s *simulation) replied(a *asker, result messages.Result, err error) {
	f := isFailure(err)
	runs := s.ran[a.of]
	switch {
	case err != nil && f == nil:
		s.Violate("no failure", "%v", err)
	case err == nil && result == nil:
		s.Violate("no reply", "%s", a.name)
	case err == nil:
		a.got = "ok"
		s.check(len(runs) == 1, "a result of a call that has not run")
		s.check(reflect.DeepEqual(result.(*messages.ToolResult).Result, resultOf(a.of).Result), "the result of another call")
	case f.MayHaveRun:
		a.got = "lost"
		s.Crossed("a call is lost")
	default:
		a.got = "not run"
		s.check(len(runs) == 0 || !runs[0].Before(a.began), "a call has not run, it says, but it has")
		if a.does == allows || a.does == denies {
			s.neverRuns(a.of, "so it was said to "+a.name)
		}
		if f.Code == messages.CodeInvalid {
			s.Crossed("a call is refused for another one")
		}
	}
	s.Logf("%s: %s %v", a.name, a.got, err)
}

// close ends all that is left.
func (s *simulation) close() {
	s.end()
	for _, a := range s.askers {
		a.cancel()
		synctest.Wait()
	}
	time.Sleep(time.Minute)
	for _, b := range s.books {
		b.Close()
	}
}
