package registry

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/schedule"
)

var (
	simulationSeed    = flag.Uint64("simulation.seed", 1, "the first seed; 0 is a fresh one")
	simulationSeeds   = flag.Int("simulation.seeds", 300, "the number of seeds")
	simulationTime    = flag.Duration("simulation.time", 0, "run fresh schedules for so long, in place of a number of seeds")
	simulationActions = flag.Int("simulation.actions", 60, "the actions of each schedule")
	simulationVerbose = flag.Bool("simulation.v", false, "print the log of the first schedule, or of a tape")
	simulationWanted  = flag.Bool("simulation.crossings", true, "a long run that misses a crossing fails")
	simulationShrink  = flag.Duration("simulation.shrink", 20*time.Second, "how long a schedule that fails is shortened for")
	simulationTape    = flag.String("simulation.tape", "testdata/simulation/*.tape", "the tapes to replay")
)

// manyCrossings is how many schedules meet all crossings that matter.
const manyCrossings = 5000

// Guarantees 1, 2, 3, 4, 5, 7, 8 and 11, in schedules whose every choice comes from a seed.
func TestSimulation(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one goroutine runs at a time, and MaxStarts depends on it
	seed, seeds := *simulationSeed, *simulationSeeds
	if seed == 0 {
		seed = rand.Uint64() >> 16
	}
	if *simulationTime > 0 {
		seeds = 1 << 30
	}
	began, steps, n, crossings := time.Now(), 0, 0, map[string]int{}
	for ; n < seeds && (*simulationTime == 0 || time.Since(began) < *simulationTime); n++ {
		s := simulate(t, record(seed+uint64(n)), *simulationActions, *simulationVerbose)
		steps += s.steps
		for what, count := range s.crossings {
			crossings[what] += count
		}
		if *simulationVerbose {
			t.Log("\n" + strings.Join(s.log, "\n"))
		}
		if !s.intact() {
			t.Fatalf("seed %d, after %v: %s", seed+uint64(n), time.Since(began).Round(time.Millisecond), reported(t, seed+uint64(n), s))
		}
	}
	elapsed := time.Since(began)
	t.Logf("%d schedules from seed %d, %d steps in %v: %.0f schedules/s, %.0f steps/s", n, seed, steps, elapsed.Round(time.Millisecond),
		float64(n)/elapsed.Seconds(), float64(steps)/elapsed.Seconds())
	for _, what := range slices.Sorted(maps.Keys(crossings)) {
		t.Logf("%7d %s", crossings[what], what)
	}
	if n >= manyCrossings && *simulationWanted {
		for _, what := range wantedCrossings {
			require.NotZero(t, crossings[what], "it never happened: %s", what)
		}
	}
}

// Each file has the choices of a schedule in which something did not hold.
func TestSimulationReplaysTapes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	files, err := filepath.Glob(*simulationTape)
	require.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			parts, err := schedule.Read(file)
			require.NoError(t, err)
			s := simulate(t, replay(parts), 0, *simulationVerbose)
			if *simulationVerbose {
				t.Log("\n" + strings.Join(s.log, "\n"))
			}
			require.Empty(t, s.violation)
		})
	}
}

// The same seed is the same schedule, and so are its choices.
func TestSimulationIsReproducible(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for seed := range uint64(10) {
		first := simulate(t, record(*simulationSeed+seed), *simulationActions, true)
		require.Equal(t, first.log, simulate(t, record(*simulationSeed+seed), *simulationActions, true).log, "seed %d", *simulationSeed+seed)
		require.Equal(t, first.log, simulate(t, replay(first.Parts()), 0, true).log, "the choices of seed %d", *simulationSeed+seed)
	}
}

// reported shortens a schedule that has failed, writes it to testdata/simulation, and says how it is run again.
func reported(t *testing.T, seed uint64, s *simulation) string {
	if *simulationShrink == 0 {
		return s.violation
	}
	shortest := shrink(t, s)
	file := filepath.Join("testdata", "simulation", fmt.Sprintf("%d.tape", seed))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, schedule.Write(file, shortest.Parts(), fmt.Sprintf("seed %d: %s", seed, shortest.violation)))
	return fmt.Sprintf("%s\nshortened from %d actions and %d steps to %d and %d, as %s:\n%s\nrun it again: go test ./actors/registry -run TestSimulationReplaysTapes/%s -v -simulation.v\n"+
		"or, without this file: go test ./actors/registry -run TestSimulation$ -simulation.seed %d -simulation.seeds 1",
		s.violation, len(s.Parts())-2, s.steps, len(shortest.Parts())-2, shortest.steps, file, strings.Join(shortest.log, "\n"), filepath.Base(file), seed)
}
