package registry

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/calls"
	"github.com/mcpactor/mcpactor/actors/internal/closer"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/dialing"
	"github.com/mcpactor/mcpactor/actors/internal/inspection"
	"github.com/mcpactor/mcpactor/actors/internal/interception"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/keeper"
	"github.com/mcpactor/mcpactor/actors/internal/lists"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/member"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/pace"
	"github.com/mcpactor/mcpactor/actors/internal/refusal"
	"github.com/mcpactor/mcpactor/actors/internal/reports"
	"github.com/mcpactor/mcpactor/actors/internal/servers"
	"github.com/mcpactor/mcpactor/actors/internal/sessions"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// registry is the actor that takes the commands, and the parent of all sessions. It gives each message to one of its parts:
// those that decide are told what happens, and those that act carry out what they decide.
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
	servers       *servers.Servers
	sessions      *sessions.Sessions
	dialing       *dialing.Dialing
	controls      *dialing.Controls
	closer        *closer.Closer
	lists         *lists.Lists
	keeper        *keeper.Keeper
	member        *member.Member
	reports       *reports.Reports
	jobs          *jobs.Jobs
	cancellations *pace.Pace[messages.Key]

	alarm        alarm.Alarm[func()]
	timer        alarm.Timer      // sends timerFired when the first entry of alarm is due, or earlier
	unknownTypes map[string]bool  // types of unknown messages that were logged
	stops        *closing.Command // closes all sessions when the registry stops, or nil
	finished     bool             // all sessions are closed, and the actor stops
}

// newRegistry returns a registry that has no sessions.
func newRegistry(cfg *contract.Config, m *mailbox.Mailbox) *registry {
	r := &registry{cfg: cfg, mailbox: m, unknownTypes: map[string]bool{}}
	r.timer.Fire = func() { m.PostUserMessage(&timerFired{}) }

	r.table = table.New(servers.LimitsOf(cfg, mcpbridge.Limits{}), table.Tenants{NameOf: tenantOf(cfg), MaxSessions: cfg.MaxSessionsPerTenant})
	r.gate = servers.NewGate(cfg)
	r.refusal = refusal.New(cfg, r.table, &r.gate.Sessions)
	r.owners = owners.New()
	r.closings = closing.New(max(cfg.MaxSessions, closing.MinLeftovers))

	r.jobs = jobs.New(cfg, m)
	r.cancellations = pace.New[messages.Key](&r.alarm)
	r.reports = reports.New(cfg)
	r.member = member.New(cfg, r.table)
	r.servers = servers.New(cfg, r.table, r.gate)
	r.lists = lists.New(lists.With{Cfg: cfg, Mailbox: m, Table: r.table, Owners: r.owners, Member: r.member, Reports: r.reports, Jobs: r.jobs})
	r.keeper = keeper.New(keeper.With{Cfg: cfg, Mailbox: m, Table: r.table, Member: r.member, Reports: r.reports, Alarm: &r.alarm, Jobs: r.jobs})
	r.sessions = sessions.New(sessions.With{
		Cfg: cfg, Mailbox: m, Table: r.table, Gate: r.gate, Servers: r.servers, Lists: r.lists, Owners: r.owners, Closings: r.closings, Alarm: &r.alarm,
	})
	r.dialing = dialing.New(dialing.With{
		Cfg: cfg, Table: r.table, Gate: r.gate, Sessions: r.sessions, Reports: r.reports, Alarm: &r.alarm, Jobs: r.jobs,
	})
	r.controls = dialing.NewControls(cfg, r.gate)
	r.closer = closer.New(closer.With{
		Cfg: cfg, Table: r.table, Book: r.closings, Sessions: r.sessions, Member: r.member, Alarm: &r.alarm, Jobs: r.jobs, Keeper: r.keeper,
	})
	r.calls = calls.New(calls.With{
		Cfg: cfg, Table: r.table, Refusal: r.refusal, Owners: r.owners, Lists: r.lists, Sessions: r.sessions, Dialing: r.dialing, Closer: r.closer,
		Member: r.member, Reports: r.reports,
	})
	r.interceptors = interception.New(interception.With{
		Cfg: cfg, Mailbox: m, Table: r.table, Refusal: r.refusal, Owners: r.owners, Cancellations: r.cancellations, Alarm: &r.alarm, Keeper: r.keeper,
		Calls: r.calls,
	})
	r.keeper.Calls, r.keeper.Pin, r.keeper.Unneeded = r.calls, r.dialing.PinBound, r.closer.CloseUnneeded
	return r
}

// Receive handles a message, and then does what follows from it.
func (r *registry) Receive(c actor.Context) {
	defer r.recoverBug(c.Message(), c.Sender())
	if _, is := c.Message().(*actor.Started); is { // only its context knows these
		r.self, r.sessions.Spawner = c.Self(), c
		r.interceptors.Start(c.ActorSystem(), r.lists.Interceptor)
		r.keeper.Start(c.ActorSystem())
	}
	r.handle(c.Message(), c.Sender())
	r.settle()
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
		r.keeper.Joined()
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
	case *messages.ListHandles:
		r.keeper.List(cmd, from)
	case *messages.ReleaseHandles:
		r.keeper.Release(cmd, from)
	case *messages.CloseSession, *messages.CloseScope, *messages.CloseMatching, *messages.CloseServer, *messages.CloseAll:
		if f := r.closer.Close(cmd, from); f != nil {
			r.respond(from, f)
		}
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
		r.keeper.Broke(table.Of(msg.Of), msg.Fault)
		r.dialing.Faulted(msg)
	case *contract.Opened:
		r.dialing.Opened(msg)
		r.keeper.Opened(table.Of(msg.Of))
	case *contract.Unheard:
		r.table.SetUnheard(table.Of(msg.Of), msg.Cause)
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
		r.controls.Wanted(msg, from)
	case *contract.ControlOpened:
		r.controls.Opened(msg.Of)
	case *contract.ControlEnded:
		r.controls.Ended(msg.Of)
	case *contract.HandshakeAnswered:
		r.dialing.Answered(table.Of(msg.Of))
	case *timerFired:
		r.onTimerFired()
	default:
		if !r.jobs.Receive(msg) && !r.interceptors.Receive(msg) && !r.lists.Receive(msg) && !r.keeper.Receive(msg) {
			r.onUnknown(msg, from)
		}
	}
}

// respond sends the reply to a command, unless that had no sender.
func (r *registry) respond(to *actor.PID, reply messages.Reply) {
	if f, ok := reply.(*messages.Failure); ok {
		f.Supervisor = r.cfg.Name
	}
	if to != nil {
		r.cfg.Post.Send(to, reply)
	}
}
