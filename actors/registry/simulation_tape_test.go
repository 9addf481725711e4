package registry

import (
	"math/rand/v2"
	"testing"

	"github.com/mcpactor/mcpactor/internal/schedule"
)

// tape has all choices of a schedule.
type tape struct{ *schedule.Tape }

func record(seed uint64) *tape   { return &tape{schedule.Record(seed)} }
func replay(given [][]int) *tape { return &tape{schedule.Replay(given)} }

func (t *tape) part()                                          { t.Part() }
func (t *tape) n(n int) int                                    { return t.N(n) }
func (t *tape) rarely(n, in int) int                           { return t.Rarely(n, in) }
func (t *tape) weighted(weights []int) int                     { return t.Weighted(weights) }
func (t *tape) choose(n int, propose func(*rand.Rand) int) int { return t.Choose(n, propose) }

// Steps returns how many steps the schedule has.
func (s *simulation) Steps() int { return s.steps }

// Violated returns the kind of the violation, or "".
func (s *simulation) Violated() string { return s.kind }

// shrink returns the shortest schedule that it finds with the same kind of violation, with its log.
func shrink(t *testing.T, failed *simulation) *simulation {
	best := schedule.Shrink(failed, *simulationShrink, func(parts [][]int) *simulation { return simulate(t, replay(parts), 0, false) })
	return simulate(t, replay(best.Parts()), 0, true)
}
