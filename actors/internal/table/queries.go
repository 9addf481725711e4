package table

import (
	"iter"
	"slices"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Limits returns the limits of a server, or the common ones if no server of that name is configured.
func (t *Table) Limits(server string) *mcpbridge.Limits {
	if srv := t.Servers[server]; srv != nil {
		return srv.Resolved
	}
	return t.Common
}

// TenantOf returns the tenant of a key if it has sessions, or nil. reg is the session of
// the key, or nil.
func (t *Table) TenantOf(key messages.Key, reg *Registration) *Tenant {
	if reg != nil {
		return reg.tenant
	}
	return t.Tenants.Of(key)
}

// CountRejected counts a call that was rejected, if its server is configured.
func (t *Table) CountRejected(server string, code messages.Code) {
	if t.Servers[server] != nil {
		t.group(server).load.Count(code)
	}
}

// CountBounded counts a call beyond the bounds of a configured server, which is also rejected.
func (t *Table) CountBounded(server string) { t.group(server).load.Bounded++ }

// OfScope returns the sessions of a scope, by server: of each key those that drain, and the current one.
func (t *Table) OfScope(scope string) (all []*Registration) {
	for _, server := range t.names {
		if e := t.entries[messages.Key{Server: server, Scope: scope}]; e != nil {
			if all = append(all, e.Draining...); e.Current != nil {
				all = append(all, e.Current)
			}
		}
	}
	return all
}

// Filter is what sessions are selected by. Empty fields select all.
type Filter struct {
	Server, Scope string
	State         messages.State
}

// Matching returns the sessions that a filter selects, and their number by state. They are
// ordered by state, and within a state by the name of the server, unless they have one scope.
func (t *Table) Matching(f Filter) (counts map[messages.State]int, all iter.Seq[*Registration]) {
	if f.Scope == "" {
		return t.matching(f.Server, f.State)
	}
	counts = map[messages.State]int{}
	var found []*Registration
	for _, reg := range t.OfScope((messages.Key{Scope: f.Scope}).Normal().Scope) {
		if (f.Server == "" || reg.Key.Server == f.Server) && (f.State == "" || reg.State() == f.State) {
			counts[reg.State()]++
			found = append(found, reg)
		}
	}
	return counts, slices.Values(found)
}
