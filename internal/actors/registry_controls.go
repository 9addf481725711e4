package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// onControlWanted queues a request, also of a session that drains: its calls wait for the verdict. While the server
// is down, it is refused unless a probe is due, for which it counts.
func (r *registry) onControlWanted(c actor.Context, msg *controlWanted) {
	srv, now := msg.of.server, time.Now()
	ep := srv.endpoint
	if ep.down && !ep.allowsProbe(now) {
		r.cfg.Post.Send(c.Sender(), &controlAllowed{false})
		return
	}
	if ep.down {
		ep.probedAt, ep.next = now, now.Add(maxProbeInterval)
	}
	msg.server, msg.sender = srv, c.Sender()
	srv.controls = append(srv.controls, msg)
	r.waitingControls[srv] = struct{}{}
	r.grantControls(c)
}

// grantControls gives permits to those who wait. Its cost grows with the servers at which somebody waits.
func (r *registry) grantControls(c actor.Context) {
	for srv := range r.waitingControls {
		for len(srv.controls) > 0 && srv.dialing < srv.limits.MaxDials {
			msg := srv.controls[0]
			srv.controls = srv.controls[1:]
			if msg.over {
				continue
			}
			msg.allowed, msg.holds = true, true
			msg.of.seconds++
			srv.dialing++
			r.cfg.Post.Send(msg.sender, &controlAllowed{true})
		}
		if len(srv.controls) == 0 {
			srv.controls = nil
			delete(r.waitingControls, srv)
		}
	}
}

// onControlOpened takes a permit back.
func (r *registry) onControlOpened(c actor.Context, msg *controlWanted) {
	if msg.holds {
		msg.holds = false
		msg.server.dialing--
		r.grantDials(c)
	}
}

// onControlEnded notes that a second session has ended, and takes back the slot if nothing else uses it.
func (r *registry) onControlEnded(c actor.Context, msg *controlWanted) {
	msg.over = true
	r.onControlOpened(c, msg)
	if msg.allowed {
		msg.of.seconds--
		if msg.of.seconds == 0 && msg.of.unconnectedSlot {
			r.returnSlotOf(c, msg.of)
		}
	}
}

// returnSlotOf takes back the slot of a session without a connection, once no second session uses it. Until then the
// session is evicted like one that has a connection.
func (r *registry) returnSlotOf(c actor.Context, reg *registration) {
	if reg.unconnectedSlot = reg.slot && reg.seconds > 0; reg.unconnectedSlot {
		r.updateRank(reg)
		return
	}
	r.freeSlot(c, reg)
}
