package registry

import (
	"runtime/debug"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// onUnheard notes that calls of a session wait although it has a connection, or wait no longer. Those that run
// count among them.
func (r *registry) onUnheard(msg *contract.Unheard) {
	if reg := table.Of(msg.Of); !reg.Removed() {
		reg.Unheard = msg.Cause
		r.table.Recount(reg)
	}
}

// tenantName returns the name of the tenant of a key, or "". It recovers from a panic of
// the function of the user: all keys for which it panics are one tenant.
func (r *registry) tenantName(key messages.Key) (name string) {
	defer func() {
		if reason := recover(); reason != nil {
			contract.About(r.cfg.Logger.Error(), key, 0).
				Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("function Tenant panicked")
			name = "?"
		}
	}()
	return r.cfg.Tenant(key)
}
