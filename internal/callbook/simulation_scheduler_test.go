package callbook

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/mcpactor/mcpactor/internal/schedule"
)

// scheduler lets one goroutine run at a time: all others wait for their turns, wherever they would wait for the world. It runs in the
// goroutine of the test, and lets time pass.
type scheduler struct {
	*schedule.Run
	hurries bool          // nothing is slow any more
	ended   bool          // nothing waits any more, and whoever comes to wait is turned away
	arrived chan struct{} // has an element when a goroutine has come to wait

	mu    sync.Mutex
	fresh []*turning // that have come since the last step

	waiting []*turning // the others, the oldest first
}

// turning is a goroutine that waits for its turn.
type turning struct {
	label     string
	in        *process // nil is outside of all processes
	isRequest bool     // to the store, which may get it after the process has died
	isSlow    bool     // others have their turns first, up to a time
	by        time.Time
	chosen    chan struct{}
}

// wait waits for a turn, for a time at most. It reports false if the process has died, or the schedule is over.
func (s *scheduler) wait(in *process, most time.Duration, label string) bool {
	return s.waitAs(in, most, label, false)
}

func (s *scheduler) waitAs(in *process, most time.Duration, label string, isRequest bool) bool {
	t := &turning{label: label, in: in, isRequest: isRequest, by: time.Now().Add(most), chosen: make(chan struct{})}
	s.mu.Lock()
	ended := s.ended
	if !ended {
		s.fresh = append(s.fresh, t)
	}
	s.mu.Unlock()
	if ended {
		return false
	}
	select {
	case s.arrived <- struct{}{}:
	default:
	}
	<-t.chosen
	return !s.ended && !t.in.isDead()
}

// rest waits until no goroutine runs, and takes up those that have come to wait.
func (s *scheduler) rest() {
	synctest.Wait()
	s.mu.Lock()
	fresh := s.fresh
	s.fresh = nil
	s.mu.Unlock()
	slices.SortStableFunc(fresh, func(a, b *turning) int { return cmp.Compare(a.label, b.label) })
	for _, t := range fresh {
		t.isSlow = !s.ended && s.Rarely(2, 8) == 1
	}
	s.waiting = append(s.waiting, fresh...)
}

// maxSteps bounds a schedule: one without end is not in time.
const maxSteps = 20_000

// step lets one of the goroutines run. It reports whether there was one.
func (s *scheduler) step() bool {
	s.rest()
	ready := slices.DeleteFunc(slices.Clone(s.waiting), func(t *turning) bool { return t.in.isDead() || t.isSlow && !s.hurries })
	if len(ready) == 0 || s.Steps > maxSteps {
		return false
	}
	s.let(ready[s.Choose(len(ready), func(r *rand.Rand) int {
		if r.IntN(3) == 0 {
			return 0
		}
		return r.IntN(len(ready))
	})])
	return true
}

// let lets a goroutine run.
func (s *scheduler) let(t *turning) {
	s.Steps++
	s.Logf("%s", t.label)
	s.waiting = slices.DeleteFunc(s.waiting, func(other *turning) bool { return other == t })
	close(t.chosen)
	synctest.Wait()
}

// pass lets time pass. What waits for its turn is late then, but not later than it may be.
func (s *scheduler) pass(d time.Duration) {
	for until := time.Now().Add(d); ; {
		s.rest()
		next := until
		var due *turning
		for _, t := range s.waiting {
			if !t.in.isDead() && t.by.Before(next) {
				due, next = t, t.by
			}
		}
		switch left := time.Until(next); {
		case left > 0:
			s.sleep(left)
		case due == nil:
			return
		default:
			s.let(due)
		}
	}
}

// sleep lets time pass until something comes to wait.
func (s *scheduler) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.arrived:
	}
}

// settle lets all go on until nothing waits, for a time at most. It reports whether that is so.
func (s *scheduler) settle(most time.Duration, isOver func() bool) bool {
	for until := time.Now().Add(most); s.Steps <= maxSteps; {
		for s.step() {
		}
		if isOver() {
			return true
		}
		if time.Now().After(until) {
			return false
		}
		time.Sleep(250 * time.Millisecond)
	}
	return false
}

// end turns away all that waits.
func (s *scheduler) end() {
	s.rest()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	for _, t := range s.waiting { // one after the other
		close(t.chosen)
		synctest.Wait()
	}
	s.waiting = nil
}

// isOver reports whether nothing of a process goes on.
func (s *scheduler) isOver(p *process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended || p.isDead()
}
