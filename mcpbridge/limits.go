package mcpbridge

import (
	"cmp"
	"fmt"
	"time"

	"github.com/mcpactor/mcpactor/internal/limits"
)

// Limits are the bounds and timeouts of one server. The zero value of a field but MaxSessions
// means that the server has the value of the field with the same name in the configuration of
// the supervisor; -1 is no limit. The limits may differ between two servers with the same endpoint.
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
	// MaxWaiting is how many calls of one session may wait. Further calls fail with busy.
	MaxWaiting int
	// MaxDials is how many sessions of the server dial at once.
	MaxDials int

	// IdleTimeout is the time without calls after which a session is closed.
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

	// Bounds bound how often tools are called; all of them apply. nil stands for those of the supervisor, and an empty slice for none.
	// Read-only.
	Bounds []Bound
	// MaxRepeats is how often a session may call a tool with the same arguments and get the same result or error, one call after the other.
	// The next such call is not sent, and fails with [messages.CodeRateLimited], unless a minute has passed. Any other call and any other
	// result begin a new row. The session keeps the last result for that. 0 stands for the value of the supervisor, and -1 for no limit.
	MaxRepeats int
}

// Validate returns an error that names the first field that is wrong, or nil.
func (l Limits) Validate() error {
	for i, b := range l.Bounds {
		if err := b.Validate(); err != nil {
			return fmt.Errorf("bounds[%d].%w", i, err)
		}
	}
	return cmp.Or(
		limits.Check("maxSessions", l.MaxSessions), limits.Check("maxInFlight", l.MaxInFlight),
		limits.Check("maxWaiting", l.MaxWaiting), limits.Check("maxDials", l.MaxDials),
		limits.Check("idleTimeout", l.IdleTimeout), limits.Check("connectTimeout", l.ConnectTimeout),
		limits.Check("callTimeout", l.CallTimeout), limits.Check("drainTimeout", l.DrainTimeout),
		limits.Check("closeTimeout", l.CloseTimeout), limits.Check("handlerTimeout", l.HandlerTimeout),
		limits.Check("maxRepeats", l.MaxRepeats),
	)
}
