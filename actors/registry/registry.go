package registry

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/internal/dispatch"
	"github.com/mcpactor/mcpactor/internal/door"
	"github.com/mcpactor/mcpactor/internal/nearest"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// rememberedKeys is how many keys without a session have their generation remembered.
const rememberedKeys = 1 << 16

// minStarts is how many processes may start at once on a machine with one processor.
const minStarts = 2

// maxDeadline is how far in the future a deadline can be. Adding to a later one would
// overflow a [time.Duration].
const maxDeadline = 10 * 365 * 24 * time.Hour

// registry is the actor that takes the commands, and the parent of all sessions. It
// spawns one session for each key, and decides which sessions may dial, which are evicted
// and what happens to those that failed.
//
//	running ──Stop──▶ stopping ──last session closed──▶ stopped
//
// The registry never blocks. It recovers from its own panics and logs them, because a
// restart would lose all sessions.
type registry struct {
	cfg     *contract.Config
	servers map[string]*server

	entries       map[messages.Key]*entry
	registrations map[string]*registration                   // by PID id
	index         registrationIndex                          // the same, by server, scope and state
	defaults      *mcpbridge.Limits                          // of a server without limits of its own
	sessions      admission.Quota[*registration]             // of all sessions
	quotas        map[string]*admission.Quota[*registration] // by server; they stay when the server is removed
	tenants       map[string]*tenant                         // that have sessions
	generations   *generations

	waitingServers   list.List // *server with a lane that is ready, in the order in which they get grants
	processStarts    int       // processes that are starting
	passing          int       // places and queues that grantDials has passed over in this step
	maxProcessStarts int       // how many may start at once
	idleTimer        *time.Timer
	idleAt           time.Time // when idleTimer fires
	closings         closings
	leftovers        leftovers
	children         int       // session actors whose end is not known
	pending          int       // requests to the store, and operations of the front: the registry stops after them
	calls            callNames // that sessions have
	cancellations    cancellations
	controls         map[*contract.ControlWanted]*control // that are not over
	owners           owners
	cluster          protocol.Cluster // whose Owns is nil without a cluster
	waiting          int              // calls that are parked in sessions
	unpassed         int              // operations that interceptors have, and have not passed on
	inspections      inspections
	counters         messages.Counters
	stopping         bool             // calls are rejected
	finished         bool             // all sessions are closed, and the actor stops
	unknownTypes     map[string]bool  // types of unknown messages that were logged
	mailbox          *mailbox.Mailbox // of this actor

	// cancelIntercepted cancels operations that run through interceptors: those with an id, and
	// those of a scope up to a serial, of which it returns how many had not been passed on. nil
	// without interceptors.
	cancelIntercepted struct {
		named func(c actor.Context, key messages.Key, id string)
		scope func(c actor.Context, scope string, upTo uint64, detail string) int
	}
}

// Start spawns a registry and returns the PID that takes all commands, [protocol.Reload], [protocol.Stop] and the
// messages of a [protocol.Cluster]. The PID stays valid: after the registry has stopped, for whatever
// reason, commands are answered with [messages.CodeClosed], until another actor takes the name. free
// is false if the name is taken in the system, and then nothing is spawned.
func Start(system *actor.ActorSystem, cfg actors.Config) (pid *actor.PID, free bool) {
	name := cmp.Or(cfg.Name, "mcpactor"+system.ProcessRegistry.NextId())
	cfg.Name = name
	// It holds nothing of cfg, which may lead to the PID: the door would never be freed.
	post := cfg.Post
	late := func(message any, sender *actor.PID) { protocol.Answer(post, name, message, sender) }
	ended := func(watcher, who *actor.PID) { post.Terminated(watcher, who, actor.TerminatedReason_Stopped) }
	return door.Open(system, name, late, ended, func(stopped func()) *actor.PID {
		then := cfg.Stopped
		cfg.Stopped = func(left []messages.Left) {
			stopped()
			then(left)
		}
		return system.Root.SpawnPrefix(props(cfg), "registry")
	})
}

// props returns the Props of the registry that [Start] spawns.
func props(with actors.Config) *actor.Props {
	m := new(mailbox.Mailbox)
	cfg := contract.Config{Config: with, Dispatcher: new(dispatch.Dispatcher)}
	return actor.PropsFromProducer(func() actor.Actor {
		r := newRegistry(&cfg, m)
		if len(cfg.Interceptors) > 0 {
			return newFront(r)
		}
		return r
	}, cfg.RunsOn(m)...)
}

// newRegistry returns a registry that has no sessions.
func newRegistry(cfg *contract.Config, m *mailbox.Mailbox) *registry {
	entries := map[messages.Key]*entry{}
	r := &registry{
		cfg: cfg, servers: map[string]*server{}, entries: entries,
		registrations: map[string]*registration{}, generations: newGenerations(rememberedKeys),
		index:     registrationIndex{groups: map[string]*group{}, entries: entries},
		leftovers: leftovers{limit: max(cfg.MaxSessions, minLeftovers)},
		calls:     callNames{}, controls: map[*contract.ControlWanted]*control{}, unknownTypes: map[string]bool{}, mailbox: m, owners: newOwners(), maxProcessStarts: max(minStarts, runtime.GOMAXPROCS(0)),
		defaults: limitsOf(cfg, mcpbridge.Limits{}), quotas: map[string]*admission.Quota[*registration]{}, tenants: map[string]*tenant{},
	}
	r.closings = closings{all: map[*closeCommand]struct{}{}, wide: map[*closeCommand]struct{}{}, ofScope: map[string]map[*closeCommand]struct{}{}}
	r.sessions.SetLimit(cfg.MaxSessions)
	for _, srv := range cfg.Servers {
		r.servers[srv.Name] = r.newServer(srv, r.servers)
	}
	r.cancellations.mailbox, r.cancellations.queues = m, map[messages.Key]*cancelQueue{}
	return r
}

// Receive handles lifecycle messages and commands, and gives the rest to onReport.
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
	case *protocol.ClientCall:
		if protocol.IsForeign(msg.Op) {
			r.onUnknown(c, msg.Op)
			return
		}
		r.accept(c, r.newClientCall(c, msg))
	case *protocol.ResentCall:
		if protocol.IsForeign(msg.Op) {
			r.onUnknown(c, msg.Op)
			return
		}
		r.accept(c, r.newResentCall(c, msg))
	case *protocol.Reload:
		r.onReload(c, msg)
	case *protocol.Cluster:
		r.onCluster(c, msg)
	case *protocol.Release:
		r.onRelease(c, msg)
	case *protocol.Stop:
		r.onStop(c)
	default:
		r.onReport(c)
	}
}

// onCommand handles the commands of callers.
func (r *registry) onCommand(c actor.Context, cmd messages.Command) {
	if protocol.IsForeign(cmd) {
		r.onUnknown(c, cmd)
		return
	}
	switch cmd := cmd.(type) {
	case messages.Operation:
		r.onOperation(c, cmd)
	case *messages.Cancel:
		r.onCancel(c, cmd)
	case *messages.Pin:
		r.onPin(c, cmd)
	default:
		r.onControl(c, cmd)
	}
}

// onReport handles the messages from sessions, goroutines and timers.
func (r *registry) onReport(c actor.Context) {
	switch msg := c.Message().(type) {
	case *contract.CallReplied:
		r.onCallReplied(c, msg)
	case *contract.CallReplayed:
		r.counters.Replayed++
		r.publish(&messages.CallReplayed{
			Stamp: r.stamp(registrationOf(msg.Of)), ID: msg.Op.RequestID(), Method: msg.Op.Method(), Target: messages.TargetOf(msg.Op), Attempt: msg.Attempt,
		})
	case *contract.Notified:
		r.onNotified(c, msg)
	case *contract.DialRequested:
		r.onDialRequested(c, registrationOf(msg.Of))
	case *contract.BecameIdle:
		r.onBecameIdle(c, registrationOf(msg.Of))
	case *contract.Faulted:
		r.onFaulted(c, msg)
	case *contract.Opened:
		r.onOpened(c, msg)
	case *contract.Unheard:
		r.onUnheard(msg)
	case *contract.CallsHandedBack:
		r.onCallsHandedBack(c, msg)
	case *contract.SessionClosed:
		r.onSessionClosed(c, msg)
	case *contract.CallsTimedOut:
		r.onCallsTimedOut(c, msg)
	case *backoffDue:
		r.advance(c, msg.of)
	case *contract.DialAbandoned:
		r.onDialAbandoned(c, registrationOf(msg.Of))
	case *contract.AddressFound:
		r.onAddressFound(c, msg)
	case *contract.ControlWanted:
		r.onControlWanted(c, msg)
	case *contract.ControlOpened:
		r.onControlOpened(c, msg.Of)
	case *contract.ControlEnded:
		r.onControlEnded(c, msg.Of)
	case *contract.HandshakeAnswered:
		r.onHandshakeAnswered(c, registrationOf(msg.Of))
	case *grantsDue:
		r.grantDials(c)
	case *startPermitDue:
		r.onStartPermitDue(c, msg)
	case *probeDue:
		r.onProbeDue(c, msg.of)
	case *idleDue:
		r.onIdleDue(c)
	case *capDue:
		r.onCapDue(c, msg.of)
	case *closeDue:
		r.onCloseDue(c, msg.of)
	case *closeStepDue:
		r.drainNext(c, msg.of)
	case *walkDue:
		r.continueWalk(c, msg.walk)
	case *ownerEnd:
		r.continueEnd(c, msg)
	case *ownerEnded:
		r.onOwnerEnded(msg)
	case *listing:
		r.continueListing(msg)
	case *cancelDue:
		r.onCancelDue(c)
	case *storeListed:
		r.onStoreListed(c, msg)
	default:
		r.onUnknown(c, msg)
	}
}

// onOperation sends an operation to the session of its key.
func (r *registry) onOperation(c actor.Context, op messages.Operation) {
	r.accept(c, r.newCall(c, op))
}

// newCall counts an operation and returns it as a call of the sender, with a deadline.
func (r *registry) newCall(c actor.Context, op messages.Operation) *contract.Call {
	r.counters.Calls++
	if h := op.Head(); h.Subscriber != nil {
		op = messages.With(op, *h) // progress is matched by the pointer, and a caller may send one operation twice
	}
	k := &contract.Call{
		Op: op, Key: op.Head().Key.Normal(), Supervisor: r.cfg.Name, Caller: c.Sender(),
		Deadline: op.Head().Deadline, Serial: r.counters.Calls,
	}
	now := time.Now()
	k.Accepted = now
	if limit := now.Add(maxDeadline); k.Deadline.IsZero() {
		k.Deadline = now.Add(r.limits(k.Key.Server).CallTimeout)
	} else if k.Deadline.After(limit) {
		k.Deadline = limit
	}
	return k
}

// newClientCall returns an operation of a client as a call with the values of its context.
func (r *registry) newClientCall(c actor.Context, msg *protocol.ClientCall) *contract.Call {
	k := r.newCall(c, msg.Op)
	k.Values = &msg.Values
	return k
}

// accept sends a call to its session, hands it back to the cluster, or rejects it.
func (r *registry) accept(c actor.Context, k *contract.Call) {
	f := malformed(k)
	if f == nil && r.handBack(c, k) {
		return
	}
	if f == nil {
		f = r.unsafe(k)
	}
	if f == nil {
		f = r.unknownMethod(k)
	}
	if f == nil {
		f = r.rejection(k, time.Now())
	}
	if f == nil {
		f = r.orphaned(k)
	}
	if f == nil {
		r.forward(c, k)
		return
	}
	r.reject(c, k, f)
}

// reject answers a call that no session has. It may have an owner, if a session has handed it
// back.
func (r *registry) reject(c actor.Context, k *contract.Call, f *messages.Failure) {
	r.cfg.Post.Send(k.Caller, f)
	r.countRejected(k.Key.Server, f.Code)
	r.logReply(k, f.Code)
	r.disown(c, k)
}

// malformed returns the rejection of a call whose operation is invalid, or nil.
func malformed(k *contract.Call) *messages.Failure {
	if err := k.Key.Validate(); err != nil {
		f := k.Failure(messages.CodeInvalid, err.Error())
		f.Key.Scope = "" // which may be too long, or not printable
		return f
	}
	if err := k.Op.Validate(); err != nil {
		return k.Failure(messages.CodeInvalid, err.Error())
	}
	if replay := k.Op.Head().Replay; replay > messages.ReplayAlways {
		return k.Failure(messages.CodeInvalid, fmt.Sprintf("replay: %d is none of the constants", replay))
	}
	h := k.Op.Head()
	if err := errors.Join(h.Attributes.Validate(), h.Trace.Validate()); err != nil {
		return k.Failure(messages.CodeInvalid, err.Error())
	}
	return nil
}

// rejection returns the failure for a call that is not accepted, or nil.
func (r *registry) rejection(k *contract.Call, now time.Time) *messages.Failure {
	switch {
	case r.stopping:
		return k.Failure(messages.CodeDraining, "the supervisor is stopping")
	case r.servers[k.Key.Server] == nil:
		return k.Failure(messages.CodeUnknownServer, r.noServer(k.Key.Server))
	case !now.Before(k.Deadline):
		return k.Failure(messages.CodeDeadline, "the deadline had passed before the call came")
	}
	reg := r.currentOf(k.Key)
	ep := r.servers[k.Key.Server].endpoint
	if reg != nil {
		ep = reg.server.endpoint
	}
	if r.cfg.FailFast && ep.Down && !ep.AllowsProbe(now) && (reg == nil || reg.unconnected()) {
		f := k.Unavailable(ep.causeFor(reg))
		contract.RetryIn(f, ep.Next.Sub(now))
		return f
	}
	limits, t := r.servers[k.Key.Server].limits, r.tenantOf(k.Key, reg)
	switch most := limits.MaxInFlight + limits.MaxWaiting; {
	case reg != nil && reg.breakerOpen(now) && !reg.mayHaveNewCredentials():
		f := k.Unavailable(reg.cause.Cause)
		contract.RetryIn(f, reg.breakerUntil.Sub(now))
		return f
	case k.Kept:
	case reg != nil && reg.outstanding >= most:
		return k.Failure(messages.CodeBusy, fmt.Sprintf("%d calls of this session are running or waiting (MaxInFlight, MaxWaiting)", reg.outstanding))
	case reg.hasRoom(limits.MaxInFlight):
	case r.noSlotFor(k.Key, reg) != "":
		return k.Failure(messages.CodeBusy, r.noSlotFor(k.Key, reg))
	case t != nil && t.waiting >= t.mostWaiting(most):
		return k.Failure(messages.CodeBusy, fmt.Sprintf("%d calls of all sessions of the tenant are waiting (MaxSessionsPerTenant sessions with MaxInFlight, MaxWaiting)", t.waiting))
	case r.waiting >= r.cfg.MaxWaitingTotal:
		return k.Failure(messages.CodeBusy, fmt.Sprintf("%d calls of all sessions are waiting (MaxWaitingTotal)", r.waiting))
	}
	return nil
}

// forward sends a call to the session of its key, and spawns the session if there is none.
func (r *registry) forward(c actor.Context, k *contract.Call) {
	if len(r.closings.all) > 0 {
		r.applyPendingCloses(c, k.Key)
	}
	reg := r.sessionOf(c, k.Key)
	if !k.PassedOn { // else the front does so
		r.own(c, k, ownedCall{})
	}
	reg.outstanding++
	reg.calls++
	r.recount(reg)
	r.touch(c, reg)
	r.tellLimits(c, reg)
	r.calls.add(k, reg)
	reg.send(k)
}

// recount updates the number of waiting calls after the calls or the state of a session
// have changed.
func (r *registry) recount(reg *registration) {
	waiting := reg.outstanding
	switch {
	case reg.slots.Draining: // its calls are running or were handed back
		waiting = 0
	case reg.isHeard():
		waiting = max(0, waiting-reg.server.limits.MaxInFlight)
	}
	r.waiting += waiting - reg.waiting
	reg.group.load.recount(reg, waiting)
	if reg.tenant != nil {
		reg.tenant.waiting += waiting - reg.waiting
	}
	reg.waiting = waiting
}

// onUnheard notes that calls of a session wait although it has a connection, or wait no longer. Those that run
// count among them.
func (r *registry) onUnheard(msg *contract.Unheard) {
	if reg := registrationOf(msg.Of); !reg.removed() {
		reg.unheard = msg.Cause
		r.recount(reg)
	}
}

// isHeard reports whether a session runs calls.
func (reg *registration) isHeard() bool {
	return reg.state() == messages.StateReady && reg.unheard == nil
}

// hasRoom reports whether a session would run another call at once. One that is unheard has room for the call that
// finds out whether it still is.
func (reg *registration) hasRoom(inFlight int) bool {
	return reg != nil && reg.state() == messages.StateReady && reg.outstanding < inFlight && (reg.unheard == nil || reg.outstanding == 0)
}

// onCallReplied notes that a session has replied to a call.
func (r *registry) onCallReplied(c actor.Context, msg *contract.CallReplied) {
	reg := registrationOf(msg.Of)
	r.calls.remove(msg.Call)
	if msg.Call.Op.Head().Owner != nil {
		r.disown(c, msg.Call)
	}
	reg.group.load.countReplied(msg, time.Now())
	r.logReply(msg.Call, msg.Code)
	if reg.removed() {
		return // other code has stopped the actor
	}
	reg.outstanding--
	r.recount(reg)
	r.touch(c, reg)
	if reg.outstanding == 0 && r.waitingServers.Len() > 0 {
		r.grantDials(c)
	}
}

// respond replies to the sender of the current message, if there is one.
func (r *registry) respond(c actor.Context, reply messages.Reply) {
	if f, ok := reply.(*messages.Failure); ok {
		f.Supervisor = r.cfg.Name
	}
	if c.Sender() != nil {
		r.cfg.Post.Send(c.Sender(), reply)
	}
}

// noServer says that no server of a name is configured, and which one may be meant.
func (r *registry) noServer(name string) string {
	if meant := nearest.Of(name, slices.Sorted(maps.Keys(r.servers))); meant != "" {
		return fmt.Sprintf("no server %q is configured: did you mean %q?", truncated(name), meant)
	}
	return fmt.Sprintf("no server %q is configured", truncated(name))
}

// truncated returns the first 128 bytes of a name that a caller chose.
func truncated(name string) string {
	if len(name) > 128 {
		return name[:128] + "…"
	}
	return name
}
