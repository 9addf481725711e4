package registry

import (
	"testing"

	"github.com/mcpactor/mcpactor/internal/schedule"
)

// Steps returns how many steps the schedule has.
func (s *simulation) Steps() int { return s.steps }

// Violated returns the kind of the violation, or "".
func (s *simulation) Violated() string { return s.kind }

// shrink returns the shortest schedule that it finds with the same kind of violation, with its log.
func shrink(t *testing.T, failed *simulation) *simulation {
	best := schedule.Shrink(failed, *simulationShrink, func(parts [][]int) *simulation { return simulate(t, replay(parts), 0, false) })
	return simulate(t, replay(best.Parts()), 0, true)
}
