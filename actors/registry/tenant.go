package registry

import (
	"runtime/debug"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// tenantOf returns the function that names the tenant of a key, or nil without tenants. It recovers from a panic of the
// function of the user: all keys for which that panics are one tenant.
func tenantOf(cfg *contract.Config) func(messages.Key) string {
	if cfg.Tenant == nil {
		return nil
	}
	return func(key messages.Key) (name string) {
		defer func() {
			if reason := recover(); reason != nil {
				contract.About(cfg.Logger.Error(), key, 0).
					Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("function Tenant panicked")
				name = "?"
			}
		}()
		return cfg.Tenant(key)
	}
}
