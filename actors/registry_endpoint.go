package actors

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// probeLeast and probeMost are the interval between probes: it doubles while
	// refusals come at once.
	minProbeInterval = 100 * time.Millisecond
	maxProbeInterval = time.Second
	// probeSlow is the longest interval where refusals take their time, or say when
	// to come again. A probe without an answer is overtaken after it, too.
	slowProbeInterval = 2 * time.Second
	// atOnce is how long a refusal takes that comes at once.
	immediate = 500 * time.Millisecond
	// maxProbes is how many probes are under way at once.
	maxProbes = 3
)

// endpoint is what is known of a server, whoever the key is: whether it is up. All
// keys of all servers that are reached at the same place share it.
//
//	up ──a dial finds nobody──▶ down ──any answer──▶ up
//
// While it is down, one of the keys that wait for it probes: its dial is let
// through. When the server shows itself, all of them are.
type endpoint struct {
	seenAt time.Time        // when the server last showed itself; zero is never
	down   bool             // it has not, since a dial found nobody
	cause  *mcpbridge.Error // why the last dial failed; nil while up

	queued   int             // children that wait to dial, of all its servers
	probes   []*registration // dialing since it was down, the oldest first
	probedAt time.Time       // when the last of them began
	interval time.Duration   // from that to the next
	next     time.Time       // when that is
	timer    *time.Timer     // sends probeDue; nil while nobody waits
	firesAt  time.Time       // when timer does
}

// From timers, and from the goroutine of a dial, to the registry.
type (
	// probeDue says that an endpoint may be probed.
	probeDue struct{ of *endpoint }
	// shaken tells that the server has answered the handshake of a dial.
	handshakeAnswered struct{ of *registration }
)

// IgnoreDeadLetterLogging: it may come when the registry has stopped.
func (*probeDue) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging: as above.
func (*handshakeAnswered) IgnoreDeadLetterLogging() {}

// allows reports whether another probe may begin.
func (ep *endpoint) allowsProbe(now time.Time) bool {
	return len(ep.probes) < maxProbes && !now.Before(ep.next)
}

// begin notes a probe.
func (ep *endpoint) beginProbe(reg *registration, now time.Time) {
	ep.probes = append(ep.probes, reg)
	ep.probedAt, ep.next = now, now.Add(slowProbeInterval)
}

// end forgets a probe.
func (ep *endpoint) endProbe(reg *registration) {
	ep.probes = slices.DeleteFunc(ep.probes, func(p *registration) bool { return p == reg })
}

// absent reports whether a dial failed because the server is down, and not for a
// reason of the key that was dialed. What no MCP server says is taken for that where
// there has been one: a proxy says it in its place.
func (ep *endpoint) showsDown(e *mcpbridge.Error) bool {
	switch {
	case e.Server == mcpbridge.Strange || e.Class == mcpbridge.Protocol && e.Server == mcpbridge.Absent:
		return !ep.seenAt.IsZero()
	case e.Server == mcpbridge.Absent:
		return e.Class == mcpbridge.Unavailable
	}
	return false
}

// refuse notes that a dial found nobody. It took so long.
func (ep *endpoint) noteFailure(reg *registration, e *mcpbridge.Error, took time.Duration, now time.Time) {
	cause := &mcpbridge.Error{Class: e.Class, Server: e.Server, Detail: e.Detail} // for all: without what was said to one
	most := maxProbeInterval
	if took > immediate || e.RetryAfter > 0 {
		most = slowProbeInterval
	}
	switch {
	case !ep.down:
		ep.down, ep.interval, ep.probedAt = true, minProbeInterval, now
	case !reg.probing || ep.probedAt.After(reg.dialedAt):
		ep.cause = cause // another probe is under way, and decides when the next one is
		return
	default:
		ep.interval = min(2*ep.interval, most)
	}
	if e.RetryAfter > 0 {
		ep.interval = min(max(ep.interval, e.RetryAfter), most)
	}
	ep.cause = cause
	spread := time.Duration((0.8 + 0.2*rand.Float64()) * float64(ep.interval)) // other processes probe as well
	ep.next = ep.probedAt.Add(spread)
}

// shown notes that a server has answered a child, and lets all who wait for it dial.
// Other probes begin anew: theirs may have gone to where nobody is any more.
func (r *registry) serverUp(c actor.Context, reg *registration) {
	srv, ep := reg.server, reg.server.endpoint
	ep.seenAt = time.Now()
	if !ep.down {
		return
	}
	for _, probe := range ep.probes {
		if probe != reg {
			c.Send(probe.pid, &abandonDial{})
		}
	}
	ep.down, ep.cause, ep.probes = false, nil, nil
	ep.stopTimer()
	r.cfg.Logger.Info().Str("server", srv.Name).Msg("server is back")
	r.grantDials(c)
}

// await sees to it that an endpoint is probed in time, if anybody waits for it. When
// the time has come and there was no permit, whoever gives one back sees to it.
func (r *registry) scheduleProbe(c actor.Context, ep *endpoint) {
	if ep.timer != nil && ep.next.Before(ep.firesAt) {
		ep.stopTimer()
	}
	if wait := time.Until(ep.next); ep.down && ep.queued > 0 && ep.timer == nil && wait > 0 {
		ep.firesAt = ep.next
		ep.timer = after(c, wait, &probeDue{ep})
	}
}

// onProbeDue lets the next probe go. When there are too many, the second one is
// given up for it: the oldest keeps its time, for servers that are slow.
func (r *registry) onProbeDue(c actor.Context, ep *endpoint) {
	now := time.Now()
	ep.timer = nil
	if !ep.down {
		return
	}
	if limit := min(maxProbes, r.cfg.MaxDials); len(ep.probes) >= limit && !now.Before(ep.next) {
		ep.next = now.Add(slowProbeInterval)
		if limit > 1 {
			c.Send(ep.probes[1].pid, &abandonDial{})
		}
	}
	r.grantDials(c)
}

// onYielded takes back the dial of a child that has ended without an outcome.
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

// onShaken gives back the permit to start a process.
func (r *registry) onHandshakeAnswered(c actor.Context, reg *registration) {
	r.returnStartPermit(reg)
	r.serverUp(c, reg)
	r.grantDials(c)
}

func (ep *endpoint) stopTimer() {
	if ep.timer != nil {
		ep.timer.Stop()
	}
	ep.timer = nil
}

// at returns a server with what is known of the place where it is reached.
func (r *registry) newServer(srv mcpbridge.Server, among ...map[string]*server) *server {
	s := &server{Server: srv, address: srv.Endpoint()}
	for _, servers := range among {
		for _, other := range servers {
			if other.address == s.address {
				s.endpoint = other.endpoint
				return s
			}
		}
	}
	s.endpoint = new(endpoint)
	return s
}
