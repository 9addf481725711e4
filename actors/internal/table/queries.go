package table

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/internal/nearest"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// TenantOf returns the tenant of a key if it has sessions, or nil. reg is the session of
// the key, or nil.
func (t *Table) TenantOf(key messages.Key, reg *Registration) *Tenant {
	switch {
	case reg != nil:
		return reg.tenant
	case t.cfg.Tenant == nil || len(t.tenants) == 0:
		return nil
	}
	return t.tenants[t.cfg.Tenant(key)]
}

// Tenants returns the tenants that have sessions, by name, in no order.
func (t *Table) Tenants() iter.Seq2[string, *Tenant] { return maps.All(t.tenants) }

// CountRejected counts a call that was rejected, if its server is configured.
func (t *Table) CountRejected(server string, code messages.Code) {
	if t.Servers[server] != nil {
		t.group(server).load.Count(code)
	}
}

// Describe adds the load of a server, and the number of its sessions by state, to its snapshot.
func (t *Table) Describe(srv *messages.ServerSnapshot) {
	g := t.groups[srv.Name]
	if g == nil {
		return
	}
	srv.Load = g.load.Snapshot()
	for at, state := range protocol.States {
		if n := g.states.Len(admission.Rank(at)); n > 0 {
			if srv.States == nil {
				srv.States = map[messages.State]int{}
			}
			srv.States[state] = n
			srv.Sessions += n
		}
	}
}

// NoServer says that no server of a name is configured, and which one may be meant.
func (t *Table) NoServer(name string) string {
	if meant := nearest.Of(name, slices.Sorted(maps.Keys(t.Servers))); meant != "" {
		return fmt.Sprintf("no server %q is configured: did you mean %q?", Truncated(name), meant)
	}
	return fmt.Sprintf("no server %q is configured", Truncated(name))
}

// Truncated returns the first 128 bytes of a name that a caller chose.
func Truncated(name string) string {
	if len(name) > 128 {
		return name[:128] + "…"
	}
	return name
}

// Slowest returns the longest DrainTimeout and the longest CloseTimeout of the servers.
func (t *Table) Slowest() (drain, shut time.Duration) {
	for _, srv := range t.Servers {
		drain, shut = max(drain, srv.Resolved.DrainTimeout), max(shut, srv.Resolved.CloseTimeout)
	}
	return drain, shut
}

// Common returns the limits of a server without any of its own.
func (t *Table) Common() *mcpbridge.Limits { return t.cfg.Limits }

// Limits returns the limits of a server, or the common ones if no server of that name is configured.
func (t *Table) Limits(server string) *mcpbridge.Limits {
	if srv := t.Servers[server]; srv != nil {
		return srv.Resolved
	}
	return t.cfg.Limits
}

// OfKey returns the sessions of a key: those that drain, and the current one.
func (t *Table) OfKey(key messages.Key) (all []*Registration) {
	if e := t.entries[key]; e != nil {
		all = append(all, e.Draining...)
		if e.Current != nil {
			all = append(all, e.Current)
		}
	}
	return all
}

// OfScope returns the sessions of a scope.
func (t *Table) OfScope(scope string) (all []*Registration) {
	for _, server := range t.names {
		all = append(all, t.OfKey(messages.Key{Server: server, Scope: scope})...)
	}
	return all
}

// Filter is what sessions are selected by. Empty fields select all.
type Filter struct {
	Server, Scope string
	State         messages.State
}

// Matching returns the sessions that a filter selects, and their number by state. They are
// ordered by state, and within a state by the name of the server.
func (t *Table) Matching(f Filter) (counts map[messages.State]int, all iter.Seq[*Registration]) {
	counts = map[messages.State]int{}
	wanted := func(reg *Registration) bool {
		return (f.Server == "" || reg.Key.Server == f.Server) && (f.State == "" || reg.State() == f.State)
	}
	if f.Scope != "" {
		var found []*Registration
		for _, reg := range t.OfScope((messages.Key{Scope: f.Scope}).Normal().Scope) {
			if wanted(reg) {
				counts[reg.State()]++
				found = append(found, reg)
			}
		}
		return counts, slices.Values(found)
	}
	var servers []string
	for _, name := range t.names {
		g := t.groups[name]
		if f.Server != "" && name != f.Server {
			continue
		}
		servers = append(servers, name)
		for at, state := range protocol.States {
			if n := g.states.Len(admission.Rank(at)); n > 0 && (f.State == "" || f.State == state) {
				counts[state] += n
			}
		}
	}
	return counts, func(yield func(*Registration) bool) {
		for at, state := range protocol.States {
			if counts[state] == 0 {
				continue
			}
			for _, name := range servers {
				for reg := range t.groups[name].states.Oldest(admission.Rank(at)) {
					if !yield(reg) {
						return
					}
				}
			}
		}
	}
}

// Cursor returns a cursor for the sessions of each server that is wanted.
func (t *Table) Cursor(wanted func(server string) bool) Cursor {
	c := Cursor{upTo: t.Serial}
	for _, name := range t.names {
		if first := t.groups[name].first; first != nil && wanted(name) {
			c.next = append(c.next, first)
		}
	}
	return c
}
