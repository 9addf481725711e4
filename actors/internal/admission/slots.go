package admission

import (
	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/messages"
)

// slots are the rights to be open. They tell the queue when one may be free.
type slots struct {
	all     *Quota             // of all servers together
	servers map[string]*Quota  // by name; they stay when the server is removed
	reduced ring.Ring[*Server] // whose quota may be exceeded since a reload
	rested  *Session           // the last session that became idle
	queue   *queue
}

// ofServer returns the quota of a server.
func (sl *slots) ofServer(name string) *Quota {
	if sl.servers[name] == nil {
		sl.servers[name] = new(Quota)
	}
	return sl.servers[name]
}

// use makes a session the most recently used one of its rank.
func (sl *slots) use(s *Session) {
	before, to := s.use()
	if to >= UnusedSlot && before < UnusedSlot { // it may be evicted now
		sl.queue.changed = true
		if s.Tenant != nil && s.Tenant.starved {
			sl.queue.unstick(s.Tenant)
		}
	}
	if to == UnusedSlot {
		sl.reduce(s.Place.server)
	}
}

// giveBack takes back the slot of a session without a connection, once no control uses it.
func (sl *slots) giveBack(s *Session) {
	if s.onlyControls = s.Held && s.controls > 0; s.onlyControls {
		sl.use(s)
		return
	}
	if !s.Held {
		return
	}
	s.hold(false)
	if s.Tenant != nil {
		sl.queue.unstick(s.Tenant)
	}
	sl.use(s)
	sl.queue.changed = true
}

// reduce looks whether a server has more sessions than its quota allows.
func (sl *slots) reduce(srv *Server) {
	if srv.Quota.excess() > 0 {
		takesTurns(&sl.reduced, &srv.reduced, srv, true)
		sl.queue.changed = true
	}
}

// surplus evicts a session although no other one needs its slot: more than withoutSlot sessions have no slot, or a reload
// has lowered a quota.
func (sl *slots) surplus(withoutSlot int) (Decision, bool) {
	if last := sl.rested; last != nil {
		if sl.all.LRU.Len(NoSlot) > withoutSlot {
			return evict(sl.oldestWithoutSlot(last), messages.EvictCap)
		}
		sl.rested = nil
	}
	for srv := range sl.reduced.All() {
		if srv.Quota.excess() > 0 {
			if s := srv.Quota.LRU.First(UnusedSlot); s != nil { // busy ones stay until they are idle
				return evict(s, messages.EvictServerCap)
			}
		}
		sl.reduced.Remove(&srv.reduced)
	}
	return Decision{}, false
}

// oldestWithoutSlot returns the least recently used session without a slot: another one of the tenant of the latest
// session, or else one of all sessions.
func (sl *slots) oldestWithoutSlot(latest *Session) *Session {
	if latest.Tenant != nil {
		for s := range latest.Tenant.LRU.Oldest(NoSlot) {
			if s != latest {
				return s
			}
		}
	}
	return sl.all.LRU.First(NoSlot)
}
