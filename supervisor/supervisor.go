package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	_ "github.com/mcpactor/mcpactor/actors/registry" // sets protocol.StartRegistry
	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/limits"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/internal/storelimit"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/dialer"
	"github.com/mcpactor/mcpactor/messages"
)

// Supervisor runs MCP sessions in the actor system of the caller. It is made by [Start].
// Its methods may be called from any goroutine. Those of a nil Supervisor return an error
// or nil.
type Supervisor struct {
	target      *target // takes all commands, also when the registry has stopped
	system      *actor.ActorSystem
	pid         *actor.PID // that of target
	bridge      dial.Bridge
	logger      *relay.Logger
	events      *relay.Relay[any] // to the EventStream
	post        *relay.Post       // to actors and processes of the user
	intercepted operationCount    // operations that run in interceptors
	book        *callbook.Book    // of durable calls, and of those that wait for an approval
	stop        sync.Once
	done        chan struct{}   // closed when the actors have stopped
	left        []messages.Left // written before done is closed
	servers     atomic.Pointer[configured]

	capabilities *mcp.ClientCapabilities // of the configuration; read-only
}

// Start starts a supervisor in an actor system, which it never shuts down. With nil it makes a
// system of its own that logs nothing, for programs without other actors. The supervisor
// takes commands when Start returns. Sessions are opened on first use. The error names the
// invalid fields of cfg.
func Start(system *actor.ActorSystem, cfg Config) (*Supervisor, error) {
	if system == nil {
		system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	}
	cfg = cfg.WithDefaults()
	if err := errors.Join(cfg.validate(), reachable(system, &cfg)); err != nil {
		return nil, fmt.Errorf("supervisor: %w", err)
	}
	logger := relay.NewLogger(cfg.Logger)
	bridge := dialer.New(dial.BridgeConfig{
		Servers: cfg.Servers, Capabilities: cfg.Capabilities, Logger: slog.New(zerolog.NewSlogHandler(logger.Logger)),
	})
	release, ok := reserve(cfg.Store)
	if !ok {
		return nil, errors.New("supervisor: store: is in use by another supervisor that runs: give each supervisor a store of its own")
	}
	store := cfg.Store
	if store != nil {
		store = storelimit.New(store)
	}
	s := &Supervisor{
		system: system, bridge: bridge, done: make(chan struct{}), logger: logger, capabilities: cfg.Capabilities,
	}
	s.target = newTarget(system, nil, s.done)
	s.book = newBook(cfg, store, logger, &Client{s.target})
	s.noteServers(cfg.Servers)
	// The functions do not lead to s: the PID would never be freed.
	s.events = relay.New(maxEvents, func(event any) { system.EventStream.Publish(event) }, func(n uint64) {
		logger.Warn().Uint64("events", n).Msg("events were dropped, because their handlers were too slow")
	}, func(event, reason any, stack []byte) {
		logger.Error().Type("event", event).Interface("reason", reason).Bytes("stack", stack).Msg("event handler panicked")
	})
	s.post = relay.NewPost(system, s.events, func(message, reason any, stack []byte) {
		logger.Error().Type("message", message).Interface("reason", reason).Bytes("stack", stack).Msg("the process of a caller panicked")
	})
	pid, free := protocol.StartRegistry(system, protocol.Config{
		Name: cfg.Name, Servers: cfg.Servers, Dialer: cfg.seam.Dialer(bridge), Strategy: cfg.Strategy, Logger: s.logger, Events: s.events, Post: s.post,
		MaxSessions: limits.Of(cfg.MaxSessions), MaxInFlight: limits.Of(cfg.MaxInFlight), Bounds: cfg.Bounds, MaxRepeats: max(0, cfg.MaxRepeats),
		MaxWaiting: limits.Of(cfg.MaxWaiting), MaxWaitingTotal: limits.Of(cfg.MaxWaitingTotal), MaxDials: limits.Of(cfg.MaxDials), MaxStarts: limits.Of(cfg.MaxStarts), FailFast: cfg.FailFast, Random: rand.Float64,
		Tenant: cfg.Tenant, MaxSessionsPerTenant: max(0, cfg.MaxSessionsPerTenant),
		IdleTimeout: max(0, cfg.IdleTimeout), ConnectTimeout: limits.Of(cfg.ConnectTimeout), CallTimeout: limits.Of(cfg.CallTimeout),
		DrainTimeout: limits.Of(cfg.DrainTimeout), CloseTimeout: limits.Of(cfg.CloseTimeout),
		Interceptors: s.intercepted.around(cfg.Interceptors),
		Capabilities: cfg.Capabilities, Handler: cfg.Handler, HandlerTimeout: limits.Of(cfg.HandlerTimeout), HandleGrace: limits.Of(cfg.HandleGrace), Subscriber: cfg.Subscriber,
		Store: store, Book: s.book, LeaveOpen: cfg.LeaveOpen, Strays: bridge.Strays, Skipped: bridge.Skipped, Forget: bridge.Forget,
		Stopped: func(left []messages.Left) {
			bridge.Close()
			s.book.Close()
			release()
			s.logStopped(len(left))
			s.left = left
			close(s.done)
			s.target.kept.close()
		},
	})
	if !free {
		bridge.Close()
		release()
		return nil, fmt.Errorf("supervisor: name: an actor of the system has the name %q already: choose another one", cfg.Name)
	}
	s.pid, s.target.pid = pid, pid
	s.logger.Info().Int("servers", len(cfg.Servers)).Int("cap", cfg.MaxSessions).Msg("supervisor started")
	return s, nil
}

// logStopped writes the last line of the supervisor. left is how many sessions could not be
// closed.
func (s *Supervisor) logStopped(left int) {
	if left > 0 {
		s.logger.Warn().Int("left", left).Msg("supervisor stopped")
		return
	}
	s.logger.Info().Msg("supervisor stopped")
}

// stores contains the stores of the supervisors that run. Supervisors that share a store
// would close each other's MCP sessions.
var stores sync.Map

// reserve marks a store as used until release is called. ok is false if it is used
// already.
func reserve(store mcpbridge.Store) (release func(), ok bool) {
	if store == nil || !reflect.ValueOf(store).Comparable() {
		return func() {}, true
	}
	_, taken := stores.LoadOrStore(store, true)
	return func() { stores.Delete(store) }, !taken
}

// reachable returns an error for each actor of cfg that is not in the system.
func reachable(system *actor.ActorSystem, cfg *Config) error {
	var errs []error
	for name, pid := range map[string]*actor.PID{"handler": cfg.Handler, "subscriber": cfg.Subscriber} {
		if pid == nil {
			continue
		}
		if _, there := system.ProcessRegistry.Get(pid); !there {
			errs = append(errs, fmt.Errorf("%s: %s/%s is not an actor of this system: spawn it there first", name, pid.Address, pid.Id))
		}
	}
	return errors.Join(errs...)
}

// errNotStarted is the error for a Supervisor that is not from Start.
var errNotStarted = errors.New("supervisor: is not started: use the one that Start returns when its error is nil")

// errNoContext is the error for a nil context.
var errNoContext = errors.New("supervisor: the context is nil: use context.Background")

// started reports whether the supervisor is from Start.
func (s *Supervisor) started() bool { return s != nil && s.pid != nil }

// PID returns the PID that takes the commands of package messages. It stays valid: after
// Stop, commands are answered with [messages.CodeClosed].
func (s *Supervisor) PID() *actor.PID {
	if !s.started() {
		return nil
	}
	return s.pid
}

// System returns the actor system that the supervisor was started in.
func (s *Supervisor) System() *actor.ActorSystem {
	if !s.started() {
		return nil
	}
	return s.system
}

// Flush waits until the handlers of Subscribe have returned from the events so far, or ctx ends. A handler must not call it.
func (s *Supervisor) Flush(ctx context.Context) {
	if s.started() {
		s.events.Flush(ctx)
	}
}

// Subscribe has handle called with each event of this supervisor, in the order of each session,
// until cancel is called. It selects them from the EventStream of the actor system, which has
// the events of all supervisors. See [messages.Event] for what a slow handle misses.
func (s *Supervisor) Subscribe(handle func(messages.Event)) (cancel func()) {
	if !s.started() {
		return func() {}
	}
	stream := s.system.EventStream
	subscription := stream.Subscribe(func(event any) {
		if e, ok := event.(messages.Event); ok && e.GetStamp().Supervisor == s.pid.Id {
			handle(e)
		}
	})
	return func() { stream.Unsubscribe(subscription) }
}

// Client returns a client for Go code that is not an actor. The call is cheap.
func (s *Supervisor) Client() *Client {
	if !s.started() {
		return &Client{}
	}
	return &Client{s.target}
}

// CallBook returns the records of calls, for package toolset.
func (s *Supervisor) CallBook() *callbook.Book {
	if !s.started() {
		return nil
	}
	return s.book
}

// configured are the servers of the configuration.
type configured struct {
	names   []string
	servers []mcpbridge.Server
}

// Servers returns the names of the servers that are configured, in their order. A [Supervisor.Reload]
// changes them. Read-only: the next call returns the same slice until then.
func (s *Supervisor) Servers() []string {
	if !s.started() {
		return nil
	}
	return s.servers.Load().names
}

// Server returns the configuration of a server, or nil if there is none with the name. Read-only.
func (s *Supervisor) Server(name string) *mcpbridge.Server {
	if !s.started() {
		return nil
	}
	now := s.servers.Load()
	if i := slices.Index(now.names, name); i >= 0 {
		return &now.servers[i]
	}
	return nil
}

// noteServers keeps the configuration for Servers and Server.
func (s *Supervisor) noteServers(servers []mcpbridge.Server) {
	names := make([]string, len(servers))
	for i, srv := range servers {
		names[i] = srv.Name
	}
	s.servers.Store(&configured{names, servers})
}

// Reload replaces the list of servers. The sessions of servers that were removed or
// changed are closed as by [messages.CloseServer], and Reload returns when they are
// closed. Other sessions stay open: if only the Limits of their server have changed, the new
// ones apply from the next call, dial or close on, and a lower MaxSessions closes idle
// sessions at once. HTTPClient, InMemory and Auth are compared by
// identity, all other fields by value. If servers is invalid, nothing changes, and the
// error names the invalid fields.
//
// Reload first encodes what the servers send when they open sessions, which runs your MarshalJSON. If ctx ends before that
// is done, nothing changes. If it ends later, the reload continues. In both cases Reload returns the error of ctx.
func (s *Supervisor) Reload(ctx context.Context, servers []mcpbridge.Server) (*messages.Closed, error) {
	switch {
	case !s.started():
		return nil, errNotStarted
	case ctx == nil:
		return nil, errNoContext
	}
	if err := errors.Join(validateServers(servers)...); err != nil {
		return nil, fmt.Errorf("supervisor: %w", err)
	}
	servers = slices.Clone(servers)
	box := protocol.NewFuture(s.system, nil)
	defer box.Close()
	ready := make(chan *protocol.Reload, 1)
	go func() {
		ready <- &protocol.Reload{Servers: servers, Classes: protocol.ClassesOf(servers, s.capabilities), Apply: func() {
			s.bridge.Set(servers)
			s.noteServers(servers)
		}}
	}()
	select {
	case reload := <-ready:
		s.system.Root.RequestWithCustomSender(s.pid, reload, box.PID)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case msg := <-box.Reply:
		if failure, failed := msg.(*messages.Failure); failed {
			failure.Op = "Reload"
			return nil, failure
		}
		s.bridge.Prune()
		return msg.(*messages.Closed), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Stop closes all sessions and stops the actors. No new call is accepted, and running
// calls have the drain timeout. Stop returns when all is closed or when ctx ends; in the
// latter case closing continues, and another Stop can wait for it. The error, a
// [*StopError], says what could not be closed. Stop may be called more than once.
//
// Queued events and log lines have 2 more seconds, and so have interceptors that do not
// return. If an event handler or an interceptor calls Stop, Stop would wait for its own
// caller. It returns at the end of these 2 seconds, with an error that says so. A handler,
// writer or interceptor that never returns keeps its goroutine.
func (s *Supervisor) Stop(ctx context.Context) error {
	switch {
	case !s.started():
		return errNotStarted
	case ctx == nil:
		return errNoContext
	}
	s.stop.Do(func() { s.system.Root.Send(s.pid, &protocol.Stop{}) })
	select {
	case <-s.done:
	case <-ctx.Done():
		// The registry answers at once, unless it has stopped, or a function of the configuration blocks it.
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), inspectTimeout)
		defer cancel()
		snap, failure := ask[*messages.Snapshot](limited, s.Client(), &messages.Inspect{Limit: -1})
		if errors.Is(failure, messages.CodeClosed) {
			<-s.done // it is about to be closed, and left to be written
			break
		}
		err := &StopError{Cause: context.Cause(ctx)}
		if failure != nil {
			err.Cause = errors.Join(err.Cause, failure)
			return err
		}
		for _, one := range snap.Sessions {
			err.Left = append(err.Left, messages.Left{Key: one.Key, Reason: "it is still closing"})
		}
		return err
	}
	err := &StopError{Left: s.left, Stuck: s.stuck(ctx)}
	if len(err.Left)+len(err.Stuck) == 0 {
		return nil
	}
	return err
}

const (
	// maxEvents bounds the events that are queued for slow handlers.
	maxEvents = 1 << 14
	// inspectTimeout is how long Stop asks for what is left.
	inspectTimeout = time.Second
	// flushTimeout is how long handlers and writers have for the last events and lines.
	flushTimeout = 2 * time.Second
)

// stuck waits for the last events and log lines, and returns which code of the caller does
// not return.
func (s *Supervisor) stuck(ctx context.Context) (stuck []string) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if n := s.intercepted.wait(ctx); n > 0 {
		stuck = append(stuck, fmt.Sprintf("the interceptors of %d operations do not return", n))
	}
	if !s.events.Flush(ctx) {
		stuck = append(stuck, "an event handler does not return")
	}
	if !s.post.Flush(ctx) {
		stuck = append(stuck, "a process that was sent a message does not return")
	}
	if !s.logger.Flush(ctx) {
		stuck = append(stuck, "the log writer does not return")
	}
	return stuck
}

// StopError says what [Supervisor.Stop] could not do.
type StopError struct {
	// Left are the keys that could not be closed, and the handles that could not be released, with the reason.
	Left []messages.Left
	// Stuck says in words which code of the caller has not returned: an event handler, an
	// interceptor, a process that was sent a message, the writer of the log.
	Stuck []string
	// Cause is why Stop returned before all was closed, or nil.
	Cause error
}

// Error lists the keys that are left, and the code that has not returned.
func (e *StopError) Error() string {
	if e == nil {
		return "no error: a nil *supervisor.StopError"
	}
	var b strings.Builder
	b.WriteString("supervisor: ")
	handles := 0
	for _, left := range e.Left {
		if left.Handle != "" {
			handles++
		}
	}
	sessions := len(e.Left) - handles
	if sessions > 0 || len(e.Left)+len(e.Stuck) == 0 {
		fmt.Fprintf(&b, "%d sessions could not be closed", sessions)
	}
	if handles > 0 {
		if sessions > 0 {
			b.WriteString(", and ")
		}
		fmt.Fprintf(&b, "%d handles could not be released", handles)
	}
	for i, left := range e.Left {
		if i == 10 {
			b.WriteString("; …")
			break
		}
		if b.WriteString("; " + left.Key.String()); left.Handle != "" {
			b.WriteString(", a handle of " + left.Handle)
		}
		b.WriteString(": " + left.Reason)
	}
	for i, stuck := range e.Stuck {
		if len(e.Left) > 0 || i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(stuck)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, " (%v)", e.Cause)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *StopError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Cause
}
