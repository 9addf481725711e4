package supervisor

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Never turns a timeout off, where that is allowed.
const Never time.Duration = -1

// Config is the configuration of a supervisor. The zero value of every field
// but Servers is useful. It is copied by [Start].
type Config struct {
	// Servers are the MCP servers, each under a name of its own. At least one.
	Servers []mcpbridge.Server

	// MaxSessions is the cap: how many sessions may be open at once, those
	// being opened and those still draining included. When it is reached, the
	// least recently used one makes room. Defaults to 256.
	MaxSessions int
	// MaxInFlight is how many calls run at once on one session. More wait.
	// Defaults to 64.
	MaxInFlight int
	// MaxWaiting is how many calls may wait for one session. More are refused
	// with busy. Defaults to 1024; -1 lets none wait once MaxInFlight are
	// running.
	MaxWaiting int
	// MaxWaitingTotal is how many calls may wait for all sessions together, so that
	// callers of very many keys cannot use up the memory: a call that waits takes about
	// a kilobyte, and several if it is the first one of its key. More are refused with
	// busy, unless their session is open and has room. Defaults to 131072; -1 sets no
	// bound.
	MaxWaitingTotal int
	// MaxDials is how many sessions of one server are opened at once. Lower it
	// for a server that is slow to start sessions. Defaults to 16.
	MaxDials int

	// FailFast makes a call fail with unavailable at once while its server is known
	// to be down, but for one that tries it from time to time. Defaults to false:
	// calls wait for the server until their deadline, and then fail with why it could
	// not be reached.
	FailFast bool

	// IdleTimeout closes a session that nobody used for so long. Defaults to
	// 30 minutes; [Never] keeps them until the cap needs room.
	IdleTimeout time.Duration
	// ConnectTimeout bounds one attempt to open a session, from the start of its
	// process or the first request. Defaults to 30 s.
	ConnectTimeout time.Duration
	// CallTimeout is the deadline of operations that bring none. Defaults to
	// 60 s.
	CallTimeout time.Duration
	// DrainTimeout is how long calls in flight may go on when their session is
	// closed or replaced. Defaults to 10 s.
	DrainTimeout time.Duration
	// CloseTimeout bounds the closing of one connection: the DELETE over HTTP,
	// the end of the process over stdio. Defaults to 5 s.
	CloseTimeout time.Duration

	// Interceptors are around every operation, the first one outermost: to log, to
	// measure, to change, to refuse. Defaults to none.
	Interceptors []actors.Interceptor

	// Handler gets what servers ask: [messages.Elicit], [messages.Sample],
	// [messages.ListRoots]. What it may be asked is in Capabilities. Defaults to
	// nil: servers are told that they cannot ask, and refused if they do.
	Handler *actor.PID
	// HandlerTimeout is how long a server waits for Handler's answer. While a tool
	// asks, its call goes on: give it a deadline that is longer. Defaults to 60 s.
	HandlerTimeout time.Duration
	// Capabilities are what servers are told that they may ask for, by protocol
	// 2025-11-25 or older while a session is opened. Roots are in the field RootsV2:
	// a server that knows roots may put them in the place of its own
	// configuration. Defaults to elicitation, by form, if there is a Handler.
	Capabilities *mcp.ClientCapabilities
	// Subscriber gets every [messages.Notification] but progress, beside the
	// EventStream. It has to keep up. Defaults to nil.
	Subscriber *actor.PID

	// Store remembers sessions across restarts of this process, and the generations of
	// those that have ended: a session over
	// streamable HTTP goes on without a new initialize if its server still knows it,
	// else it has expired. See package resume. It is the caller's to close, after
	// Stop. Each supervisor that runs needs one of its own. Defaults to nil: nothing
	// is remembered.
	Store mcpbridge.Store
	// LeaveOpen makes Stop leave the sessions open on their servers that Store
	// remembers. Defaults to false: Stop ends all.
	LeaveOpen bool

	// The fields below shape the default [Strategy], for faults of one session; see
	// there.

	// BackoffBase is the longest first delay. Defaults to 250 ms.
	BackoffBase time.Duration
	// BackoffMax is the longest delay. Defaults to 3 s.
	BackoffMax time.Duration
	// Budget is how many sessions of a key in a row may expire within seconds of
	// their opening before the key is given up. Defaults to 3; -1 forgives none.
	Budget int
	// BudgetHalfLife is the time after which a failure counts half. Defaults to
	// 1 minute.
	BudgetHalfLife time.Duration
	// CoolDown is how long a key that was given up fails fast before one trial: its
	// credentials were refused, and it has no others, or its sessions expire at once.
	// Defaults to 30 s.
	CoolDown time.Duration

	// Strategy replaces the default one. Defaults to a [Strategy] made of the
	// fields above.
	Strategy actors.Strategy
	// WrapDialer wraps what opens sessions, to observe it or to inject faults.
	// Defaults to nil: no wrapper.
	WrapDialer func(mcpbridge.Dialer) mcpbridge.Dialer
	// Logger takes the log, in a goroutine that ends when there is nothing to log: a
	// writer or a hook that is slow delays nobody. Lines that find thousands of others
	// waiting are dropped and counted (LinesDropped), and a line says how many. Its zero value logs nothing.
	Logger zerolog.Logger
}

// withDefaults returns a copy with all fields set.
func (c Config) withDefaults() Config {
	setDefault(&c.MaxSessions, 256)
	setDefault(&c.MaxInFlight, 64)
	setDefault(&c.MaxWaiting, 1024)
	setDefault(&c.MaxWaitingTotal, 1<<17)
	setDefault(&c.MaxDials, 16)
	setDefault(&c.IdleTimeout, 30*time.Minute)
	setDefault(&c.ConnectTimeout, 30*time.Second)
	setDefault(&c.CallTimeout, time.Minute)
	setDefault(&c.DrainTimeout, 10*time.Second)
	setDefault(&c.CloseTimeout, 5*time.Second)
	setDefault(&c.BackoffBase, 250*time.Millisecond)
	setDefault(&c.BackoffMax, 3*time.Second)
	setDefault(&c.Budget, 3)
	setDefault(&c.BudgetHalfLife, time.Minute)
	setDefault(&c.CoolDown, 30*time.Second)
	setDefault(&c.HandlerTimeout, time.Minute)
	if c.Capabilities == nil && c.Handler != nil {
		c.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{},
		}}
	}
	if c.Strategy == nil {
		c.Strategy = Strategy{
			Base: c.BackoffBase, Max: c.BackoffMax,
			Budget: max(0, c.Budget), HalfLife: c.BudgetHalfLife, CoolDown: c.CoolDown,
		}
	}
	return c
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

const (
	// most is the largest number that is taken: more is a mistake, and sums of such
	// numbers would overflow.
	maxCount = 1 << 24
	// longest is the longest duration that is taken, for the same reasons.
	maxDuration = 10 * 365 * 24 * time.Hour
)

// validate reports the fields that are wrong, after withDefaults.
func (c Config) validate() error {
	errs := validateServers(c.Servers)
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, f := range []struct {
		name  string
		value int
		least int
		most  int
	}{
		{"maxSessions", c.MaxSessions, 1, maxCount},
		{"maxInFlight", c.MaxInFlight, 1, maxCount},
		{"maxWaiting", c.MaxWaiting, -1, maxCount},
		{"maxWaitingTotal", c.MaxWaitingTotal, -1, math.MaxInt},
		{"maxDials", c.MaxDials, 1, maxCount},
		{"budget", c.Budget, -1, math.MaxInt},
	} {
		switch {
		case f.value < f.least:
			wrong("%s: is %d, which is less than %d", f.name, f.value, f.least)
		case f.value > f.most:
			wrong("%s: is %d, which is more than %d", f.name, f.value, f.most)
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"idleTimeout", max(0, c.IdleTimeout)}, // less than 0 is looked at below
		{"connectTimeout", c.ConnectTimeout},
		{"callTimeout", c.CallTimeout},
		{"drainTimeout", c.DrainTimeout},
		{"closeTimeout", c.CloseTimeout},
		{"handlerTimeout", c.HandlerTimeout},
		{"backoffBase", c.BackoffBase},
		{"backoffMax", c.BackoffMax},
		{"budgetHalfLife", c.BudgetHalfLife},
		{"coolDown", c.CoolDown},
	} {
		switch {
		case f.value < 0:
			wrong("%s: %v is negative", f.name, f.value)
		case f.value > maxDuration:
			wrong("%s: %v is more than %v, which is ten years", f.name, f.value, maxDuration)
		}
	}
	for i, f := range c.Interceptors {
		if f == nil {
			wrong("interceptors[%d]: is nil", i)
		}
	}
	if caps := c.Capabilities; caps != nil && c.Handler == nil && (caps.Elicitation != nil || caps.Sampling != nil) {
		wrong("handler: is nil, and capabilities has what only a handler can answer")
	}
	if c.LeaveOpen && c.Store == nil {
		wrong("leaveOpen: nobody would find the sessions again without a store")
	}
	switch {
	case c.IdleTimeout < 0 && c.IdleTimeout != Never:
		wrong("idleTimeout: %v is negative: use -1ns, or Never, for no timeout", c.IdleTimeout)
	case c.BackoffMax < c.BackoffBase:
		wrong("backoffMax: %v is less than backoffBase, %v", c.BackoffMax, c.BackoffBase)
	}
	return errors.Join(errs...)
}

// validateServers reports the servers that are wrong.
func validateServers(servers []mcpbridge.Server) (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(servers) == 0 {
		wrong("servers: is empty: configure at least one")
	}
	seen := map[string]int{}
	for i, srv := range servers {
		if err := srv.Validate(); err != nil {
			wrong("servers[%d] %q: %w", i, srv.Name, err)
		}
		if first, ok := seen[srv.Name]; ok {
			wrong("servers[%d] %q: name: is that of servers[%d] already", i, srv.Name, first)
			continue
		}
		seen[srv.Name] = i
	}
	return errs
}
