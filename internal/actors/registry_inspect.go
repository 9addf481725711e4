package actors

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// snapshot returns the snapshot that a command asks for.
func (r *registry) snapshot(cmd *messages.Inspect) *messages.Snapshot {
	now := time.Now()
	counts, matching := r.index.matching(cmd)
	snap := &messages.Snapshot{
		ID: cmd.ID, Time: now, Counters: r.counters, States: counts,
		Open: r.sessions.open, Cap: r.cfg.MaxSessions, Waiting: r.waiting, Stopping: r.stopping,
	}
	snap.Counters.Dropped, snap.Counters.LinesDropped = r.cfg.Events.Dropped(), r.cfg.Logger.Dropped()
	if r.cfg.Strays != nil {
		snap.Counters.Strays = r.cfg.Strays()
	}
	for _, n := range counts {
		snap.Total += n
	}
	snap.Servers = r.serverSnapshots(cmd.Server)
	limit := cmp.Or(cmd.Limit, messages.DefaultInspectLimit)
	if limit < 0 {
		limit = snap.Total
	}
	limit = min(limit, snap.Total)
	snap.Sessions = make([]messages.SessionSnapshot, 0, limit)
	for reg := range matching {
		if len(snap.Sessions) == limit {
			break
		}
		one := reg.snapshot(now)
		one.Supervisor = r.cfg.Name
		snap.Sessions = append(snap.Sessions, one)
	}
	slices.SortFunc(snap.Sessions, func(a, b messages.SessionSnapshot) int { return a.Key.Compare(b.Key) })
	return snap
}

// serverSnapshots returns the snapshots of the configured servers, sorted by name, or that
// of one server. The time that it takes grows with the servers only.
func (r *registry) serverSnapshots(only string) []messages.ServerSnapshot {
	all := make([]messages.ServerSnapshot, 0, len(r.servers))
	for name, srv := range r.servers {
		if only != "" && name != only {
			continue
		}
		one := messages.ServerSnapshot{Name: name, Health: messages.HealthUnknown}
		for place := range srv.places() { // one that is down counts, of those to which keys lead
			health, cause, retryAt := place.endpoint.health()
			if health == messages.HealthDown || one.Health == messages.HealthUnknown {
				one.Since, one.Health, one.Cause, one.RetryAt = place.endpoint.since, health, cause, retryAt
			}
		}
		if g := r.index.groups[name]; g != nil {
			for at, state := range States {
				n := g.states.len(rank(at))
				if n == 0 {
					continue
				}
				if one.States == nil {
					one.States = map[messages.State]int{}
				}
				one.States[state] = n
				one.Sessions += n
			}
			one.Load = g.load.snapshot()
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b messages.ServerSnapshot) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// snapshot returns the snapshot of one session.
func (reg *registration) snapshot(now time.Time) messages.SessionSnapshot {
	one := messages.SessionSnapshot{
		Key: reg.key, State: reg.state(), Generation: reg.generation,
		Protocol: reg.protocol(), Stateless: reg.info.Stateless,
		Outstanding: reg.outstanding, Waiting: reg.waiting, Calls: reg.calls, Restarts: int(reg.restarts), LastUsed: reg.usedAt, Pinned: reg.pinned,
	}
	if reg.tenant != nil {
		one.Tenant = reg.tenant.name
	}
	if reg.cause != nil {
		one.Cause = reg.cause.Cause.Error()
		if now.Before(reg.notBefore) {
			one.RetryAt = reg.notBefore
		}
	}
	if ep := reg.server.endpoint; ep.down && reg.queuePosition != nil {
		one.Cause, one.RetryAt = ep.cause.Error(), ep.next
	}
	return one
}
