package registry

import (
	"math"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// startPermitLimit is how long a process that starts keeps its permit. A process that
// needs longer is unlikely to be short of processor time.
const startPermitLimit = 5 * time.Second

// startPermitDue says that a process has kept its start permit for startPermitLimit.
type startPermitDue struct {
	of     *registration
	dialed time.Time // identifies the dial
}

// onDialRequested queues a session for a grant. The session has no connection, so that
// its slot is free for others until it has its grant. But if a second session is kept in its slot, the dial adopts it,
// and needs no permit.
func (r *registry) onDialRequested(c actor.Context, reg *registration) {
	if reg.slots.Draining && !reg.cleanup || reg.dialing {
		return
	}
	reg.wantsDial = true
	if !reg.slots.Draining {
		r.setState(reg, messages.StateWaiting)
	}
	now := time.Now()
	if reg.slots.Held && r.mayQueue(reg, now) && (reg.seconds > 0 || r.freeDialPermits(reg.server, now) > 0) {
		r.grant(c, reg, now)
		return
	}
	r.returnSlotOf(c, reg)
	r.advance(c, reg)
}

// mayQueue reports whether a session may be queued: its backoff is over, and its
// predecessor is closed.
func (r *registry) mayQueue(reg *registration, now time.Time) bool {
	return (!now.Before(reg.notBefore) || reg.mayHaveNewCredentials()) && r.entries[reg.key].predecessor(reg) == nil
}

// advance queues a session that wants to dial, if it may be queued now, or starts the
// timer for the end of its backoff.
func (r *registry) advance(c actor.Context, reg *registration) {
	if !reg.wantsDial || reg.queuePosition != nil {
		return
	}
	now := time.Now()
	switch wait := reg.notBefore.Sub(now); {
	case r.mayQueue(reg, now) && reg.unconnectedSlot:
		r.grant(c, reg, now)
	case r.mayQueue(reg, now):
		r.enqueue(reg, now)
		r.grantDials(c)
		if reg.queuePosition != nil && r.cfg.FailFast && reg.server.endpoint.Down {
			r.sendServerDown(reg)
		}
	case wait > 0:
		reg.stopBackoffTimer()
		reg.backoffTimer = contract.After(r.mailbox, wait, &backoffDue{reg})
	default:
		// advance is called again when the predecessor is closed
	}
}

// enqueue puts a session into its lane. While the server is down, a
// session that has not probed yet goes first, and one that finds nobody waiting may
// probe at once.
func (r *registry) enqueue(reg *registration, now time.Time) {
	ep := reg.server.endpoint
	if fresh := !reg.probing && !reg.cleanup; ep.Down && fresh {
		r.join(reg, true)
		if soon := ep.ProbedAt.Add(admission.MinProbeInterval); ep.queued == 0 && soon.Before(ep.Next) && !r.cfg.FailFast {
			ep.Next = soon
		}
	} else {
		r.join(reg, false)
	}
	ep.queued++
}

// dequeue removes a session from its lane, if it is queued.
func (r *registry) dequeue(reg *registration) {
	if reg.queuePosition == nil {
		return
	}
	ep := reg.server.endpoint
	r.leave(reg)
	if ep.queued--; ep.queued == 0 {
		ep.stopTimer()
	}
}

// freeDialPermits returns how many sessions of a server may start to dial, apart from the
// cap: MaxDials, the permits to start processes and the probes of a server that is down
// limit them.
func (r *registry) freeDialPermits(srv *server, now time.Time) int {
	n := srv.limits.MaxDials - srv.dialing
	if srv.Command != "" {
		n = min(n, r.maxProcessStarts-r.processStarts)
	}
	if srv.endpoint.Down && n > 0 {
		n = 0
		if srv.endpoint.AllowsProbe(now) {
			n = 1
		}
	}
	return max(0, n)
}

// grantDials gives grants to queued sessions until permits or slots are used up. The
// servers take turns, so do the lanes of a server, and the places of a lane. A place that is
// down, or has no permits, delays no other place. If a quota is used up, sessions are
// evicted: for the quota of a tenant its own, for that of a server those of the server. The
// time it takes grows with the servers, the grants and the evictions, and not with the places
// without a permit or the length of the queues.
func (r *registry) grantDials(c actor.Context) {
	now := time.Now()
	r.passing = 0
	full := false
	for left := r.waitingServers.Len(); left > 0; left-- {
		e := r.waitingServers.Front()
		srv := e.Value.(*server)
		l, q := r.nextTurn(srv, now)
		switch {
		case q == nil:
			r.waitingServers.MoveToBack(e)
		case l.full():
			wanted := r.mayDial(l, contract.WalkStep, map[*server]int{}, now)
			l.tenant.starved = !r.makeRoomIn(c, &l.tenant.sessions, wanted, messages.EvictTenantQuota)
			r.makeStuck(l)
			left = r.waitingServers.Len() + 1
		case srv.sessions.Room() == 0:
			r.waitingServers.MoveToBack(e)
			r.makeRoomIn(c, srv.sessions, r.wanted(srv, math.MaxInt, now), messages.EvictServerCap)
		case r.sessions.Room() == 0:
			r.waitingServers.MoveToBack(e)
			full = true
		default:
			r.waitingServers.MoveToBack(e)
			srv.ready.MoveToBack(l.position)
			l.order.MoveToBack(q.position)
			r.grant(c, q.sessions.Front().Value.(*registration), now)
			left = r.waitingServers.Len() + 1
		}
	}
	if full {
		r.makeRoom(c)
	}
}

// grant gives a session a slot and its permits, and lets it dial.
func (r *registry) grant(c actor.Context, reg *registration, now time.Time) {
	srv := reg.server
	r.dequeue(reg)
	reg.slots.Take()
	reg.unconnectedSlot = false
	srv.dialing++
	r.counters.Dials++
	reg.wantsDial, reg.dialing, reg.dialedAt, reg.addressed = false, true, now, srv.PerKey == nil
	if !reg.slots.Draining {
		r.setState(reg, messages.StateConnecting)
	}
	reg.probing = srv.endpoint.Down && !reg.cleanup
	switch {
	case reg.probing:
		srv.endpoint.BeginProbe(reg, now)
	case reg.cleanup: // a cleanup is not a probe, and may take long: the next probe does not wait for it
		srv.endpoint.Next = later(srv.endpoint.Next, now.Add(admission.MinProbeInterval))
	}
	if srv.Command != "" {
		reg.holdsStartPermit = true
		r.processStarts++
		reg.startTimer = contract.After(r.mailbox, startPermitLimit, &startPermitDue{reg, now})
	}
	r.updateRank(reg)
	r.tellLimits(c, reg)
	reg.send(&contract.Grant{})
}

// returnPermits takes back the permits of a dial. Call grantDials after it.
func (r *registry) returnPermits(reg *registration) {
	if !reg.dialing {
		return
	}
	reg.dialing = false
	reg.server.endpoint.EndProbe(reg)
	r.returnStartPermit(reg)
	r.returnPermit(reg.server)
}

// returnPermit takes back a dial permit of a place. Call grantDials after it.
func (r *registry) returnPermit(srv *server) {
	srv.dialing--
	r.mayPermit(srv)
}

// mayPermit gives a permit of a place to a control, or has the next call of grantDials look whether
// there is one.
func (r *registry) mayPermit(srv *server) {
	r.grantControls(srv)
	r.recall(srv.endpoint)
}

// returnStartPermit takes back the permit to start a process. Call grantDials after it.
func (r *registry) returnStartPermit(reg *registration) {
	if reg.holdsStartPermit {
		reg.holdsStartPermit = false
		reg.startTimer.Stop()
		r.processStarts--
	}
}

// onStartPermitDue takes back the permit of a process that starts slowly.
func (r *registry) onStartPermitDue(c actor.Context, msg *startPermitDue) {
	if msg.of.dialedAt.Equal(msg.dialed) {
		r.returnStartPermit(msg.of)
		r.grantDials(c)
	}
}
