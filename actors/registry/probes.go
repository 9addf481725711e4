package registry

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// serverUp notes that a server has answered a session, and gives grants to all that are
// queued. Other probes are abandoned and dial again: they may hang at a network address
// that the server has left.
func (r *registry) serverUp(c actor.Context, reg *registration) {
	ep := reg.server.endpoint
	now := time.Now()
	down := ep.Down
	if down || ep.SeenAt.IsZero() {
		r.logServerUp(reg, now)
	}
	probes := ep.Answered(now)
	if !down {
		ep.noteHealth()
		return
	}
	for _, probe := range probes {
		if probe != reg {
			probe.send(&contract.AbandonDial{})
		}
	}
	ep.stopTimer()
	ep.noteHealth()
	r.recall(ep)
	r.grantDials(c)
}

// scheduleProbe starts the timer for the next probe of an endpoint that sessions are
// queued for. When a probe is due and there is no permit, the return of a permit grants
// it.
func (r *registry) scheduleProbe(ep *endpoint) {
	if ep.timer != nil && ep.Next.Before(ep.firesAt) {
		ep.stopTimer()
	}
	if wait := time.Until(ep.Next); ep.Down && ep.queued > 0 && ep.timer == nil && wait > 0 {
		ep.firesAt = ep.Next
		ep.timer = contract.After(r.mailbox, wait, &probeDue{ep})
	}
}

// onProbeDue grants the next probe. If there are too many, the second oldest is abandoned:
// the oldest keeps its full time, for servers that are slow.
func (r *registry) onProbeDue(c actor.Context, ep *endpoint) {
	now := time.Now()
	ep.timer = nil
	if !ep.Down {
		return
	}
	limit := admission.MaxProbes
	for _, probe := range ep.Probes {
		limit = min(limit, probe.server.limits.MaxDials)
	}
	if len(ep.Probes) >= limit && !now.Before(ep.Next) {
		ep.Next = now.Add(admission.SlowProbeInterval)
		if limit > 1 {
			ep.Probes[1].send(&contract.AbandonDial{})
		}
	}
	r.recall(ep)
	r.grantDials(c)
}

// onDialAbandoned takes back the permits of an abandoned dial.
func (r *registry) onDialAbandoned(c actor.Context, reg *registration) {
	ep := reg.server.endpoint
	if reg.probing {
		ep.Next = time.Now()
	}
	if !reg.slots.Draining {
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
			if reg.queuePosition != nil && reg.server.endpoint == ep && ep.Down {
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
	reg.send(&contract.ServerDown{Cause: ep.causeFor(reg), RetryAt: ep.Next})
}
