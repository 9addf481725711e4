package registry

import (
	"container/list"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// endpoint is what is known of a server regardless of the key, and who waits for it. All keys of all
// servers at this endpoint share one value.
type endpoint struct {
	admission.Outage[*registration]

	queued  int         // sessions that are queued, of all its servers
	timer   *time.Timer // sends probeDue; nil while no session is queued
	firesAt time.Time   // when timer fires

	keyed   []*server // the places that have it; a server has one at most
	blocked list.List // of *server: its places with queued sessions that had no permit, see freePlaces
	passed  list.List // of *placeQueue: those of its places that lanes have passed over
}

// probeDue says that an endpoint may be probed.
type probeDue struct{ of *endpoint }

// causeFor returns why the server is down, for the callers of one session, or of none: as its
// own dial has found it, if that was the same, or if it started a process, whose stderr is then
// quoted; otherwise what all keys may see.
func (ep *endpoint) causeFor(reg *registration) *mcpbridge.Error {
	if reg == nil || reg.cause == nil || !reg.cause.Dialing {
		return ep.Cause
	}
	if own := reg.cause.Cause; reg.server.Command != "" || admission.Shared(own).Error() == ep.Cause.Error() {
		return own
	}
	return ep.Cause
}

// forget abandons all probes of an endpoint, and forgets whether the server is up. Sessions stay queued.
func (r *registry) forgetEndpoint(ep *endpoint) {
	for _, probe := range ep.Probes {
		probe.send(&contract.AbandonDial{})
	}
	ep.stopTimer()
	r.recall(ep)
	*ep = endpoint{queued: ep.queued, keyed: ep.keyed}
	ep.noteHealth()
}

// Ranks of the places of a server by their health.
const (
	downPlace admission.Rank = 1
	upPlace   admission.Rank = 2
)

// noteHealth notes the health of an endpoint at the servers of the places that PerKey has led to.
func (ep *endpoint) noteHealth() {
	for _, place := range ep.keyed {
		place.noteHealth()
	}
}

// noteHealth notes the health of a place at its base.
func (srv *server) noteHealth() {
	to := admission.Unranked
	switch {
	case srv.endpoint.Down:
		to = downPlace
	case !srv.endpoint.SeenAt.IsZero():
		to = upPlace
	}
	if srv.healthNode.Rank != to {
		srv.base.health.Put(&srv.healthNode, to, srv)
	}
}

// foremost returns the endpoint that shows the health of a server: of the places that PerKey has led
// to, one that is down, or else one that is up.
func (srv *server) foremost() *endpoint {
	for _, of := range []admission.Rank{downPlace, upPlace} {
		for place := range srv.health.Oldest(of) {
			return place.endpoint
		}
	}
	return srv.endpoint
}

// stopTimer stops the timer for the next probe, if it runs.
func (ep *endpoint) stopTimer() {
	if ep.timer != nil {
		ep.timer.Stop()
	}
	ep.timer = nil
}
