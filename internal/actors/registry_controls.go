package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// onControlWanted queues a request. While the server is down, it is refused unless a probe is due, for which
// it counts.
func (r *registry) onControlWanted(c actor.Context, msg *controlWanted) {
	srv, now := msg.of.server, time.Now()
	ep := srv.endpoint
	if msg.of.draining || ep.down && !ep.allowsProbe(now) {
		r.cfg.Post.Send(c.Sender(), &controlAllowed{false})
		return
	}
	if ep.down {
		ep.probedAt, ep.next = now, now.Add(maxProbeInterval)
	}
	msg.server, msg.sender = srv, c.Sender()
	srv.controls = append(srv.controls, msg)
	r.grantControls(srv)
}

// grantControls gives permits to those who wait for one of a place.
func (r *registry) grantControls(srv *server) {
	for len(srv.controls) > 0 && srv.dialing < srv.limits.MaxDials {
		msg := srv.controls[0]
		srv.controls = srv.controls[1:]
		if msg.over {
			continue
		}
		msg.holds = true
		srv.dialing++
		r.cfg.Post.Send(msg.sender, &controlAllowed{true})
	}
}

// onControlDone takes a permit back.
func (r *registry) onControlDone(c actor.Context, msg *controlWanted) {
	msg.over = true
	if msg.holds {
		r.returnPermit(msg.server)
		r.grantDials(c)
	}
}
