package registry

import (
	"testing"

	"github.com/mcpactor/mcpactor/internal/schedule"
	"github.com/mcpactor/mcpactor/messages"
)

var schedules = schedule.Simulation{Test: "go test ./actors/registry", Seeds: 300, Simulate: simulate, Many: 5000, Crossings: []string{
	"a dial was abandoned", "an order to abandon a dial came too late", "a drain during a dial", "the session of a dial that was given up was ended",
	"a session was granted a dial as it became idle",
	"a probe was abandoned", "calls were handed back", "calls have waited too long", "a call was replayed", "a fault of a session that drains",
	"a session was unheard", "an interceptor was too slow", "interceptors were too slow for the stop", "a reload with sessions that are queued", "a second session was opened",
	"a second session of a session that drains", "a second session was adopted", "a list was shared", "user code has stopped an actor",
	"a process was killed", "a session of another process was resumed", "a scope has moved", "a supervisor was stopped, and another one started",
	"a call was handed to another process", "a process has left before a call that it had handed to another one", "a session was given up", "a bug in a session", "a question reached its handler",
	"a session was evicted: " + string(messages.EvictCap), "a session was evicted: " + string(messages.EvictServerCap),
	"a session was evicted: " + string(messages.EvictTenantQuota), "a session was evicted: " + string(messages.EvictIdle),
}}

// Guarantees 1, 2, 3, 4, 5, 7, 8 and 11, in schedules whose every choice comes from a seed.
func TestSimulation(t *testing.T) { schedules.TestSeeds(t) }

// Each file has the choices of a schedule in which something did not hold.
func TestSimulationReplaysTapes(t *testing.T) { schedules.TestTapes(t) }

// The same seed is the same schedule, and so are its choices.
func TestSimulationIsReproducible(t *testing.T) { schedules.TestRepeats(t, 10, 1, func(int) {}) }
