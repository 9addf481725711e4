package actors

import (
	"container/list"
	"fmt"
	"runtime"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/dispatch"
	"github.com/mcpactor/mcpactor/actors/internal/door"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// rememberedKeys bounds the keys without a session whose generation is kept.
const rememberedKeys = 1 << 16

// minStarts is how many processes are started at once on any machine.
const minStarts = 2

// farthest is how far away a deadline counts. Further away it would overflow a
// [time.Duration] with what is added to it.
const maxDeadline = 10 * 365 * 24 * time.Hour

// registry is the parent of all sessions, and the PID that commands go to. It
// creates each session once, knows who was used last, and who may be open.
//
//	running ──Stop──▶ stopping ──all gone──▶ stopped
//
// Its state is all in one goroutine, and it never waits. A bug in it is logged
// and survived: restarting it would forget every session.
type registry struct {
	cfg     *Config
	servers map[string]*server

	entries       map[messages.Key]*entry
	registrations map[string]*registration // by PID id
	index         registrationIndex        // the same, by server, scope and state
	lru           lru[*registration]
	generations   generations

	open             int       // slots in use
	drainingSlots    int       // of those, how many are draining
	waitingServers   list.List // servers that somebody waits for, in the order of their turns to dial
	processStarts    int       // processes that are being started
	maxProcessStarts int       // how many may be
	idleTimer        *time.Timer
	closeCommands    map[*closeCommand]struct{} // close commands that wait
	leftovers        leftovers
	pending          int // what else has to end before it stops: requests to the store, and what its front has
	cancellations    cancellations
	waiting          int // calls that wait in sessions
	counters         messages.Counters
	stopping         bool            // it takes no calls
	finished         bool            // all is closed, and we stop
	unknownTypes     map[string]bool // types of foreign messages that were logged
	mailbox          *unreadMailbox
}

// server is what the sessions of one server share.
type server struct {
	mcpbridge.Server
	address         string    // where it is reached
	endpoint        *endpoint // what is known of that
	dialing         int
	queue           list.List     // children that wait to dial
	waitingPosition *list.Element // its place among those that take turns; nil while nobody waits
}

// Start spawns a registry. The PID takes all commands, and [Stop]. Commands that come
// when the registry has stopped, by whatever means, are answered with
// [messages.CodeClosed].
func Start(system *actor.ActorSystem, cfg Config) *actor.PID {
	late := func(message any, sender *actor.PID) { answerUnread(system.Root, message, sender) }
	return door.Open(system, "mcpactor", late, func(stopped func()) *actor.PID {
		then := cfg.Stopped
		cfg.Stopped = func(left []messages.Left) {
			stopped()
			then(left)
		}
		return system.Root.SpawnPrefix(NewRegistry(cfg), "registry")
	})
}

// NewRegistry returns the Props of a registry, which [Start] spawns.
func NewRegistry(cfg Config) *actor.Props {
	after := &unreadMailbox{answer: answerUnread}
	cfg.dispatcher = new(dispatch.Dispatcher)
	return actor.PropsFromProducer(func() actor.Actor {
		r := newRegistry(&cfg, after)
		if len(cfg.Interceptors) > 0 {
			return newFront(r)
		}
		return r
	}, after.props(), actor.WithDispatcher(cfg.dispatcher))
}

func newRegistry(cfg *Config, after *unreadMailbox) *registry {
	r := &registry{
		cfg: cfg, servers: map[string]*server{}, entries: map[messages.Key]*entry{},
		registrations: map[string]*registration{}, generations: generations{limit: rememberedKeys},
		index:         registrationIndex{groups: map[string]*group{}, scopes: map[string]map[*registration]struct{}{}},
		closeCommands: map[*closeCommand]struct{}{}, leftovers: leftovers{limit: max(cfg.MaxSessions, minLeftovers)},
		unknownTypes: map[string]bool{}, mailbox: after, maxProcessStarts: max(minStarts, runtime.GOMAXPROCS(0)),
	}
	for _, srv := range cfg.Servers {
		r.servers[srv.Name] = r.newServer(srv, r.servers)
	}
	r.cancellations.deliver = r.cancel
	return r
}

// Receive handles the actor's own life, the commands, and what sessions say.
func (r *registry) Receive(c actor.Context) {
	defer r.recoverBug(c)
	switch msg := c.Message().(type) {
	case *actor.Stopping:
		r.stopping = true
	case *actor.Stopped:
		r.onStopped(c)
	case *actor.Terminated:
		r.onTerminated(c, msg)
	case actor.SystemMessage, actor.AutoReceiveMessage:
	case messages.Command:
		r.onCommand(c, msg)
	case *Reload:
		r.onReload(c, msg)
	case *Stop:
		r.onStop(c)
	default:
		r.onReport(c)
	}
}

// onCommand handles what callers send.
func (r *registry) onCommand(c actor.Context, cmd messages.Command) {
	if isForeign(cmd) {
		r.onUnknown(c, cmd)
		return
	}
	switch cmd := cmd.(type) {
	case messages.Operation:
		r.onOperation(c, cmd)
	case *messages.Cancel:
		r.onCancel(c, cmd)
	default:
		r.onControl(c, cmd)
	}
}

// onReport handles what sessions, goroutines and timers say.
func (r *registry) onReport(c actor.Context) {
	switch msg := c.Message().(type) {
	case *callReplied:
		r.onCallReplied(c, msg.of)
	case *notified:
		r.onNotified(c, msg)
	case *dialRequested:
		r.onDialRequested(c, msg.of)
	case *becameIdle:
		r.onBecameIdle(c, msg.of)
	case *faulted:
		r.onFaulted(c, msg)
	case *opened:
		r.onOpened(c, msg)
	case *handback:
		r.onHandback(c, msg)
	case *sessionClosed:
		r.onSessionClosed(c, msg)
	case *callsTimedOut:
		r.onCallsTimedOut(c, msg)
	case *backoffDue:
		r.advance(c, msg.of)
	case *dialAbandoned:
		r.onDialAbandoned(c, msg.of)
	case *handshakeAnswered:
		r.onHandshakeAnswered(c, msg.of)
	case *startPermitDue:
		r.onStartPermitDue(c, msg)
	case *probeDue:
		r.onProbeDue(c, msg.of)
	case *idleDue:
		r.onIdleDue(c)
	case *closeDue:
		r.onCloseDue(c, msg.of)
	case *closeStepDue:
		r.drainNext(c, msg.of)
	case *cancelDue:
		r.onCancelDue(c)
	case *storeListed:
		r.onStoreListed(c, msg)
	default:
		r.onUnknown(c, msg)
	}
}

// onOperation gives an operation to the session of its key.
func (r *registry) onOperation(c actor.Context, op messages.Operation) {
	r.accept(c, r.newCall(c, op))
}

// newCall counts an operation, and returns it as a call of the sender.
func (r *registry) newCall(c actor.Context, op messages.Operation) *call {
	r.counters.Calls++
	if h := op.Head(); h.Subscriber != nil {
		op = messages.With(op, *h) // its progress is told by it, and it may be sent twice
	}
	k := &call{op: op, key: op.Head().Key.Normal(), caller: c.Sender(), deadline: op.Head().Deadline, serial: r.counters.Calls}
	now := time.Now()
	if limit := now.Add(maxDeadline); k.deadline.IsZero() {
		k.deadline = now.Add(r.cfg.CallTimeout)
	} else if k.deadline.After(limit) {
		k.deadline = limit
	}
	return k
}

// accept gives a call to its session, or says why not.
func (r *registry) accept(c actor.Context, k *call) {
	f := malformed(k)
	if f == nil {
		f = r.rejection(k, time.Now())
	}
	switch {
	case f == nil:
		r.forward(c, k)
	case k.caller != nil:
		c.Send(k.caller, f)
	}
}

// malformed returns what is wrong with a call itself, or nil.
func malformed(k *call) *messages.Failure {
	if err := k.key.Validate(); err != nil {
		f := k.failure(messages.CodeInvalid, err.Error())
		f.Key.Scope = "" // it is what is wrong
		return f
	}
	if err := k.op.Validate(); err != nil {
		return k.failure(messages.CodeInvalid, err.Error())
	}
	if replay := k.op.Head().Replay; replay > messages.ReplayAlways {
		return k.failure(messages.CodeInvalid, fmt.Sprintf("replay: %d is none of the constants", replay))
	}
	return nil
}

// reject returns why a call is not accepted, or nil.
func (r *registry) rejection(k *call, now time.Time) *messages.Failure {
	switch {
	case r.stopping:
		return k.failure(messages.CodeDraining, "the supervisor is stopping")
	case r.servers[k.key.Server] == nil:
		return k.failure(messages.CodeUnknownServer, fmt.Sprintf("no server %q is configured", truncated(k.key.Server)))
	case !now.Before(k.deadline):
		return k.failure(messages.CodeDeadline, "it had passed before the call came in")
	}
	var reg *registration
	if e := r.entries[k.key]; e != nil {
		reg = e.current
	}
	if ep := r.servers[k.key.Server].endpoint; r.cfg.FailFast && ep.down && !ep.allowsProbe(now) && (reg == nil || reg.unconnected()) {
		f := k.unavailable(ep.cause)
		f.RetryAfter = max(0, ep.next.Sub(now))
		return f
	}
	switch {
	case reg != nil && reg.breakerOpen(now) && !reg.mayHaveNewCredentials():
		f := k.unavailable(reg.cause.Cause)
		f.RetryAfter = reg.breakerUntil.Sub(now)
		return f
	case reg != nil && reg.outstanding >= r.cfg.MaxInFlight+r.cfg.MaxWaiting:
		return k.failure(messages.CodeBusy, fmt.Sprintf("%d calls of this session are running or waiting (MaxInFlight, MaxWaiting)", reg.outstanding))
	case r.waiting >= r.cfg.MaxWaitingTotal && !reg.hasRoom(r.cfg.MaxInFlight):
		return k.failure(messages.CodeBusy, fmt.Sprintf("%d calls of all sessions are waiting (MaxWaitingTotal)", r.waiting))
	}
	return nil
}

// forward gives a call to the session of its key, which is spawned if need be.
func (r *registry) forward(c actor.Context, k *call) {
	if len(r.closeCommands) > 0 {
		r.applyPendingCloses(c, k.key)
	}
	e := r.entry(k.key)
	if e.current == nil {
		e.current = r.spawn(c, k.key, e)
	}
	reg := e.current
	reg.outstanding++
	reg.calls++
	r.recount(reg)
	r.touch(c, reg)
	c.Send(reg.pid, k)
}

// recount counts the calls of a child that wait, after they, or its state, have changed.
func (r *registry) recount(reg *registration) {
	waiting := reg.outstanding
	switch {
	case reg.draining: // what it has is running, or is handed back
		waiting = 0
	case reg.state() == messages.StateReady:
		waiting = max(0, waiting-r.cfg.MaxInFlight)
	}
	r.waiting += waiting - reg.waiting
	reg.waiting = waiting
}

// hasRoom reports whether a call would run at once.
func (reg *registration) hasRoom(inFlight int) bool {
	return reg != nil && reg.state() == messages.StateReady && reg.outstanding < inFlight
}

// onSettled counts an answer.
func (r *registry) onCallReplied(c actor.Context, reg *registration) {
	reg.outstanding--
	r.recount(reg)
	r.touch(c, reg)
	if reg.outstanding == 0 && r.waitingServers.Len() > 0 {
		r.grantDials(c)
	}
}

// respond answers the command at hand, if anybody waits for it.
func (r *registry) respond(c actor.Context, reply messages.Reply) {
	if c.Sender() != nil {
		c.Send(c.Sender(), reply)
	}
}

// bounded shortens what a caller has made up.
func truncated(name string) string {
	if len(name) > 128 {
		return name[:128] + "…"
	}
	return name
}
