package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// serverUp notes that a server has answered a session, and gives grants to all that are
// queued. Other probes are abandoned and dial again: they may hang at a network address
// that the server has left.
func (r *registry) serverUp(c actor.Context, reg *registration) {
	ep := reg.server.endpoint
	now := time.Now()
	if ep.down || ep.seenAt.IsZero() {
		r.logServerUp(reg, now)
		ep.since = now
	}
	ep.seenAt = now
	if !ep.down {
		ep.noteHealth()
		return
	}
	for _, probe := range ep.probes {
		if probe != reg {
			probe.send(&abandonDial{})
		}
	}
	ep.down, ep.cause, ep.probes = false, nil, nil
	ep.stopTimer()
	ep.noteHealth()
	r.recall(ep)
	r.grantDials(c)
}

// scheduleProbe starts the timer for the next probe of an endpoint that sessions are
// queued for. When a probe is due and there is no permit, the return of a permit grants
// it.
func (r *registry) scheduleProbe(ep *endpoint) {
	if ep.timer != nil && ep.next.Before(ep.firesAt) {
		ep.stopTimer()
	}
	if wait := time.Until(ep.next); ep.down && ep.queued > 0 && ep.timer == nil && wait > 0 {
		ep.firesAt = ep.next
		ep.timer = after(r.mailbox, wait, &probeDue{ep})
	}
}

// onProbeDue grants the next probe. If there are too many, the second oldest is abandoned:
// the oldest keeps its full time, for servers that are slow.
func (r *registry) onProbeDue(c actor.Context, ep *endpoint) {
	now := time.Now()
	ep.timer = nil
	if !ep.down {
		return
	}
	limit := maxProbes
	for _, probe := range ep.probes {
		limit = min(limit, probe.server.limits.MaxDials)
	}
	if len(ep.probes) >= limit && !now.Before(ep.next) {
		ep.next = now.Add(slowProbeInterval)
		if limit > 1 {
			ep.probes[1].send(&abandonDial{})
		}
	}
	r.recall(ep)
	r.grantDials(c)
}

// onDialAbandoned takes back the permits of an abandoned dial.
func (r *registry) onDialAbandoned(c actor.Context, reg *registration) {
	ep := reg.server.endpoint
	if reg.probing {
		ep.next = time.Now()
	}
	if !reg.draining {
		r.setState(reg, messages.StateWaiting)
	}
	r.returnPermits(reg)
	r.grantDials(c)
}

// onHandshakeAnswered takes back the permit to start a process.
func (r *registry) onHandshakeAnswered(c actor.Context, reg *registration) {
	r.returnStartPermit(reg)
	r.serverUp(c, reg)
	r.grantDials(c)
}

// sendServerDownToAll fails the waiting calls of all sessions that are queued for an
// endpoint.
func (r *registry) sendServerDownToAll(c actor.Context, ep *endpoint) {
	r.beginWalk(c, &walk{
		done: func(actor.Context) {},
		visit: func(_ actor.Context, reg *registration) {
			if reg.queuePosition != nil && reg.server.endpoint == ep && ep.down {
				r.sendServerDown(reg)
			}
		},
	}, func(server string) bool {
		srv := r.servers[server]
		return srv != nil && (srv.endpoint == ep || len(srv.keyed) > 0)
	})
}

// sendServerDown fails the waiting calls of a session that is queued for a server that is
// down.
func (r *registry) sendServerDown(reg *registration) {
	ep := reg.server.endpoint
	reg.send(&serverDown{cause: ep.causeFor(reg), retryAt: ep.next})
}
