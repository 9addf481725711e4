// Package dialing carries out what the gate decides: which sessions dial, and which are evicted. It tells the gate what becomes
// of them, and of their faults.
package dialing

import (
	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/reports"
	"github.com/mcpactor/mcpactor/actors/internal/sessions"
	"github.com/mcpactor/mcpactor/actors/internal/table"
)

// Dialing is used by the actor of the registry only.
type Dialing struct {
	With
	gateDue alarm.Entry[func()] // when the gate has something to do
	idleDue alarm.Entry[func()] // when the idle timeout of a session may be over
}

// With is what dialing needs.
type With struct {
	Cfg      *contract.Config
	Table    *table.Table
	Gate     *admission.Gate
	Sessions *sessions.Sessions
	Reports  *reports.Reports
	Alarm    *alarm.Alarm[func()]
	Jobs     *jobs.Jobs
}
