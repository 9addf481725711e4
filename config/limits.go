package config

import (
	"strings"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// limits returns the fields of the object limits of a server, by their names in a file. It
// has each field of [mcpbridge.Limits], which a test checks.
func limits(l *mcpbridge.Limits) map[string]any {
	return map[string]any{
		"maxSessions": &l.MaxSessions, "maxInFlight": &l.MaxInFlight, "maxWaiting": &l.MaxWaiting, "maxDials": &l.MaxDials,
		"idleTimeout": &l.IdleTimeout, "connectTimeout": &l.ConnectTimeout, "callTimeout": &l.CallTimeout,
		"drainTimeout": &l.DrainTimeout, "closeTimeout": &l.CloseTimeout, "handlerTimeout": &l.HandlerTimeout,
		"bounds": &l.Bounds, "maxRepeats": &l.MaxRepeats,
	}
}

// limits reads the object limits of a server. The error of a value names its field and line.
func (r *reader) limits(n *node, l *mcpbridge.Limits) {
	before := len(r.errs)
	r.strict(n, limits(l))
	if err := l.Validate(); err != nil && len(r.errs) == before {
		name, text, _ := strings.Cut(err.Error(), ": ")
		r.fail(n.field(name), "%s", text)
	}
}

// bound reads one bound of calls.
func (r *reader) bound(n *node) (b mcpbridge.Bound) {
	before := len(r.errs)
	r.strict(n, map[string]any{"tool": &b.Tool, "shared": &b.Shared, "perMinute": &b.PerMinute, "total": &b.Total, "inFlight": &b.InFlight})
	if err := b.Validate(); err != nil && len(r.errs) == before {
		r.fail(n, "%w", err)
	}
	return b
}
