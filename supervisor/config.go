package supervisor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/limits"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Server is the configuration of one MCP server: an alias, so that most programs need no
// import of package mcpbridge.
type Server = mcpbridge.Server

// An interceptor wraps operations. These are aliases, too.
type (
	// Interceptor is [actors.Interceptor].
	Interceptor = actors.Interceptor
	// Runner is [actors.Runner].
	Runner = actors.Runner
)

// Config is the configuration of a supervisor. The zero value of every field but Servers is
// useful. In numbers and durations that are limits, 0 is the default, -1 is no limit, and any other negative value is
// invalid. [Start] copies it.
type Config struct {
	// Servers are the MCP servers, with distinct names. There must be at least one.
	Servers []Server

	// Name is the id of the supervisor's PID. Results, failures, events and snapshots have it, so
	// that it tells supervisors apart. Set it if you collect these of several processes. It has
	// at most 128 bytes, is printable, and no other actor of the actor system may have it. After
	// Stop another supervisor may take it; until then, the PID still answers. Defaults to a name
	// that is unique in the actor system.
	Name string

	// MaxSessions is the cap: how many sessions may be open at once, including those that
	// dial and those that drain. When it is reached, the least recently used session is
	// evicted. Defaults to 256.
	MaxSessions int
	// Tenant returns the tenant that a key belongs to, such as a customer. Sessions of
	// different tenants take turns to dial, and each tenant has the quota
	// MaxSessionsPerTenant. An empty tenant has no quota. The function must be fast, must
	// return the same for the same key, and is called from one goroutine. See
	// [ScopePrefix]. Defaults to nil: there are no tenants.
	Tenant func(messages.Key) string
	// MaxSessionsPerTenant is how many sessions of one tenant may be open at once, on all
	// servers together, including those that dial and those that drain. At its quota, the
	// least recently used session of the tenant itself is evicted, and none of others. Calls
	// of a tenant that wait are bounded as well: by as many as its quota of sessions may
	// have. Defaults to 0: no quota.
	MaxSessionsPerTenant int
	// MaxInFlight is how many calls of one session run at once. Further calls wait.
	// Defaults to 64.
	MaxInFlight int
	// MaxWaiting is how many calls of one session may wait. Further calls fail with busy.
	// Defaults to 1024.
	MaxWaiting int
	// MaxWaitingTotal is how many calls may wait, over all sessions. It bounds the memory
	// that callers of very many keys can use: a waiting call takes about a kilobyte, and the
	// first one of a key several. Further calls fail with busy, unless their session is open
	// and can run them at once. Defaults to 131072.
	MaxWaitingTotal int
	// MaxDials is how many sessions of one server dial at once. Lower it for a server that
	// opens sessions slowly. Defaults to 16.
	MaxDials int
	// MaxStarts is how many processes of stdio servers may start at once, of all servers together. A
	// process starts until it answers, or its dial fails. A server may use a quarter of the places
	// that no other server uses, or half once it has answered. All servers that are down may use half
	// of MaxStarts together, and starts younger than 200 ms a third. While a session waits for its
	// turn, its ConnectTimeout does not run. Lower it if processes that need much processor time
	// exceed ConnectTimeout when many start together. Raise it if they only sleep. Defaults to 6 for
	// each processor that Go uses, see [runtime.GOMAXPROCS].
	MaxStarts int

	// Bounds bound how often the tools of each server are called, unless its [Limits] have bounds of their own. Defaults to none.
	// Read-only.
	Bounds []Bound
	// MaxRepeats is how often a session may call a tool with the same arguments and get the same result, one call after the other, see
	// [Limits]. Defaults to -1: no limit. A toolset has a limit of its own.
	MaxRepeats int

	// FailFast makes calls fail with unavailable at once while their server is known to be
	// down, apart from the calls whose dials probe it. While a proxy in front of the server
	// answers in its place, calls of open sessions fail within half a second, in which the
	// server is asked. Lists with Fresh wait all the same. Defaults to false: calls wait for the server until their deadline, and
	// then fail with the last cause.
	FailFast bool

	// IdleTimeout is the time without calls after which a session is closed. Defaults to 30
	// minutes.
	IdleTimeout time.Duration
	// ConnectTimeout bounds one dial, from the start of its process or its first request.
	// Defaults to 30 s.
	ConnectTimeout time.Duration
	// CallTimeout is the timeout of operations that have no deadline. Defaults to 60 s.
	CallTimeout time.Duration
	// DrainTimeout is how long running calls may take when their session is closed or
	// restarted. Defaults to 10 s.
	DrainTimeout time.Duration
	// CloseTimeout bounds the closing of one connection: the DELETE over HTTP, or the end of
	// the process over stdio, and its [mcpbridge.Cleanup]. Defaults to 5 s.
	CloseTimeout time.Duration

	// HandleGrace is how long after a start the scopes of an earlier process have to come back, with a call or a [messages.Bind], before the
	// handles that they hold are released, see [mcpbridge.Handle]. Defaults to 1 minute.
	HandleGrace time.Duration

	// Interceptors wrap every operation, the first one outermost: to log, measure, change
	// or refuse it. Defaults to none.
	Interceptors []Interceptor

	// Handler gets the requests of servers: [messages.Elicit], [messages.Sample] and
	// [messages.ListRoots], as far as Capabilities declares them. A scope or an operation may
	// have a handler of its own, see [messages.Bind] and [messages.Header]. Defaults to nil: no
	// capability is declared, and requests are refused that have no other handler.
	Handler *actor.PID
	// HandlerTimeout is how long a server waits for the answer of a handler, but not beyond the
	// deadline of the call that the request belongs to. Defaults to 60 s.
	HandlerTimeout time.Duration
	// Capabilities are the client capabilities that are declared to servers. Up to protocol
	// 2025-11-25, initialize declares them. Roots are in the field RootsV2: a server that
	// supports roots may use them instead of its own configuration. Defaults to elicitation
	// by form if there is a Handler. Set it if only scopes or operations have handlers. A scope may declare
	// others: see [messages.Bind].
	Capabilities *mcp.ClientCapabilities
	// Subscriber gets every [messages.Notification] but progress, in addition to the
	// EventStream. Its mailbox is not bounded. Defaults to nil.
	Subscriber *actor.PID

	// Store keeps MCP sessions over streamable HTTP, the generations of all keys, the lists that scopes share, see
	// [messages.Listing], and which commands do not answer server/discover, across restarts of this process. After a restart an MCP session is resumed if its
	// server still has it; otherwise it has expired. See package resume. The caller closes
	// the store after Stop. Running supervisors must not share a store. Defaults to nil:
	// nothing is kept.
	Store mcpbridge.Store
	// CallStore keeps the records of durable calls, see [messages.CallTool.Durable], and of the calls of toolsets that wait for an
	// approval. Several supervisors, also of several processes, may share it if it is a [mcpbridge.Swapper]. Defaults to Store.
	CallStore mcpbridge.Store
	// KeepResults is how long CallStore keeps the result of a call, for those who ask for the call again, and up to an hour more. Later
	// it is only known that the call has run. Defaults to 24 h; -1 is no limit.
	KeepResults time.Duration
	// MaxKeptResult bounds the results that are kept, in bytes of JSON each. Defaults to 64 KiB; -1 is no limit.
	MaxKeptResult int
	// DropResults keeps no results, which are secrets at rest, and of failures only their codes.
	DropResults bool
	// Resolve finds out what became of a durable call that was sent and not answered, such as by reading with client, in the
	// same scope, what the call would have changed. It returns the result that the call has had, or would have, if it has run. It is called
	// when the call is lost, or later when somebody asks for it again, also in another process, until it returns without an
	// error. If it returns [messages.ResolvedUnknown], the call is never sent again. ctx ends after 30 s, or at the deadline of the call. It may be
	// called by several goroutines at once. Defaults to nil: such a call fails with [messages.CodeLost].
	Resolve func(ctx context.Context, client *Client, call *messages.CallTool) (messages.Resolution, *mcp.CallToolResult, error)
	// LeaveOpen makes Stop leave an MCP session open on its server if Store has a record of
	// it. Call Stop before anything else ends: the end of an actor that owns a scope, see [messages.Bind],
	// closes the sessions of the scope. Then close the store, and then shut down the actor system. Defaults to
	// false: Stop closes all MCP sessions.
	LeaveOpen bool

	// BackoffBase and the next four fields configure [DefaultStrategy], which documents the rules.
	// Defaults to 250 ms. If it is more than BackoffMax, raise that with it.
	BackoffBase time.Duration
	// BackoffMax defaults to 3 s. It must not be less than BackoffBase.
	BackoffMax time.Duration
	// Budget defaults to 3.
	Budget int
	// BudgetHalfLife defaults to 1 minute.
	BudgetHalfLife time.Duration
	// CoolDown defaults to 30 s.
	CoolDown time.Duration

	// Strategy decides about faults. Defaults to a [DefaultStrategy] with the fields above, which
	// [Config.WithDefaults] sets, so that another one can wrap it. Later changes of these fields apply
	// until you set Strategy to a different value. Then they have no effect, even if it is a
	// DefaultStrategy.
	Strategy Strategy
	// Logger writes the log, in a goroutine of its own, so that a slow writer or hook delays
	// nothing else. While thousands of lines are queued, further lines are dropped and counted
	// ([messages.Counters.LinesDropped]). If more than 100 lines come within 10 s that differ
	// only in their fields, and have the same server, the rest is summed up in one line with
	// the field repeated. What the MCP Go SDK logs comes through Logger too. [SlogLogger] makes
	// one of log/slog, and [WithSystemLogger] gives it to Proto.Actor. The zero value logs
	// nothing.
	Logger zerolog.Logger

	derived Strategy // what WithDefaults has set as Strategy, or nil

	seam dial.Seam // what the supervisor dials with, in tests and in a cluster
}

func init() {
	dial.SeamOf = func(cfg any) *dial.Seam { return &cfg.(*Config).seam }
}

// WithDefaults returns the configuration with the defaults of the fields that are zero.
func (c Config) WithDefaults() Config {
	setDefault(&c.MaxSessions, 256)
	setDefault(&c.MaxInFlight, 64)
	setDefault(&c.MaxWaiting, 1024)
	setDefault(&c.MaxWaitingTotal, 1<<17)
	setDefault(&c.MaxRepeats, -1)
	setDefault(&c.MaxDials, 16)
	setDefault(&c.MaxStarts, 6*runtime.GOMAXPROCS(0))
	setDefault(&c.IdleTimeout, 30*time.Minute)
	setDefault(&c.ConnectTimeout, 30*time.Second)
	setDefault(&c.CallTimeout, time.Minute)
	setDefault(&c.DrainTimeout, 10*time.Second)
	setDefault(&c.CloseTimeout, 5*time.Second)
	setDefault(&c.HandlerTimeout, time.Minute)
	setDefault(&c.HandleGrace, time.Minute)
	setDefault(&c.KeepResults, 24*time.Hour)
	setDefault(&c.MaxKeptResult, 64<<10)
	if c.Capabilities == nil && c.Handler != nil {
		c.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{},
		}}
	}
	s := c.defaultStrategy().withDefaults()
	c.BackoffBase, c.BackoffMax, c.Budget, c.BudgetHalfLife, c.CoolDown = s.BackoffBase, s.BackoffMax, s.Budget, s.BudgetHalfLife, s.CoolDown
	if c.Strategy == nil || c.Strategy == c.derived { // derived is of a type that can be compared
		c.Strategy, c.derived = s, s
	}
	return c
}

// defaultStrategy returns the strategy that the fields of the configuration describe.
func (c Config) defaultStrategy() DefaultStrategy {
	return DefaultStrategy{c.BackoffBase, c.BackoffMax, c.Budget, c.BudgetHalfLife, c.CoolDown}
}

// setDefault sets a field that is zero.
func setDefault[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// maxName is the longest name, in bytes.
const maxName = 128

// validate returns an error for each field that is invalid. It must be called after
// WithDefaults.
func (c Config) validate() error {
	errs := validateServers(c.Servers)
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case len(c.Name) > maxName:
		wrong("name: has %d bytes, at most %d are allowed", len(c.Name), maxName)
	case !utf8.ValidString(c.Name):
		wrong("name: is not valid UTF-8")
	case strings.ContainsFunc(c.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		wrong("name: has a character that is not printable")
	}
	errs = append(errs,
		limits.Check("maxSessions", c.MaxSessions), limits.Check("maxSessionsPerTenant", c.MaxSessionsPerTenant),
		limits.Check("maxInFlight", c.MaxInFlight), limits.Check("maxWaiting", c.MaxWaiting),
		limits.Check("maxWaitingTotal", c.MaxWaitingTotal), limits.Check("maxDials", c.MaxDials), limits.Check("maxStarts", c.MaxStarts),
		limits.Check("idleTimeout", c.IdleTimeout), limits.Check("connectTimeout", c.ConnectTimeout),
		limits.Check("callTimeout", c.CallTimeout), limits.Check("drainTimeout", c.DrainTimeout),
		limits.Check("closeTimeout", c.CloseTimeout), limits.Check("handlerTimeout", c.HandlerTimeout), limits.Check("handleGrace", c.HandleGrace),
		limits.Check("maxRepeats", c.MaxRepeats), limits.Check("keepResults", c.KeepResults), limits.Check("maxKeptResult", c.MaxKeptResult),
		c.defaultStrategy().check(""),
	)
	for i, b := range c.Bounds {
		if err := b.Validate(); err != nil {
			wrong("bounds[%d].%w", i, err)
		}
	}
	switch s := c.Strategy.(type) {
	case DefaultStrategy:
		if c.Strategy != c.derived {
			errs = append(errs, s.withDefaults().check("strategy."))
		}
	case *DefaultStrategy:
		if s == nil {
			wrong("strategy: is a nil pointer")
		} else {
			errs = append(errs, s.withDefaults().check("strategy."))
		}
	}
	for i, f := range c.Interceptors {
		if f == nil {
			wrong("interceptors[%d]: is nil", i)
		}
	}
	if c.MaxSessionsPerTenant > 0 && c.Tenant == nil {
		wrong("tenant: is nil, but maxSessionsPerTenant is %d: say which tenant a key belongs to", c.MaxSessionsPerTenant)
	}
	if c.LeaveOpen && c.Store == nil {
		wrong("leaveOpen: needs a store, without which the sessions cannot be found again")
	}
	return errors.Join(errs...)
}

// check returns an error that names each field that is invalid, with a prefix, or nil.
func (s DefaultStrategy) check(prefix string) error {
	errs := []error{
		limits.Check(prefix+"backoffBase", s.BackoffBase), limits.Check(prefix+"backoffMax", s.BackoffMax),
		limits.Check(prefix+"budget", s.Budget), limits.Check(prefix+"budgetHalfLife", s.BudgetHalfLife),
		limits.Check(prefix+"coolDown", s.CoolDown),
	}
	switch {
	case s.BackoffBase == -1:
		errs = append(errs, fmt.Errorf("%sbackoffBase: is negative", prefix))
	case limits.Of(s.BackoffMax) < s.BackoffBase:
		errs = append(errs, fmt.Errorf("%sbackoffMax: %v is less than backoffBase, %v", prefix, s.BackoffMax, s.BackoffBase))
	}
	return errors.Join(errs...)
}

// validateServers returns an error for each server that is invalid.
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
			wrong("servers[%d] %q: name: is already that of servers[%d]", i, srv.Name, first)
			continue
		}
		seen[srv.Name] = i
	}
	return errs
}
