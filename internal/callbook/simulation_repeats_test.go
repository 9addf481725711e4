//go:build !race

package callbook

import "testing"

// Not with the race detector, which has goroutines that wait for the same thing go on in any order.
func TestSimulationIsReproducible(t *testing.T) { schedules.TestRepeats(t, 20, 1, func(int) {}) }
