package mcpbridge

import (
	"fmt"
	"time"
)

// Limits are the bounds and timeouts of one server. The zero value of a field but MaxSessions
// means that the server has the value of the field with the same name in the configuration of
// the supervisor. The limits may differ between two servers with the same endpoint.
//
// A reload changes the limits of a running server and closes no session for it. Calls and
// dials have the new limits from then on. An open session has the new HandlerTimeout after
// its next dial.
type Limits struct {
	// MaxSessions is how many sessions of the server may be open at once, including those
	// that dial and those that drain. When it is reached, the least recently used session of
	// this server is evicted. It applies in addition to the MaxSessions of the supervisor.
	// Defaults to no bound of its own.
	MaxSessions int
	// MaxInFlight is how many calls of one session run at once. Further calls wait.
	MaxInFlight int
	// MaxWaiting is how many calls of one session may wait. Further calls fail with busy;
	// with -1, calls fail with busy while MaxInFlight calls run.
	MaxWaiting int
	// MaxDials is how many sessions of the server dial at once.
	MaxDials int

	// IdleTimeout is the time without calls after which a session is closed. With -1, only a
	// cap closes sessions.
	IdleTimeout time.Duration
	// ConnectTimeout bounds one dial, from the start of its process or its first request.
	ConnectTimeout time.Duration
	// CallTimeout is the timeout of operations that have no deadline.
	CallTimeout time.Duration
	// DrainTimeout is how long running calls may take when their session is closed or
	// restarted.
	DrainTimeout time.Duration
	// CloseTimeout bounds the closing of one connection.
	CloseTimeout time.Duration
	// HandlerTimeout is how long the server waits for the answer of a handler to its request.
	HandlerTimeout time.Duration
}

const (
	// maxLimit is the largest number that is accepted: a sum of such numbers does not overflow.
	maxLimit = 1 << 24
	// maxTimeout is the longest duration that is accepted: a time plus such a duration does not overflow.
	maxTimeout = 10 * 365 * 24 * time.Hour
)

// Validate returns an error that names the first field that is wrong, or nil.
func (l Limits) Validate() error {
	for _, f := range []struct {
		name         string
		value, least int
	}{
		{"maxSessions", l.MaxSessions, 0},
		{"maxInFlight", l.MaxInFlight, 0},
		{"maxWaiting", l.MaxWaiting, -1},
		{"maxDials", l.MaxDials, 0},
	} {
		switch {
		case f.value < f.least:
			return fmt.Errorf("%s: is %d, which is less than %d", f.name, f.value, f.least)
		case f.value > maxLimit:
			return fmt.Errorf("%s: is %d, which is more than %d", f.name, f.value, maxLimit)
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"idleTimeout", l.IdleTimeout, -1},
		{"connectTimeout", l.ConnectTimeout, 0},
		{"callTimeout", l.CallTimeout, 0},
		{"drainTimeout", l.DrainTimeout, 0},
		{"closeTimeout", l.CloseTimeout, 0},
		{"handlerTimeout", l.HandlerTimeout, 0},
	} {
		switch {
		case f.value < f.least && f.least < 0:
			return fmt.Errorf("%s: %v is negative: use -1ns for no timeout", f.name, f.value)
		case f.value < f.least:
			return fmt.Errorf("%s: %v is negative", f.name, f.value)
		case f.value > maxTimeout:
			return fmt.Errorf("%s: %v is more than %v, which is ten years", f.name, f.value, maxTimeout)
		}
	}
	return nil
}
