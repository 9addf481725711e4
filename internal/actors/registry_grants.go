package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

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

// IgnoreDeadLetterLogging: it may come when the registry has stopped.
func (*startPermitDue) IgnoreDeadLetterLogging() {}

// onDialRequested queues a session for a grant. The session has no connection, so that
// its slot is free for others until it has its grant.
func (r *registry) onDialRequested(c actor.Context, reg *registration) {
	if reg.draining && !reg.cleanup || reg.dialing {
		return
	}
	reg.wantsDial = true
	if !reg.draining {
		r.setState(reg, messages.StateWaiting)
	}
	now := time.Now()
	if reg.slot && r.mayQueue(reg, now) && r.freeDialPermits(reg.server, now) > 0 {
		r.grant(c, reg, now)
		return
	}
	r.freeSlot(c, reg)
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
	case r.mayQueue(reg, now):
		r.enqueue(reg, now)
		r.grantDials(c)
		if reg.queuePosition != nil && r.cfg.FailFast && reg.server.endpoint.down {
			r.sendServerDown(c, reg)
		}
	case wait > 0:
		reg.stopBackoffTimer()
		reg.backoffTimer = after(c, wait, &backoffDue{reg})
	default:
		// advance is called again when the predecessor is closed
	}
}

// enqueue puts a session into the queue of its server. While the server is down, a
// session that has not probed yet goes first, and one that finds the queue empty may
// probe at once.
func (r *registry) enqueue(reg *registration, now time.Time) {
	srv, ep := reg.server, reg.server.endpoint
	if fresh := !reg.probing && !reg.cleanup; ep.down && fresh {
		reg.queuePosition = srv.queue.PushFront(reg)
		if soon := ep.probedAt.Add(minProbeInterval); ep.queued == 0 && soon.Before(ep.next) && !r.cfg.FailFast {
			ep.next = soon
		}
	} else {
		reg.queuePosition = srv.queue.PushBack(reg)
	}
	ep.queued++
	if srv.waitingPosition == nil {
		srv.waitingPosition = r.waitingServers.PushBack(srv)
	}
}

// dequeue removes a session from the queue of its server, if it is queued.
func (r *registry) dequeue(reg *registration) {
	if reg.queuePosition == nil {
		return
	}
	srv, ep := reg.server, reg.server.endpoint
	srv.queue.Remove(reg.queuePosition)
	reg.queuePosition = nil
	if ep.queued--; ep.queued == 0 {
		ep.stopTimer()
	}
	if srv.queue.Len() == 0 {
		r.waitingServers.Remove(srv.waitingPosition)
		srv.waitingPosition = nil
	}
}

// freeDialPermits returns how many sessions of a server may start to dial, apart from the
// cap: MaxDials, the permits to start processes and the probes of a server that is down
// limit them.
func (r *registry) freeDialPermits(srv *server, now time.Time) int {
	n := r.cfg.MaxDials - srv.dialing
	if srv.Command != "" {
		n = min(n, r.maxProcessStarts-r.processStarts)
	}
	if srv.endpoint.down && n > 0 {
		n = 0
		if srv.endpoint.allowsProbe(now) {
			n = 1
		}
	}
	return max(0, n)
}

// grantDials gives grants to queued sessions until permits or slots are used up. The
// servers take turns. The time it takes grows with the servers and the grants, and not
// with the length of the queues.
func (r *registry) grantDials(c actor.Context) {
	now := time.Now()
	for left := r.waitingServers.Len(); left > 0; left-- {
		e := r.waitingServers.Front()
		srv := e.Value.(*server)
		if r.freeDialPermits(srv, now) == 0 {
			r.waitingServers.MoveToBack(e)
			r.scheduleProbe(c, srv.endpoint)
			continue
		}
		if r.open >= r.cfg.MaxSessions {
			r.makeRoom(c)
			return
		}
		r.waitingServers.MoveToBack(e)
		r.grant(c, srv.queue.Front().Value.(*registration), now)
		left = r.waitingServers.Len() + 1
	}
}

// grant gives a session a slot and its permits, and lets it dial.
func (r *registry) grant(c actor.Context, reg *registration, now time.Time) {
	srv := reg.server
	r.dequeue(reg)
	if !reg.slot {
		reg.slot = true
		r.open++
		if reg.draining {
			r.drainingSlots++
		}
	}
	srv.dialing++
	r.counters.Dials++
	reg.wantsDial, reg.dialing, reg.dialedAt = false, true, now
	if !reg.draining {
		r.setState(reg, messages.StateConnecting)
	}
	reg.probing = srv.endpoint.down && !reg.cleanup
	switch {
	case reg.probing:
		srv.endpoint.beginProbe(reg, now)
	case reg.cleanup: // a cleanup is not a probe, and may take long: the next probe does not wait for it
		srv.endpoint.next = later(srv.endpoint.next, now.Add(minProbeInterval))
	}
	if srv.Command != "" {
		reg.holdsStartPermit = true
		r.processStarts++
		reg.startTimer = after(c, startPermitLimit, &startPermitDue{reg, now})
	}
	r.updateRank(reg)
	c.Send(reg.pid, &grant{})
}

// returnPermits takes back the permits of a dial. Call grantDials after it.
func (r *registry) returnPermits(reg *registration) {
	if !reg.dialing {
		return
	}
	reg.dialing = false
	reg.server.dialing--
	reg.server.endpoint.endProbe(reg)
	r.returnStartPermit(reg)
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
