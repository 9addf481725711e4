package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/dialer"
	"github.com/mcpactor/mcpactor/messages"
)

// Supervisor runs MCP sessions in the caller's actor system. [Start] makes it. Its
// methods may be called from any goroutine. Those of a nil Supervisor return an error.
type Supervisor struct {
	system       *actor.ActorSystem
	pid          *actor.PID
	bridge       mcpbridge.Bridge
	logger       *relay.Logger
	events       *relay.Relay[any] // what goes to the EventStream
	intercepting running           // operations that are with the interceptors
	stop         sync.Once
	done         chan struct{}   // closed when the registry has stopped
	left         []messages.Left // written before done is closed

	inboxes chan *actors.Inbox // to be used again
}

// Start starts a supervisor in a system, which stays the caller's: it is never
// shut down from here. The supervisor takes messages when Start returns; no
// session is opened before it is used. The error names the fields of cfg that
// are wrong.
func Start(system *actor.ActorSystem, cfg Config) (*Supervisor, error) {
	cfg = cfg.withDefaults()
	err := cfg.validate()
	if system == nil {
		err = errors.Join(errors.New("system: is nil: make one with actor.NewActorSystem"), err)
	} else {
		err = errors.Join(err, reachable(system, &cfg))
	}
	if err != nil {
		return nil, fmt.Errorf("supervisor: %w", err)
	}
	bridge := dialer.New(cfg.Servers, cfg.Capabilities)
	var dialer mcpbridge.Dialer = bridge
	if cfg.WrapDialer != nil {
		if dialer = cfg.WrapDialer(dialer); dialer == nil {
			return nil, errors.New("supervisor: wrapDialer: returned nil: return the dialer it got, or one around it")
		}
	}
	release, ok := reserve(cfg.Store)
	if !ok {
		return nil, errors.New("supervisor: store: is that of another supervisor, which runs: give each one of its own")
	}
	s := &Supervisor{
		system: system, bridge: bridge, done: make(chan struct{}), inboxes: make(chan *actors.Inbox, maxInboxes),
		logger: relay.NewLogger(cfg.Logger),
	}
	s.events = relay.New(maxEvents, func(event any) { system.EventStream.Publish(event) }, func(n uint64) {
		s.logger.Warn().Uint64("events", n).Msg("events were dropped, because their handlers were too slow")
	}, func(event, reason any, stack []byte) {
		s.logger.Error().Type("event", event).Interface("reason", reason).Bytes("stack", stack).Msg("event handler panicked")
	})
	s.pid = actors.Start(system, actors.Config{
		Servers: cfg.Servers, Dialer: dialer, Strategy: cfg.Strategy, Logger: s.logger, Events: s.events,
		MaxSessions: cfg.MaxSessions, MaxInFlight: cfg.MaxInFlight,
		MaxWaiting: max(0, cfg.MaxWaiting), MaxWaitingTotal: unbounded(cfg.MaxWaitingTotal), MaxDials: cfg.MaxDials, FailFast: cfg.FailFast,
		IdleTimeout: max(0, cfg.IdleTimeout), ConnectTimeout: cfg.ConnectTimeout, CallTimeout: cfg.CallTimeout,
		DrainTimeout: cfg.DrainTimeout, CloseTimeout: cfg.CloseTimeout,
		Interceptors: s.intercepting.around(cfg.Interceptors), Handler: cfg.Handler, HandlerTimeout: cfg.HandlerTimeout, Subscriber: cfg.Subscriber,
		Store: cfg.Store, LeaveOpen: cfg.LeaveOpen, Strays: bridge.Strays,
		Stopped: func(left []messages.Left) {
			bridge.Close()
			release()
			s.left = left
			close(s.done)
			s.closeInboxes()
		},
	})
	return s, nil
}

// unbounded returns the bound that a field sets, where -1 sets none.
func unbounded(most int) int {
	if most < 0 {
		return math.MaxInt
	}
	return most
}

// stores has the stores of the supervisors that run. Two that share one would each end
// the sessions of the other.
var stores sync.Map

// reserve notes that a store is in use until it is released. It reports whether it was
// not in use before.
func reserve(store mcpbridge.Store) (release func(), ok bool) {
	if store == nil || !reflect.ValueOf(store).Comparable() {
		return func() {}, true
	}
	_, taken := stores.LoadOrStore(store, true)
	return func() { stores.Delete(store) }, !taken
}

// reachable reports the actors of cfg that are not in the system.
func reachable(system *actor.ActorSystem, cfg *Config) error {
	var errs []error
	for name, pid := range map[string]*actor.PID{"handler": cfg.Handler, "subscriber": cfg.Subscriber} {
		if pid == nil {
			continue
		}
		if _, there := system.ProcessRegistry.Get(pid); !there {
			errs = append(errs, fmt.Errorf("%s: %s/%s is no actor of this system: spawn it there first", name, pid.Address, pid.Id))
		}
	}
	return errors.Join(errs...)
}

// errNotStarted is the error of a Supervisor that Start has not made.
var errNotStarted = errors.New("supervisor: is not started: use the one that Start returns when its error is nil")

// errNoContext is the error of a call with a nil context.
var errNoContext = errors.New("supervisor: the context is nil: use context.Background")

// started reports whether Start has made the supervisor.
func (s *Supervisor) started() bool { return s != nil && s.pid != nil }

// PID is where commands go: see package messages. It stays valid after Stop: commands
// are answered with [messages.CodeClosed] from then on.
func (s *Supervisor) PID() *actor.PID {
	if !s.started() {
		return nil
	}
	return s.pid
}

// System is the actor system that the supervisor was started in.
func (s *Supervisor) System() *actor.ActorSystem {
	if !s.started() {
		return nil
	}
	return s.system
}

// Client returns a client for plain Go code. It is cheap.
func (s *Supervisor) Client() *Client { return &Client{s} }

// stopped reports whether the supervisor's actors have ended.
func (s *Supervisor) stopped() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// Reload replaces the list of servers, while the supervisor runs. The sessions of
// servers that are gone or changed are closed as by [messages.CloseServer]; Reload
// returns when that is done. The others are left alone. HTTPClient, InMemory and
// Auth are compared by identity, all else by value. The error names the
// fields that are wrong, and then nothing is changed; or it is that of ctx, and the
// rest goes on by itself.
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
	box := actors.NewInbox(s.system, nil)
	defer box.Close()
	reload := &actors.Reload{Servers: servers, Apply: func() { s.bridge.Set(servers) }}
	s.system.Root.RequestWithCustomSender(s.pid, reload, box.PID)
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

// Stop closes all sessions: no new call is accepted, calls in flight have the
// drain timeout, then the sessions end, and at last the supervisor's actors. It
// returns when that is done, or when ctx ends: then the rest goes on by itself,
// and may be waited for by another Stop. The error, a [StopError], says what
// could not be closed. Calling it again is fine.
//
// The events and the log lines that wait for slow handlers, or for a slow writer, get 2
// more seconds, and so do interceptors that do not return. That bounds also a Stop that
// an event handler or an interceptor calls and so waits for itself: the error says so.
// Each handler, writer or interceptor that never returns keeps its goroutine.
func (s *Supervisor) Stop(ctx context.Context) error {
	switch {
	case !s.started():
		return errNotStarted
	case ctx == nil:
		return errNoContext
	}
	s.stop.Do(func() { s.system.Root.Send(s.pid, &actors.Stop{}) })
	select {
	case <-s.done:
	case <-ctx.Done():
		// The registry does not block: it answers at once, or has just stopped.
		snap, failure := ask[*messages.Snapshot](context.WithoutCancel(ctx), s.Client(), &messages.Inspect{Limit: -1})
		if errors.Is(failure, messages.CodeClosed) {
			<-s.done // what is left is about to be said
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
	// maxEvents bounds the events that wait for slow handlers.
	maxEvents = 1 << 14
	// lastWords is how long handlers and writers have for what was said last.
	lastWords = 2 * time.Second
)

// stuck waits for the last events and log lines, and says what code of the caller's
// does not return.
func (s *Supervisor) stuck(ctx context.Context) (stuck []string) {
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	if n := s.intercepting.wait(ctx); n > 0 {
		stuck = append(stuck, fmt.Sprintf("the interceptors of %d operations do not return", n))
	}
	if !s.events.Flush(ctx) {
		stuck = append(stuck, "an event handler does not return")
	}
	if !s.logger.Flush(ctx) {
		stuck = append(stuck, "the log writer does not return")
	}
	return stuck
}

// StopError is what [Supervisor.Stop] could not do.
type StopError struct {
	// Left are the keys that could not be closed, with the reason.
	Left []messages.Left
	// Stuck says, in words, which code of the caller's had not returned: an event
	// handler, an interceptor, the writer of the log.
	Stuck []string
	// Cause is why Stop did not wait any longer, or nil.
	Cause error
}

// Error lists the keys, and what is stuck.
func (e *StopError) Error() string {
	if e == nil {
		return "no error: a nil *supervisor.StopError"
	}
	var b strings.Builder
	b.WriteString("supervisor: ")
	if len(e.Left) > 0 || len(e.Stuck) == 0 {
		fmt.Fprintf(&b, "%d sessions could not be closed", len(e.Left))
	}
	for i, left := range e.Left {
		if i == 10 {
			b.WriteString("; …")
			break
		}
		fmt.Fprintf(&b, "; %s: %s", left.Key, left.Reason)
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
