package node

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
	simulationSeeds   = flag.Int("simulation.seeds", 200, "the number of seeds")
	simulationTime    = flag.Duration("simulation.time", 0, "run fresh schedules for so long, in place of a number of seeds")
	simulationActions = flag.Int("simulation.actions", 60, "the actions of each schedule")
	simulationVerbose = flag.Bool("simulation.v", false, "print the log of the first schedule, or of a tape")
	simulationWanted  = flag.Bool("simulation.crossings", true, "a long run that misses a crossing fails")
	simulationShrink  = flag.Duration("simulation.shrink", 20*time.Second, "how long a schedule that fails is shortened for")
	simulationTape    = flag.String("simulation.tape", "testdata/simulation/*.tape", "the tapes to replay")
)

// manyCrossings is how many schedules meet all crossings that matter.
const manyCrossings = 2000

// wantedCrossings are the crossings that matter.
var wantedCrossings = []string{
	"a call comes to a member that does not own its key",
	"a call is cancelled on its way",
	"a call is sent to a second member",
	"a call runs again on another member",
	"a call waits for a shard to be ceded",
	"a member is fenced while it dials",
	"a member is fenced with calls that wait",
	"a member joins again",
	"a shard is released",
	"a shard moves while a call runs",
	"a supervisor hands a call back",
}

// Schedules of a cluster whose every choice comes from a seed.
func TestSimulation(t *testing.T) {
	seed, seeds := *simulationSeed, *simulationSeeds
	if seed == 0 {
		seed = rand.Uint64() >> 16
	}
	if *simulationTime > 0 {
		seeds = 1 << 30
	}
	began, steps, n, crossings := time.Now(), 0, 0, map[string]int{}
	for ; n < seeds && (*simulationTime == 0 || time.Since(began) < *simulationTime); n++ {
		s := simulate(t, schedule.Record(seed+uint64(n)), *simulationActions, *simulationVerbose)
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
	files, err := filepath.Glob(*simulationTape)
	require.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			parts, err := schedule.Read(file)
			require.NoError(t, err)
			s := simulate(t, schedule.Replay(parts), 0, *simulationVerbose)
			if *simulationVerbose {
				t.Log("\n" + strings.Join(s.log, "\n"))
			}
			require.Empty(t, s.violation)
		})
	}
}

// The same seed is the same schedule, and so are its choices, whatever else the machine does.
func TestSimulationIsReproducible(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for seed := range uint64(5) {
		first := simulate(t, schedule.Record(*simulationSeed+seed), *simulationActions, true)
		for _, processors := range []int{1, 2, 8} {
			runtime.GOMAXPROCS(processors)
			require.Equal(t, first.log, simulate(t, schedule.Record(*simulationSeed+seed), *simulationActions, true).log, "seed %d", *simulationSeed+seed)
			require.Equal(t, first.log, simulate(t, schedule.Replay(first.Parts()), 0, true).log, "the choices of seed %d", *simulationSeed+seed)
		}
	}
}

// reported shortens a schedule that has failed, writes it to testdata/simulation, and says how it is run again.
func reported(t *testing.T, seed uint64, s *simulation) string {
	if *simulationShrink == 0 {
		return s.violation
	}
	replay := func(keep bool) func([][]int) *simulation {
		return func(parts [][]int) *simulation { return simulate(t, schedule.Replay(parts), 0, keep) }
	}
	shortest := replay(true)(schedule.Shrink(s, *simulationShrink, replay(false)).Parts())
	file := filepath.Join("testdata", "simulation", fmt.Sprintf("%d.tape", seed))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, schedule.Write(file, shortest.Parts(), fmt.Sprintf("seed %d: %s", seed, shortest.violation)))
	return fmt.Sprintf("%s\nshortened from %d actions and %d steps to %d and %d, as %s:\n%s\nrun it again: go test ./internal/node -run TestSimulationReplaysTapes/%s -v -simulation.v",
		s.violation, len(s.Parts())-2, s.steps, len(shortest.Parts())-2, shortest.steps, file, strings.Join(shortest.log, "\n"), filepath.Base(file))
}
