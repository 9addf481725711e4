package actors

import (
	"cmp"
	"container/list"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// minProbeInterval is the first interval between probes. It doubles with each failure,
	// up to maxProbeInterval while failures are immediate.
	minProbeInterval = 100 * time.Millisecond
	maxProbeInterval = time.Second
	// slowProbeInterval is the longest interval when failures are not immediate, or when
	// the server sends Retry-After. If a probe takes longer, another one begins beside it.
	slowProbeInterval = 2 * time.Second
	// immediate is how long a failure may take to count as immediate.
	immediate = 500 * time.Millisecond
	// maxProbes is how many probes of an endpoint run at once.
	maxProbes = 3
)

// endpoint is what is known of a server regardless of the key: whether it is up. All keys
// of all servers at this endpoint share one value.
//
//	up ──dial finds no server──▶ down ──any answer──▶ up
//
// While an endpoint is down, only probes may dial. A probe is the dial of one of the
// queued sessions. When the server answers, all of them may dial.
type endpoint struct {
	seenAt time.Time        // when the server last answered, or zero
	since  time.Time        // when it came up or went down, or zero
	down   bool             // the last dial found no server
	cause  *mcpbridge.Error // of the last failed dial, as all keys may see it; nil while up

	queued   int             // sessions that are queued, of all its servers
	probes   []*registration // that dial while the endpoint is down, the oldest first
	probedAt time.Time       // when the last probe began
	interval time.Duration   // between probes
	next     time.Time       // when the next probe is due
	timer    *time.Timer     // sends probeDue; nil while no session is queued
	firesAt  time.Time       // when timer fires

	keyed   []*server // the places that have it; a server has one at most
	blocked list.List // of *server: its places with queued sessions that had no permit, see freePlaces
	passed  list.List // of *placeQueue: those of its places that lanes have passed over
}

// probeDue says that an endpoint may be probed.
type probeDue struct{ of *endpoint }

// allowsProbe reports whether another probe may begin.
func (ep *endpoint) allowsProbe(now time.Time) bool {
	return len(ep.probes) < maxProbes && !now.Before(ep.next)
}

// beginProbe notes a probe.
func (ep *endpoint) beginProbe(reg *registration, now time.Time) {
	ep.probes = append(ep.probes, reg)
	ep.probedAt, ep.next = now, now.Add(slowProbeInterval)
}

// endProbe removes a probe.
func (ep *endpoint) endProbe(reg *registration) {
	ep.probes = slices.DeleteFunc(ep.probes, func(p *registration) bool { return p == reg })
}

// showsDown reports whether a dial failed because the server is down, and not for a reason
// of its key. An answer that is not MCP also shows this if the server has been up before:
// the answer may come from a proxy in front of the server.
func (ep *endpoint) showsDown(e *mcpbridge.Error) bool {
	switch {
	case e.Server == mcpbridge.Strange || e.Class == mcpbridge.Protocol && e.Server == mcpbridge.Absent:
		return !ep.seenAt.IsZero()
	case e.Server == mcpbridge.Absent:
		return e.Class == mcpbridge.Unavailable
	}
	return false
}

// noteFailure notes a dial that found no server, and how long it took.
func (ep *endpoint) noteFailure(reg *registration, e *mcpbridge.Error, took time.Duration, now time.Time) {
	cause := shared(e)
	most := maxProbeInterval
	if took > immediate || e.RetryAfter > 0 {
		most = slowProbeInterval
	}
	switch {
	case !ep.down:
		ep.down, ep.since, ep.interval, ep.probedAt = true, now, minProbeInterval, now
	case !reg.probing || ep.probedAt.After(reg.dialedAt):
		ep.cause = cause // a later probe runs, and determines the next one
		return
	default:
		ep.interval = min(2*ep.interval, most)
	}
	if e.RetryAfter > 0 {
		ep.interval = min(max(ep.interval, e.RetryAfter), most)
	}
	ep.cause = cause
	spread := time.Duration((0.8 + 0.2*rand.Float64()) * float64(ep.interval)) // other processes may probe the same server
	ep.next = ep.probedAt.Add(spread)
}

// shared returns what all keys may see of the error of one of them: nothing that concerns that
// key, and nothing that the server said to it.
func shared(e *mcpbridge.Error) *mcpbridge.Error {
	return &mcpbridge.Error{Class: e.Class, Server: e.Server, Detail: cmp.Or(e.Shared, e.Detail), Remedy: e.Remedy}
}

// causeFor returns why the server is down, for the callers of one session, or of none: as its
// own dial has found it, if that was the same, or if it started a process, whose stderr is then
// quoted; otherwise what all keys may see.
func (ep *endpoint) causeFor(reg *registration) *mcpbridge.Error {
	if reg == nil || reg.cause == nil || !reg.cause.Dialing {
		return ep.cause
	}
	if own := reg.cause.Cause; reg.server.Command != "" || shared(own).Error() == ep.cause.Error() {
		return own
	}
	return ep.cause
}

// forget abandons all probes of an endpoint, and forgets whether the server is up. Sessions stay queued.
func (r *registry) forgetEndpoint(ep *endpoint) {
	for _, probe := range ep.probes {
		probe.send(&abandonDial{})
	}
	ep.stopTimer()
	r.recall(ep)
	*ep = endpoint{queued: ep.queued, keyed: ep.keyed}
	ep.noteHealth()
}

// Ranks of the places of a server by their health.
const (
	downPlace rank = 1
	upPlace   rank = 2
)

// noteHealth notes the health of an endpoint at the servers of the places that PerKey has led to.
func (ep *endpoint) noteHealth() {
	for _, place := range ep.keyed {
		place.noteHealth()
	}
}

// noteHealth notes the health of a place at its base.
func (srv *server) noteHealth() {
	to := unranked
	switch {
	case srv.endpoint.down:
		to = downPlace
	case !srv.endpoint.seenAt.IsZero():
		to = upPlace
	}
	if srv.healthNode.rank != to {
		srv.base.health.put(&srv.healthNode, to, srv)
	}
}

// foremost returns the endpoint that shows the health of a server: of the places that PerKey has led
// to, one that is down, or else one that is up.
func (srv *server) foremost() *endpoint {
	for _, of := range []rank{downPlace, upPlace} {
		for place := range srv.health.oldest(of) {
			return place.endpoint
		}
	}
	return srv.endpoint
}

// health returns what a snapshot says of the server.
func (ep *endpoint) health() (health messages.Health, cause string, retryAt time.Time) {
	switch {
	case ep.down:
		return messages.HealthDown, ep.cause.Error(), ep.next
	case !ep.seenAt.IsZero():
		return messages.HealthUp, "", retryAt
	}
	return messages.HealthUnknown, "", retryAt
}

// stopTimer stops the timer for the next probe, if it runs.
func (ep *endpoint) stopTimer() {
	if ep.timer != nil {
		ep.timer.Stop()
	}
	ep.timer = nil
}
