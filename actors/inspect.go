package actors

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// snapshot describes the registry at this moment.
func (r *registry) snapshot(cmd *messages.Inspect) *messages.Snapshot {
	now := time.Now()
	counts, matching := r.roster.matching(cmd)
	snap := &messages.Snapshot{
		ID: cmd.ID, Time: now, Counters: r.counters, States: counts,
		Open: r.open, Cap: r.cfg.MaxSessions, Waiting: r.waiting,
	}
	snap.Counters.Dropped, snap.Counters.LinesDropped = r.cfg.Events.Dropped(), r.cfg.Logger.Dropped()
	if r.cfg.Strays != nil {
		snap.Counters.Strays = r.cfg.Strays()
	}
	for _, n := range counts {
		snap.Total += n
	}
	limit := cmp.Or(cmd.Limit, messages.DefaultInspectLimit)
	if limit < 0 {
		limit = snap.Total
	}
	limit = min(limit, snap.Total)
	snap.Sessions = make([]messages.SessionSnapshot, 0, limit)
	for ch := range matching {
		if len(snap.Sessions) == limit {
			break
		}
		snap.Sessions = append(snap.Sessions, ch.snapshot(now))
	}
	slices.SortFunc(snap.Sessions, func(a, b messages.SessionSnapshot) int { return compareKeys(a.Key, b.Key) })
	return snap
}

// snapshot describes one session.
func (ch *child) snapshot(now time.Time) messages.SessionSnapshot {
	one := messages.SessionSnapshot{
		Key: ch.key, State: ch.state(), Generation: ch.generation,
		Protocol: ch.protocol(), Stateless: ch.info.Stateless,
		Outstanding: ch.outstanding, Calls: ch.calls, LastUsed: ch.used,
	}
	if ch.cause != nil {
		one.Cause = ch.cause.Cause.Error()
		if now.Before(ch.notBefore) {
			one.RetryAt = ch.notBefore
		}
	}
	if ep := ch.server.endpoint; ep.down && ch.elem != nil {
		one.Cause, one.RetryAt = ep.cause.Error(), ep.next
	}
	return one
}

func compareKeys(a, b messages.Key) int {
	return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Scope, b.Scope))
}
