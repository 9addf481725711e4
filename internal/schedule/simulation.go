package schedule

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	firstSeed = flag.Uint64("simulation.seed", 1, "the first seed; 0 is a fresh one")
	seeds     = flag.Int("simulation.seeds", 0, "the number of seeds; 0 is some hundred")
	during    = flag.Duration("simulation.time", 0, "run schedules for so long, in place of a number of seeds")
	actions   = flag.Int("simulation.actions", 60, "the actions of each schedule")
	verbose   = flag.Bool("simulation.v", false, "print the log of each schedule")
	wanted    = flag.Bool("simulation.crossings", true, "a long run that misses a crossing fails")
	shrinking = flag.Duration("simulation.shrink", 20*time.Second, "how long a schedule that fails is shortened for")
	tapes     = flag.String("simulation.tape", "testdata/simulation/*.tape", "the tapes to replay")
)

// Simulation runs the schedules of a package.
type Simulation struct {
	Test      string   // the command that runs its tests, in the folder of the root module
	Seeds     int      // how many seeds run by default
	Crossings []string // what many schedules must have met
	Many      int      // how many schedules meet all of that
	// Simulate runs a schedule with some actions, or with those of a tape that is replayed.
	Simulate func(t *testing.T, choices *Tape, actions int, keep bool) *Run
}

// TestSeeds runs schedules from a seed, up to the first that fails.
func (s *Simulation) TestSeeds(t *testing.T) {
	first, most, steps, met := *firstSeed, *seeds, 0, map[string]int{}
	if first == 0 {
		first = rand.Uint64() >> 16
	}
	switch {
	case *during > 0:
		most = 1 << 40
	case most == 0 && underRace:
		most = s.Seeds / 5
	case most == 0:
		most = s.Seeds
	}
	began, n := time.Now(), 0
	for ; n < most && (*during == 0 || time.Since(began) < *during); n++ {
		seed := first + uint64(n)
		r := s.Simulate(t, Record(seed), *actions, *verbose)
		steps += r.Steps
		for what, count := range r.crossings {
			met[what] += count
		}
		if *verbose {
			t.Log("\n" + strings.Join(r.log, "\n"))
		}
		if !r.Intact() {
			t.Fatalf("seed %d, after %v: %s", seed, time.Since(began).Round(time.Millisecond), s.report(t, seed, r))
		}
	}
	elapsed := time.Since(began)
	t.Logf("%d schedules from seed %d, %d steps in %v: %.0f schedules/s, %.0f steps/s", n, first, steps, elapsed.Round(time.Millisecond),
		float64(n)/elapsed.Seconds(), float64(steps)/elapsed.Seconds())
	for _, what := range slices.Sorted(maps.Keys(met)) {
		t.Logf("%8d %s", met[what], what)
	}
	for _, what := range s.Crossings {
		if n >= s.Many && *wanted && met[what] == 0 {
			t.Errorf("it never happened: %s", what)
		}
	}
}

// TestTapes replays files, each with the choices of a schedule in which something did not hold.
func (s *Simulation) TestTapes(t *testing.T) {
	files, err := filepath.Glob(*tapes)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			parts, err := Read(file)
			if err != nil {
				t.Fatal(err)
			}
			r := s.Simulate(t, Replay(parts), 0, *verbose)
			if *verbose {
				t.Log("\n" + strings.Join(r.log, "\n"))
			}
			if !r.Intact() {
				t.Error(r.violation)
			}
		})
	}
}

// TestRepeats checks that some seeds are the same schedules again, and so are their choices. prepare is called before each
// repetition, and says whether there is another one.
func (s *Simulation) TestRepeats(t *testing.T, some int, times int, prepare func(time int)) {
	for seed := *firstSeed; seed < *firstSeed+uint64(some); seed++ {
		first := s.Simulate(t, Record(seed), *actions, true)
		for n := range times {
			prepare(n)
			if again := s.Simulate(t, Record(seed), *actions, true); !slices.Equal(first.log, again.log) {
				t.Errorf("seed %d is another schedule: %s", seed, difference(first.log, again.log))
			}
			if again := s.Simulate(t, Replay(first.Parts()), 0, true); !slices.Equal(first.log, again.log) {
				t.Errorf("the choices of seed %d are another schedule: %s", seed, difference(first.log, again.log))
			}
		}
	}
}

// difference returns the first lines in which two logs differ.
func difference(one, other []string) string {
	for i := range min(len(one), len(other)) {
		if one[i] != other[i] {
			return fmt.Sprintf("%q, and %q", one[i], other[i])
		}
	}
	return fmt.Sprintf("%d lines, and %d", len(one), len(other))
}

// report shortens a schedule that has failed, writes it to testdata/simulation, and says how it is run again.
func (s *Simulation) report(t *testing.T, seed uint64, failed *Run) string {
	if *shrinking == 0 {
		return failed.violation
	}
	shortest := Shrink(failed, *shrinking, func(parts [][]int) *Run { return s.Simulate(t, Replay(parts), 0, false) })
	shortest = s.Simulate(t, Replay(shortest.Parts()), 0, true)
	file := filepath.Join("testdata", "simulation", fmt.Sprintf("%d.tape", seed))
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = Write(file, shortest.Parts(), fmt.Sprintf("seed %d: %s", seed, shortest.violation))
	}
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprintf("%s\nshortened from %d actions and %d steps to %d and %d, as %s:\n%s\nrun it again: %s -run 'TestSimulationReplaysTapes/^%s' -v -simulation.v\n"+
		"or, without this file: %s -run 'TestSimulation$' -simulation.seed %d -simulation.seeds 1 -simulation.actions %d",
		failed.violation, len(failed.Parts())-2, failed.Steps, len(shortest.Parts())-2, shortest.Steps, file, strings.Join(shortest.log, "\n"), s.Test, filepath.Base(file), s.Test, seed, *actions)
}
