// Package dialing carries out what the gate decides: which sessions dial, and which are evicted. It tells the gate what becomes
// of them, and decides about their faults.
package dialing

import (
	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/lists"
	"github.com/mcpactor/mcpactor/actors/internal/reports"
	"github.com/mcpactor/mcpactor/actors/internal/table"
)

// Dialing is used by the actor of the registry only.
type Dialing struct {
	With
	controls map[*contract.ControlWanted]*admission.Control // that have not ended
	gateDue  alarm.Entry[func()]                            // when the gate has something to do
	idleDue  alarm.Entry[func()]                            // when the idle timeout of a session may be over
}

// With is what dialing needs.
type With struct {
	Cfg     *contract.Config
	Table   *table.Table
	Gate    *admission.Gate
	Lists   *lists.Lists
	Reports *reports.Reports
	Alarm   *alarm.Alarm[func()]
	Jobs    *jobs.Jobs
	Do      Do
}

// Do is what the registry does for dialing.
type Do struct {
	Evict func(reg *table.Registration) // drains a session to free its slot
}

// minKeysWithoutSlot is how many sessions without a slot are kept in any case.
const minKeysWithoutSlot = 1024

// NewGate returns the gate that a configuration wants.
func NewGate(cfg *contract.Config) *admission.Gate {
	return admission.New(admission.Config{
		MaxSessions: cfg.MaxSessions, MaxStarts: cfg.MaxStarts,
		MaxWithoutSlot: max(cfg.MaxSessions, minKeysWithoutSlot), FailFast: cfg.FailFast, Random: cfg.Random,
	})
}

// Controls returns how many controls have not ended.
func (d *Dialing) Controls() int { return len(d.controls) }
