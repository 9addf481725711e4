package registry

import (
	"slices"
	"testing"
	"time"
)

// shrink returns the shortest schedule that it finds with the same kind of violation: without whole actions, the
// longest runs of them first, and then with simpler choices within the parts that are left.
func shrink(t *testing.T, failed *simulation) *simulation {
	best, end := failed, time.Now().Add(*simulationShrink)
	try := func(parts [][]int) bool {
		if time.Now().After(end) {
			return false
		}
		s := simulate(t, replay(parts), 0, false)
		if s.kind != failed.kind || !simpler(s, best) {
			return false
		}
		best = s
		return true
	}
	for changed := true; changed && time.Now().Before(end); {
		changed = false
		for size := max(1, (len(best.parts)-2)/2); size > 0; size /= 2 {
			for at := 1; at+size < len(best.parts); {
				if try(slices.Delete(slices.Clone(best.parts), at, at+size)) {
					changed = true
				} else {
					at += size
				}
			}
		}
		for at := range len(best.parts) {
			if at >= len(best.parts) {
				break
			}
			changed = shrinkPart(best, at, try) || changed
		}
	}
	return simulate(t, replay(best.parts), 0, true)
}

// shrinkPart tries simpler choices within one part.
func shrinkPart(of *simulation, at int, try func([][]int) bool) (changed bool) {
	part := of.parts[at]
	with := func(choices []int) [][]int {
		parts := slices.Clone(of.parts)
		parts[at] = choices
		return parts
	}
	for size := len(part); size > 0; size /= 2 {
		for from := 0; from+size <= len(part); from += size {
			choices := slices.Clone(part)
			clear(choices[from : from+size])
			if !slices.Equal(choices, part) && try(with(choices)) {
				part, changed = choices, true
			}
		}
	}
	return changed
}

// simpler reports whether a schedule is simpler than another one.
func simpler(one, other *simulation) bool {
	if len(one.parts) != len(other.parts) {
		return len(one.parts) < len(other.parts)
	}
	if one.steps != other.steps {
		return one.steps < other.steps
	}
	return slices.CompareFunc(one.parts, other.parts, slices.Compare) < 0
}
