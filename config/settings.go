package config

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/supervisor"
)

// settings returns the fields of the object supervisor: store, roots, tenantSeparator, and
// each field of [supervisor.Config] that a file can express, which a test checks.
func (f *File) settings(roots *bool, separator *string) map[string]any {
	cfg := &f.Supervisor
	return map[string]any{
		"maxSessions": &cfg.MaxSessions, "maxInFlight": &cfg.MaxInFlight,
		"maxWaiting": &cfg.MaxWaiting, "maxWaitingTotal": &cfg.MaxWaitingTotal, "maxDials": &cfg.MaxDials, "bounds": &cfg.Bounds, "maxRepeats": &cfg.MaxRepeats, "maxStarts": &cfg.MaxStarts,
		"maxSessionsPerTenant": &cfg.MaxSessionsPerTenant, "tenantSeparator": separator,
		"idleTimeout": &cfg.IdleTimeout, "connectTimeout": &cfg.ConnectTimeout,
		"callTimeout": &cfg.CallTimeout, "drainTimeout": &cfg.DrainTimeout, "closeTimeout": &cfg.CloseTimeout,
		"backoffBase": &cfg.BackoffBase, "backoffMax": &cfg.BackoffMax,
		"budget": &cfg.Budget, "budgetHalfLife": &cfg.BudgetHalfLife, "coolDown": &cfg.CoolDown,
		"handlerTimeout": &cfg.HandlerTimeout, "handleGrace": &cfg.HandleGrace, "roots": roots, "store": &f.Store, "leaveOpen": &cfg.LeaveOpen, "failFast": &cfg.FailFast,
		"keepResults": &cfg.KeepResults, "maxKeptResult": &cfg.MaxKeptResult, "dropResults": &cfg.DropResults,
	}
}

// supervisor reads the object supervisor.
func (r *reader) supervisor(n *node) {
	var roots bool
	var separator string
	r.strict(n, r.file.settings(&roots, &separator))
	switch given := n.field("tenantSeparator"); {
	case separator != "":
		r.file.Supervisor.Tenant = supervisor.ScopePrefix(separator)
	case given != nil && given.kind == isText:
		r.fail(given, "is empty: give the text that ends the tenant in a scope, such as \"/\"")
	case n.field("maxSessionsPerTenant") != nil && given == nil:
		r.fail(n.field("maxSessionsPerTenant"), "needs tenantSeparator, which says where the tenant ends in a scope")
	}
	if roots {
		r.file.Supervisor.Capabilities = &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{ListChanged: true}}
	}
}
