package node

import (
	"runtime"
	"testing"

	"github.com/mcpactor/mcpactor/internal/schedule"
)

var schedules = schedule.Simulation{Test: "go -C cluster test ./internal/node", Seeds: 200, Simulate: simulate, Many: 2000, Crossings: []string{
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
}}

// Schedules of a cluster whose every choice comes from a seed.
func TestSimulation(t *testing.T) { schedules.TestSeeds(t) }

// Each file has the choices of a schedule in which something did not hold.
func TestSimulationReplaysTapes(t *testing.T) { schedules.TestTapes(t) }

// The same seed is the same schedule, and so are its choices, whatever else the machine does.
func TestSimulationIsReproducible(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	processors := []int{1, 2, 8}
	schedules.TestRepeats(t, 5, len(processors), func(time int) { runtime.GOMAXPROCS(processors[time]) })
}
