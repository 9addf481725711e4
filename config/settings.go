package config

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// settings returns the fields of the object supervisor: store, roots, and each field of
// [supervisor.Config] that a file can express, which a test checks.
func (f *File) settings(roots *bool) map[string]any {
	cfg := &f.Supervisor
	return map[string]any{
		"maxSessions": &cfg.MaxSessions, "maxInFlight": &cfg.MaxInFlight,
		"maxWaiting": &cfg.MaxWaiting, "maxWaitingTotal": &cfg.MaxWaitingTotal, "maxDials": &cfg.MaxDials,
		"idleTimeout": &cfg.IdleTimeout, "connectTimeout": &cfg.ConnectTimeout,
		"callTimeout": &cfg.CallTimeout, "drainTimeout": &cfg.DrainTimeout, "closeTimeout": &cfg.CloseTimeout,
		"backoffBase": &cfg.BackoffBase, "backoffMax": &cfg.BackoffMax,
		"budget": &cfg.Budget, "budgetHalfLife": &cfg.BudgetHalfLife, "coolDown": &cfg.CoolDown,
		"handlerTimeout": &cfg.HandlerTimeout, "roots": roots, "store": &f.Store, "leaveOpen": &cfg.LeaveOpen, "failFast": &cfg.FailFast,
	}
}

// supervisor reads the object supervisor.
func (r *reader) supervisor(n *node) {
	var roots bool
	r.strict(n, r.file.settings(&roots))
	if roots {
		r.file.Supervisor.Capabilities = &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{ListChanged: true}}
	}
}
