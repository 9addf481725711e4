package registry

import (
	"math/rand/v2"

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
