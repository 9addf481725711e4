// Package refusal says why the registry does not accept a call or a command, from what the table and the gate know. It
// changes nothing.
package refusal

import (
	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
)

// Refusal is what decides about calls and commands.
type Refusal struct {
	cfg      *contract.Config
	table    *table.Table
	sessions *admission.Quota // of all servers together
}

// New returns what decides about calls and commands by what the table has. The quota is that of all servers together.
func New(cfg *contract.Config, t *table.Table, all *admission.Quota) *Refusal {
	return &Refusal{cfg, t, all}
}

// stopping is the detail of what comes too late.
const stopping = "the supervisor is stopping"

// OwnerTerminated is the detail of the failure of a call whose owner has terminated.
const OwnerTerminated = "its owner has terminated"
