package admission

import (
	"cmp"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// MinProbeInterval is the first interval between probes. It doubles with each failure,
	// up to MaxProbeInterval while failures are immediate.
	MinProbeInterval = 100 * time.Millisecond
	// MaxProbeInterval is the longest interval while failures are immediate.
	MaxProbeInterval = time.Second
	// SlowProbeInterval is the longest interval when failures are not immediate, or when
	// the server sends Retry-After. If a probe takes longer, another one begins beside it.
	SlowProbeInterval = 2 * time.Second
	// immediate is how long a failure may take to count as immediate.
	immediate = 500 * time.Millisecond
	// MaxProbes is how many probes of an endpoint run at once.
	MaxProbes = 3
)

// Outage is what is known of an endpoint regardless of the key: whether a server answers there.
//
//	up ──dial finds no server──▶ down ──any answer──▶ up
//
// While an endpoint is down, only probes may dial. A probe is the dial of one of the
// sessions that wait. When the server answers, all of them may dial.
type Outage struct {
	SeenAt time.Time        // when the server last answered, or zero
	Since  time.Time        // when it came up or went down, or zero
	Down   bool             // the last dial found no server
	Cause  *mcpbridge.Error // of the last failed dial, as all keys may see it; nil while up

	ProbedAt time.Time     // when the last probe began
	interval time.Duration // between probes
	Next     time.Time     // when the next probe is due
}

// Answered notes that the server has answered.
func (ep *Outage) Answered(now time.Time) {
	if ep.Down || ep.SeenAt.IsZero() {
		ep.Since = now
	}
	ep.SeenAt, ep.Down, ep.Cause = now, false, nil
}

// ShowsDown reports whether a dial failed because the server is down, and not for a reason
// of its key. An answer that is not MCP also shows this if the server has been up before:
// the answer may come from a proxy in front of the server.
func (ep *Outage) ShowsDown(e *mcpbridge.Error) bool {
	switch {
	case e.Server == mcpbridge.Strange || e.Class == mcpbridge.Protocol && e.Server == mcpbridge.Absent:
		return !ep.SeenAt.IsZero()
	case e.Server == mcpbridge.Absent:
		return e.Class == mcpbridge.Unavailable
	}
	return false
}

// Failed notes that a dial found no server. It began at a time, and was a probe if probing is true. random returns
// numbers in [0, 1).
func (ep *Outage) Failed(e *mcpbridge.Error, began time.Time, probing bool, now time.Time, random func() float64) {
	cause := Shared(e)
	most := MaxProbeInterval
	if now.Sub(began) > immediate || e.RetryAfter > 0 {
		most = SlowProbeInterval
	}
	switch {
	case !ep.Down:
		ep.Down, ep.Since, ep.interval, ep.ProbedAt = true, now, MinProbeInterval, now
	case !probing || ep.ProbedAt.After(began):
		ep.Cause = cause // a later probe runs, and determines the next one
		return
	default:
		ep.interval = min(2*ep.interval, most)
	}
	if e.RetryAfter > 0 {
		ep.interval = min(max(ep.interval, e.RetryAfter), most)
	}
	ep.Cause = cause
	spread := time.Duration((0.8 + 0.2*random()) * float64(ep.interval)) // other processes may probe the same server
	ep.Next = ep.ProbedAt.Add(spread)
}

// Shared returns what all keys may see of the error of one of them: nothing that concerns that
// key, and nothing that the server said to it.
func Shared(e *mcpbridge.Error) *mcpbridge.Error {
	return &mcpbridge.Error{Class: e.Class, Server: e.Server, Detail: cmp.Or(e.Shared, e.Detail), Remedy: e.Remedy}
}

// Health returns what a snapshot says of the server.
func (ep *Outage) Health() (health messages.Health, cause string, retryAt time.Time) {
	switch {
	case ep.Down:
		return messages.HealthDown, ep.Cause.Error(), ep.Next
	case !ep.SeenAt.IsZero():
		return messages.HealthUp, "", retryAt
	}
	return messages.HealthUnknown, "", retryAt
}
