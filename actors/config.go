package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/dispatch"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Config is what the registry and its sessions need to know. There are no
// defaults here: package supervisor fills in every field.
type Config struct {
	Servers  []mcpbridge.Server
	Dialer   mcpbridge.Dialer
	Strategy Strategy
	Logger   *relay.Logger     // of actors and of what leaves them: it never blocks
	Events   *relay.Relay[any] // what goes to the EventStream

	MaxSessions     int // open sessions, those still draining included
	MaxInFlight     int // calls running on one session
	MaxWaiting      int // calls waiting for one session
	MaxWaitingTotal int // calls waiting for all sessions
	MaxDials        int // dials at once to one server

	FailFast bool // calls do not wait for a server that is down

	IdleTimeout    time.Duration // 0 is never
	ConnectTimeout time.Duration
	CallTimeout    time.Duration // for operations without a deadline
	DrainTimeout   time.Duration
	CloseTimeout   time.Duration

	Interceptors []Interceptor // around every operation, the first outermost

	Handler        *actor.PID    // gets the requests of servers, or nil
	HandlerTimeout time.Duration // for its answer
	Subscriber     *actor.PID    // gets the notifications of servers, or nil

	Store     mcpbridge.Store // remembers sessions, or nil
	LeaveOpen bool            // Stop ends no session that can be resumed

	// Strays returns how many answers of servers belong to other connections. It does not
	// block.
	Strays func() uint64

	// Stopped is called once, when the registry has stopped, with the keys
	// whose closing failed.
	Stopped func([]messages.Left)

	dispatcher *dispatch.Dispatcher // of all actors, and of what leaves them

	// probe is called with every message of a session before it is handled.
	// Tests use it to plant bugs.
	probe func(actor.Context)
}
