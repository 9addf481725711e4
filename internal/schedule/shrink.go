package schedule

import (
	"slices"
	"time"
)

// Run is what came of a schedule.
type Run interface {
	// Parts returns the choices that were made, by part.
	Parts() [][]int
	// Steps returns how many steps there were.
	Steps() int
	// Violated returns the kind of what did not hold, or "".
	Violated() string
}

// Shrink returns the shortest schedule that it finds with the same kind of violation: without whole actions, the
// longest runs of them first, and then with simpler choices within the parts that are left. run replays choices. It takes
// at most a time.
func Shrink[R Run](failed R, most time.Duration, run func(parts [][]int) R) R {
	s := shrinking[R]{best: failed, run: run, kind: failed.Violated(), end: time.Now().Add(most)}
	for changed := true; changed && time.Now().Before(s.end); {
		changed = s.dropActions()
		for at := 0; at < len(s.best.Parts()); at++ {
			changed = s.simplify(at) || changed
		}
	}
	return s.best
}

// shrinking is a schedule that is being shortened.
type shrinking[R Run] struct {
	best R
	run  func([][]int) R
	kind string
	end  time.Time
}

// try replays choices, which become the best ones if they are simpler and fail in the same way.
func (s *shrinking[R]) try(parts [][]int) bool {
	if time.Now().After(s.end) {
		return false
	}
	r := s.run(parts)
	if r.Violated() != s.kind || !simpler(r, s.best) {
		return false
	}
	s.best = r
	return true
}

// dropActions tries without whole actions.
func (s *shrinking[R]) dropActions() (changed bool) {
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
func (s *shrinking[R]) simplify(at int) (changed bool) {
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
func simpler(one, other Run) bool {
	if len(one.Parts()) != len(other.Parts()) {
		return len(one.Parts()) < len(other.Parts())
	}
	if one.Steps() != other.Steps() {
		return one.Steps() < other.Steps()
	}
	return slices.CompareFunc(one.Parts(), other.Parts(), slices.Compare) < 0
}
