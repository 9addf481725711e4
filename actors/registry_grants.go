package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// startLimit is how long the start of a process keeps its permit: one that takes
// longer waits for something else than a processor.
const startPermitLimit = 5 * time.Second

// startOver says that the start of a process has had its time.
type startPermitDue struct {
	of     *registration
	dialed time.Time // which start
}

// IgnoreDeadLetterLogging: it may come when the registry has stopped.
func (*startPermitDue) IgnoreDeadLetterLogging() {}

// onWantDial begins the way to a grant. There is no connection: the slot is for
// whoever dials first.
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

// ripe reports whether a child has to wait for nobody but others that dial: its
// backoff is over, its predecessor is gone.
func (r *registry) mayQueue(reg *registration, now time.Time) bool {
	return (!now.Before(reg.notBefore) || reg.mayHaveNewCredentials()) && r.entries[reg.key].predecessor(reg) == nil
}

// advance takes a child that wants a grant as far as it gets now: past its
// backoff, past its predecessor, into the queue of its server.
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
		// when the predecessor is gone, we are called again
	}
}

// enqueue lets a child wait for its turn to dial. While the server is down, who has
// not probed yet goes first, and whoever comes when nobody waits probes at once.
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

// dequeue takes a child out of the queue, if it stands there.
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

// room returns how many sessions of a server may begin to dial now, were there
// slots for all: by its dial permits, by the permits to start processes, and by what
// is known of the server.
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

// pump lets those who wait dial, as many as may: the servers take turns. It takes
// as long as there are servers and grants, however many wait.
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

// grant lets a child dial, with all that it takes.
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
	case reg.cleanup: // it takes its time, and is no probe: others soon have their turn
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

// endDial gives back the permits of a dial. Call pump after it.
func (r *registry) returnPermits(reg *registration) {
	if !reg.dialing {
		return
	}
	reg.dialing = false
	reg.server.dialing--
	reg.server.endpoint.endProbe(reg)
	r.returnStartPermit(reg)
}

// endStart gives back the permit to start a process. Call pump after it.
func (r *registry) returnStartPermit(reg *registration) {
	if reg.holdsStartPermit {
		reg.holdsStartPermit = false
		reg.startTimer.Stop()
		r.processStarts--
	}
}

// onStartOver gives back the permit of a process that takes its time.
func (r *registry) onStartPermitDue(c actor.Context, msg *startPermitDue) {
	if msg.of.dialedAt.Equal(msg.dialed) {
		r.returnStartPermit(msg.of)
		r.grantDials(c)
	}
}
