package schedule

import (
	"slices"
	"time"
)

// Shrink returns the shortest schedule that it finds with the same kind of violation: without whole actions, the
// longest runs of them first, and then with simpler choices within the parts that are left. run replays choices. It takes
// at most a time.
func Shrink(failed *Run, most time.Duration, run func(parts [][]int) *Run) *Run {
	s := search{best: failed, run: run, end: time.Now().Add(most)}
	for changed := true; changed && time.Now().Before(s.end); {
		changed = s.dropActions()
		for at := 0; at < len(s.best.Parts()); at++ {
			changed = s.simplify(at) || changed
		}
	}
	return s.best
}

// search is a schedule that is being shortened.
type search struct {
	best *Run
	run  func([][]int) *Run
	end  time.Time
}

// try replays choices, which become the best ones if they are simpler and fail in the same way.
func (s *search) try(parts [][]int) bool {
	if time.Now().After(s.end) {
		return false
	}
	r := s.run(parts)
	if r.kind != s.best.kind || !simpler(r, s.best) {
		return false
	}
	s.best = r
	return true
}

// dropActions tries without whole actions.
func (s *search) dropActions() (changed bool) {
	for size := max(1, (len(s.best.Parts())-2)/2); size > 0; size /= 2 {
		for at := 1; at+size < len(s.best.Parts()); {
			if s.try(slices.Delete(slices.Clone(s.best.Parts()), at, at+size)) {
				changed = true
			} else {
				at += size
			}
		}
	}
	return changed
}

// simplify tries simpler choices within one part.
func (s *search) simplify(at int) (changed bool) {
	of := s.best.Parts()
	part := of[at]
	for size := len(part); size > 0; size /= 2 {
		for from := 0; from+size <= len(part); from += size {
			choices := slices.Clone(part)
			clear(choices[from : from+size])
			parts := slices.Clone(of)
			parts[at] = choices
			if !slices.Equal(choices, part) && s.try(parts) {
				part, changed = choices, true
			}
		}
	}
	return changed
}

// simpler reports whether a schedule is simpler than another one.
func simpler(one, other *Run) bool {
	if len(one.Parts()) != len(other.Parts()) {
		return len(one.Parts()) < len(other.Parts())
	}
	if one.Steps != other.Steps {
		return one.Steps < other.Steps
	}
	return slices.CompareFunc(one.Parts(), other.Parts(), slices.Compare) < 0
}
