// Package refusal says why the registry does not accept a call or a command, from what the table and the gate know. It
// changes nothing.
package refusal

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/table"
)

// Refusal is what decides about calls and commands.
type Refusal struct {
	Table           *table.Table
	Sessions        *admission.Quota // of all servers together
	FailFast        bool             // calls do not wait for a server that is down
	MaxWaitingTotal int
	Gone            func(*actor.PID) bool // reports whether an owner is known to have terminated
}

// stopping is the detail of what comes too late.
const stopping = "the supervisor is stopping"

// OwnerTerminated is the detail of the failure of a call whose owner has terminated.
const OwnerTerminated = "its owner has terminated"
