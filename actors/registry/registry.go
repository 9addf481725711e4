package registry

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/calls"
	"github.com/mcpactor/mcpactor/actors/internal/closer"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/dialing"
	"github.com/mcpactor/mcpactor/actors/internal/inspection"
	"github.com/mcpactor/mcpactor/actors/internal/interception"
	"github.com/mcpactor/mcpactor/actors/internal/lists"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/member"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/pace"
	"github.com/mcpactor/mcpactor/actors/internal/refusal"
	"github.com/mcpactor/mcpactor/actors/internal/reports"
	"github.com/mcpactor/mcpactor/actors/internal/sessions"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

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
	mailbox *mailbox.Mailbox // of this actor
	self    *actor.PID

	// What decides.
	table       *table.Table
	gate        *admission.Gate
	refusal     *refusal.Refusal
	owners      *owners.Book
	closings    *closing.Book
	inspections inspection.Book

	// What acts.
	calls         *calls.Calls
	interceptors  *interception.Interceptors
	dialing       *dialing.Dialing
	sessions      *sessions.Sessions
	closer        *closer.Closer
	lists         *lists.Lists
	member        *member.Member
	reports       *reports.Reports
	due           due
	cancellations *pace.Pace[messages.Key]

	running      *job            // whose step this is, or nil
	pending      int             // requests to the store: the registry stops after them
	nextSweep    time.Time       // of durable calls in the store
	unknownTypes map[string]bool // types of unknown messages that were logged
	finished     bool            // all sessions are closed, and the actor stops
}

// Receive handles a message, and then does what follows from it.
func (r *registry) Receive(c actor.Context) {
	defer r.recoverBug(c.Message(), c.Sender())
	if _, is := c.Message().(*actor.Started); is {
		r.onStarted(c)
	}
	r.handle(c.Message(), c.Sender())
	r.settle()
}

// onStarted notes what only the context of the actor knows.
func (r *registry) onStarted(c actor.Context) {
	r.self, r.sessions.Spawn = c.Self(), func(props *actor.Props) *actor.PID { return c.SpawnPrefix(props, "session") }
	r.interceptors.Start(c.ActorSystem(), r.lists.Lister)
}

// handle handles lifecycle messages and commands, and gives the rest to onReport.
func (r *registry) handle(msg any, from *actor.PID) {
	switch msg := msg.(type) {
	case *actor.Stopping:
		r.table.Stopping = true
	case *actor.Stopped:
		r.onStopped()
	case *actor.Terminated:
		r.onTerminated(msg)
	case actor.SystemMessage, actor.AutoReceiveMessage:
	case messages.Command:
		r.onCommand(msg, from)
	case *protocol.ClientCall:
		if !r.isForeign(msg.Op, from) {
			r.interceptors.Submit(r.calls.NewOfClient(msg, from))
		}
	case *protocol.ResentCall:
		if !r.isForeign(msg.Op, from) {
			r.interceptors.Submit(r.calls.NewResent(msg, from))
		}
	case *protocol.Reload:
		r.onReload(msg, from)
	case *protocol.Cluster:
		r.member.Join(*msg)
		r.member.TellTimeouts(r.closer.Time())
	case *protocol.Release:
		r.closer.Release(msg, from)
	case *protocol.Stop:
		r.onStop()
	default:
		r.onReport(msg, from)
	}
}

// onCommand handles the commands of callers.
func (r *registry) onCommand(cmd messages.Command, from *actor.PID) {
	if r.isForeign(cmd, from) {
		return
	}
	if op, is := cmd.(messages.Operation); is {
		r.interceptors.Submit(r.calls.New(op, from))
		return
	}
	if f := r.refusal.OfCommand(cmd); f != nil {
		r.respond(from, f)
		return
	}
	switch cmd := cmd.(type) {
	case *messages.Cancel:
		r.onCancel(cmd)
	case *messages.CancelScope:
		r.onCancelScope(cmd, from)
	case *messages.Pin:
		r.onPin(cmd, from)
	case *messages.Bind:
		r.onBind(cmd, from)
	case *messages.Forget:
		r.onForget(cmd, from)
	case *messages.Restart:
		r.onRestart(cmd, from)
	case *messages.Check:
		r.onCheck(cmd, from)
	case *messages.Inspect:
		r.onInspect(cmd, from)
	case *messages.CloseSession, *messages.CloseScope, *messages.CloseMatching, *messages.CloseServer, *messages.CloseAll:
		r.closer.Close(cmd, from)
	}
}

// onReport handles the messages from sessions, goroutines and timers.
func (r *registry) onReport(msg any, from *actor.PID) {
	switch msg := msg.(type) {
	case *contract.CallReplied:
		r.calls.Replied(msg)
	case *contract.CallReplayed:
		r.reports.Replayed(msg)
	case *contract.TaskChanged:
		r.reports.TaskChanged(msg)
	case *contract.Notified:
		r.onNotified(msg)
	case *contract.DialRequested:
		r.dialing.Wanted(table.Of(msg.Of))
	case *contract.BecameIdle:
		r.dialing.BecameIdle(table.Of(msg.Of))
	case *contract.Faulted:
		r.dialing.Faulted(msg)
	case *contract.Opened:
		r.dialing.Opened(msg)
	case *contract.Unheard:
		r.onUnheard(msg)
	case *contract.CallsHandedBack:
		r.calls.HandedBack(msg)
	case *contract.SessionClosed:
		r.onSessionClosed(msg)
	case *contract.CallsTimedOut:
		r.calls.TimedOut(msg)
	case *contract.DialAbandoned:
		r.dialing.Abandoned(table.Of(msg.Of))
	case *contract.AddressFound:
		r.dialing.AddressFound(msg, from)
	case *contract.ControlWanted:
		r.dialing.ControlWanted(msg, from)
	case *contract.ControlOpened:
		r.dialing.ControlOpened(msg.Of)
	case *contract.ControlEnded:
		r.dialing.ControlEnded(msg.Of)
	case *contract.HandshakeAnswered:
		r.dialing.Answered(table.Of(msg.Of))
	case *alarmDue:
		r.onAlarmDue()
	case *job:
		r.do(msg)
	case *returned:
		r.onReturned(msg)
	default:
		if !r.interceptors.Receive(msg) && !r.lists.Receive(msg) {
			r.onUnknown(msg, from)
		}
	}
}

// respond replies to whom a message is from, unless that is nobody.
func (r *registry) respond(to *actor.PID, reply messages.Reply) {
	if f, ok := reply.(*messages.Failure); ok {
		f.Supervisor = r.cfg.Name
	}
	if to != nil {
		r.cfg.Post.Send(to, reply)
	}
}
