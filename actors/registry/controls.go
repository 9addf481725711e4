package registry

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
)

// control is a request for a permit to open a second session.
type control struct {
	of      *registration
	server  *server    // where it waits, or has its permit
	sender  *actor.PID // that waits for the reply
	allowed bool       // it uses the slot
	holds   bool       // it has a permit
	over    bool       // controlEnded has come
}

// onControlWanted queues a request, also of a session that drains: its calls wait for the verdict. While the server
// is down, it is refused unless a probe is due, for which it counts.
func (r *registry) onControlWanted(c actor.Context, msg *contract.ControlWanted) {
	srv, now := registrationOf(msg.Of).server, time.Now()
	ep := srv.endpoint
	if ep.Down && !ep.AllowsProbe(now) {
		r.cfg.Post.Send(c.Sender(), &contract.ControlAllowed{Is: false})
		return
	}
	if ep.Down {
		ep.ProbedAt, ep.Next = now, now.Add(admission.MaxProbeInterval)
	}
	k := &control{of: registrationOf(msg.Of), server: srv, sender: c.Sender()}
	r.controls[msg] = k
	srv.controls = append(srv.controls, k)
	r.grantControls(srv)
}

// grantControls gives permits to those who wait for one of a place.
func (r *registry) grantControls(srv *server) {
	for len(srv.controls) > 0 && srv.dialing < srv.limits.MaxDials {
		k := srv.controls[0]
		srv.controls = srv.controls[1:]
		if k.over {
			continue
		}
		k.allowed, k.holds = true, true
		k.of.seconds++
		srv.dialing++
		r.cfg.Post.Send(k.sender, &contract.ControlAllowed{Is: true})
	}
}

// onControlOpened takes a permit back.
func (r *registry) onControlOpened(c actor.Context, msg *contract.ControlWanted) {
	if k := r.controls[msg]; k != nil && k.holds {
		k.holds = false
		r.returnPermit(k.server)
		r.grantDials(c)
	}
}

// onControlEnded notes that a second session has ended, and takes back the slot if nothing else uses it.
func (r *registry) onControlEnded(c actor.Context, msg *contract.ControlWanted) {
	k := r.controls[msg]
	if k == nil {
		return // it was refused
	}
	k.over = true
	r.onControlOpened(c, msg)
	delete(r.controls, msg)
	if k.allowed {
		k.of.seconds--
		if k.of.seconds == 0 && k.of.unconnectedSlot {
			r.returnSlotOf(c, k.of)
		}
	}
}

// returnSlotOf takes back the slot of a session without a connection, once no second session uses it. Until then the
// session is evicted like one that has a connection.
func (r *registry) returnSlotOf(c actor.Context, reg *registration) {
	if reg.unconnectedSlot = reg.slots.Held && reg.seconds > 0; reg.unconnectedSlot {
		r.updateRank(reg)
		return
	}
	r.freeSlot(c, reg)
}
