// Package calls accepts calls, gives them to their sessions, cancels them, and notes their replies.
package calls

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/bounds"
	"github.com/mcpactor/mcpactor/actors/internal/closer"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/dialing"
	"github.com/mcpactor/mcpactor/actors/internal/lists"
	"github.com/mcpactor/mcpactor/actors/internal/member"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/refusal"
	"github.com/mcpactor/mcpactor/actors/internal/reports"
	"github.com/mcpactor/mcpactor/actors/internal/sessions"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Calls is used by the actor of the registry only.
//
//	New ──▶ interceptors ──Accept──▶ the session of its key ──Replied, TimedOut──▶ the caller has a reply
//	                         ▲                │
//	                         └───HandedBack───┘ the session was evicted before it ran
type Calls struct {
	With
	Bounds bounds.Book
}

// With is what calls need.
type With struct {
	Cfg      *contract.Config
	Table    *table.Table
	Refusal  *refusal.Refusal
	Owners   *owners.Book
	Lists    *lists.Lists
	Sessions *sessions.Sessions
	Dialing  *dialing.Dialing
	Closer   *closer.Closer
	Member   *member.Member
	Reports  *reports.Reports
}

// New returns calls, of which there are none yet.
func New(with With) *Calls { return &Calls{With: with} }

// maxDeadline is how far in the future a deadline can be. Adding to a later one would
// overflow a [time.Duration].
const maxDeadline = 10 * 365 * 24 * time.Hour

// New counts an operation and returns it as a call of its sender, with a deadline.
func (c *Calls) New(op messages.Operation, from *actor.PID) *contract.Call {
	c.Reports.Counters.Calls++
	if h := op.Head(); h.Subscriber != nil {
		op = messages.With(op, *h) // progress is matched by the pointer, and a caller may send one operation twice
	}
	k := &contract.Call{
		Op: op, Key: op.Head().Key.Normal(), Supervisor: c.Cfg.Name, Caller: from,
		Deadline: op.Head().Deadline, Serial: c.Reports.Counters.Calls,
	}
	now := time.Now()
	k.Accepted = now
	if k.Deadline.IsZero() {
		k.Deadline = now.Add(c.Table.Limits(k.Key.Server).CallTimeout)
	} else { // by the monotonic clock, as all that the alarm has
		k.Deadline = now.Add(min(k.Deadline.Sub(now), maxDeadline))
	}
	return k
}

// NewOfClient returns an operation of a client as a call with the values of its context.
func (c *Calls) NewOfClient(msg *protocol.ClientCall, from *actor.PID) *contract.Call {
	k := c.New(msg.Op, from)
	k.Values = &msg.Values
	return k
}

// NewResent returns an operation of another member as a call of the sender.
func (c *Calls) NewResent(msg *protocol.ResentCall, from *actor.PID) *contract.Call {
	k := c.New(msg.Op, from)
	k.Values, k.Intercepted, k.List, k.Run.Attempts = msg.Values, msg.Intercepted, msg.List, msg.Runs
	if msg.MayHaveRun {
		k.Run.Attempts = max(1, msg.Runs)
		k.Run.Lost = &mcpbridge.Error{Class: mcpbridge.Lost, Detail: msg.Detail, Sent: true}
		k.Ticket.Undecided = true
	}
	return k
}

// Accept gives a call to the session of its key, hands it back to the cluster, or rejects it.
func (c *Calls) Accept(k *contract.Call) {
	f := refusal.Malformed(k)
	if f == nil && c.HandBack(k) {
		return
	}
	if f == nil {
		f = decideReplay(k)
	}
	now := time.Now()
	if f == nil {
		f = c.Refusal.Of(k, now)
	}
	if f == nil {
		f = c.take(k, now)
	}
	if f != nil {
		c.reject(k, f)
		return
	}
	c.Forward(k)
}

// take counts a call for the bounds of its server, or returns the failure of one that is beyond them. A call that has run counts already, as
// does one that a session has handed back, or that is a later round.
func (c *Calls) take(k *contract.Call, now time.Time) *messages.Failure {
	most := c.Table.Servers[k.Key.Server].Resolved.Bounds
	if len(most) == 0 || k.Tool() == "" || k.Ticket.Bounds != nil || k.Run.Attempts > 0 || rounds.IsLater(k.Op) || k.Releases {
		return nil
	}
	taken, refused := c.Bounds.Take(k.Key, k.Tool(), most, now)
	if refused != nil {
		c.Table.CountBounded(k.Key.Server)
		f := k.Failure(refused.Code, refused.Detail)
		contract.RetryIn(f, refused.RetryAfter)
		return f
	}
	k.Ticket.Bounds = taken
	return nil
}

// answered notes that a call has its reply, or belongs to another member.
func (c *Calls) answered(k *contract.Call) {
	c.Owners.Answered(k)
	k.Ticket.Bounds.End(k.Run.Attempts > 0, time.Now())
	k.Ticket.Bounds = nil
}

// decideReplay decides whether a call that another member has lost may be replayed. It returns the failure if not.
func decideReplay(k *contract.Call) *messages.Failure {
	if !k.Ticket.Undecided {
		return nil
	}
	if k.IsDurable() { // the store knows
		k.Ticket.Undecided, k.Run.Lost = false, nil
		return nil
	}
	again, needsHint := k.MayReplay(k.Run.Lost)
	if !again {
		return k.FailureOf(k.Run.Lost)
	}
	k.Ticket.Undecided, k.Run.NeedsHint = false, needsHint
	return nil
}

// HandBack sends a call that is for another member to the cluster, and reports whether it has done so.
func (c *Calls) HandBack(k *contract.Call) bool {
	if c.Member.IsFor(k) {
		return false
	}
	if _, is := k.Op.(*contract.Reopen); is {
		c.reject(k, k.Failure(messages.CodeClosed, "another member of the cluster runs the session"))
		return true
	}
	c.answered(k)
	c.Member.HandBack(k)
	return true
}

// Forward gives a call to the session of its key, after the close commands that came before it.
func (c *Calls) Forward(k *contract.Call) {
	if !k.Releases { // it comes before what the close commands do
		c.Closer.Apply(k.Key)
	}
	if k.Op.Head().Owner != nil && !k.PassedOn { // else the operation that interceptors have belongs to it
		c.Owners.Accepted(k, nil)
	}
	reg := c.Sessions.Current(k.Key)
	if _, sets := k.Op.(*messages.SetRoots); sets {
		c.Lists.RootsSet(reg)
	}
	c.Table.Took(reg, k.Releases)
	c.Dialing.Touch(reg)
	reg.TellLimits()
	c.Table.Calls.Add(k, reg)
	reg.Send(k)
}

// reject answers a call that no session has. It may have an owner, if a session has handed it
// back.
func (c *Calls) reject(k *contract.Call, f *messages.Failure) {
	c.Cfg.Post.Send(k.Caller, f)
	c.Table.CountRejected(k.Key.Server, f.Code)
	c.Reports.Answered(k, f.Code)
	c.answered(k)
}

// Replied notes that a session has replied to a call.
func (c *Calls) Replied(msg *contract.CallReplied) {
	reg := table.Of(msg.Of)
	c.Table.Calls.Remove(msg.Call)
	c.answered(msg.Call)
	reg.Load().CountReplied(msg, time.Now())
	c.Reports.Answered(msg.Call, msg.Code)
	if reg.Removed() {
		return // other code has stopped the actor
	}
	c.Table.Gave(reg, 1)
	c.Dialing.Touch(reg)
}

// TimedOut answers calls that may not wait any longer for a connection.
// The failure says what the session was waiting for.
func (c *Calls) TimedOut(msg *contract.CallsTimedOut) {
	reg, now := table.Of(msg.Of), time.Now()
	for _, k := range msg.Calls {
		c.Table.Calls.Remove(k)
		c.answered(k)
		f := c.Refusal.TimedOut(k, reg, now)
		reg.Load().Count(f.Code)
		c.Reports.Answered(k, f.Code)
		table.AddTo(&reg.Load().Durations, now.Sub(k.Accepted))
		if k.Caller != nil {
			c.Cfg.Post.Send(k.Caller, f)
		}
	}
	c.Table.Gave(reg, len(msg.Calls))
	c.Dialing.Touch(reg)
}

// HandedBack accepts, for the successor of an evicted session, the calls that the
// session has not run.
func (c *Calls) HandedBack(msg *contract.CallsHandedBack) {
	reg := table.Of(msg.Of)
	c.Table.Gave(reg, len(msg.Calls))
	var upTo uint64
	if e := c.Table.Entry(reg.Key); e != nil {
		upTo = e.CancelledUpTo
	}
	for _, k := range msg.Calls {
		c.Table.Calls.Remove(k)
		if k.Ticket.Cancelled || upTo > 0 && k.Serial <= upTo {
			c.reject(k, k.Failure(messages.CodeCancelled, ""))
			continue
		}
		k.Ticket.Kept = reg.DrainedBy.Restart
		c.Accept(k)
	}
}
