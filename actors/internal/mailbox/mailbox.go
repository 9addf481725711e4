// Package mailbox is the mailbox of the registry and of the sessions.
package mailbox

import (
	"runtime"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// Mailbox holds the messages that an actor has not read yet. It differs from the mailboxes
// of Proto.Actor in four ways: the messages that are left when its actor has stopped are
// given to a function, and not discarded; to start the actor allocates nothing; an empty
// mailbox takes little memory; and the engine sends nothing to processes of others, and logs
// nothing, in the goroutine of the actor. The zero value is empty. The methods may be called from
// any goroutine, except Close: a lock protects the queues, as in any mailbox, and is held for a few instructions.
type Mailbox struct {
	// Parent is the mailbox of the parent of the actor, which is told when the actor has failed. If it is nil, the
	// engine tells the parent, and logs the failure.
	Parent *Mailbox
	// Post sends to those who watch the actor, or touch it. Both fields must be set before the actor is spawned.
	Post Post

	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher
	stepper    Stepper           // the dispatcher, if it is one; otherwise nil
	readAll    func()            // is scheduled when there are messages
	unread     func(message any) // gets the messages after Close; nil before. Used by readAll only

	mu        sync.Mutex
	user      queue
	system    queue
	reading   bool // readAll runs, or is scheduled
	suspended bool // the actor has failed, and gets system messages only

	watchers *actor.PIDSet // nil while there are none. Used by readAll only
}

// Stepper is a dispatcher of a simulation, which decides about the order of all that happens.
type Stepper interface {
	actor.Dispatcher
	// Posting is called before a message of a user is added to a mailbox. It returns when that may happen.
	Posting(to *Mailbox, message any)
	// Reading is called before an actor reads the next message. It returns when that may happen.
	Reading(by *Mailbox)
	// Read says which message the actor reads then.
	Read(by *Mailbox, message any)
}

// Post sends messages to processes of others. Its methods do not block.
type Post interface {
	Send(to *actor.PID, message any)
	Terminated(watcher, who *actor.PID, why actor.TerminatedReason)
}

// RegisterHandlers sets the actor, and the dispatcher that runs it.
func (m *Mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.invoker, m.dispatcher = invoker, dispatcher
	m.stepper, _ = dispatcher.(Stepper)
	m.readAll = func() {
		for !m.read() {
		}
	}
}

// Start does nothing.
func (*Mailbox) Start() {}

// Close gives the user messages that are in the mailbox, and those that come later, to
// unread in place of the actor, and tells the watchers. The actor calls it when it has stopped.
func (m *Mailbox) Close(unread func(message any)) {
	m.unread = unread
	if m.watchers != nil {
		m.watchers.ForEach(func(_ int, watcher *actor.PID) { m.tellEnd(watcher) })
		m.watchers = nil
	}
}

// Prompt says that a message is queued at once.
func (*Mailbox) Prompt() {}

// PostUserMessage adds a message, which the actor reads after all others.
func (m *Mailbox) PostUserMessage(message any) {
	if m.stepper != nil {
		m.stepper.Posting(m, message)
	}
	m.post(&m.user, message)
}

// PostSystemMessage adds a message, which the actor reads before all user messages.
func (m *Mailbox) PostSystemMessage(message any) { m.post(&m.system, message) }

// UserMessageCount returns the number of user messages.
func (m *Mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.user.len()
}

// post adds a message to a queue, and schedules readAll if it is not scheduled.
func (m *Mailbox) post(q *queue, message any) {
	m.mu.Lock()
	q.push(message)
	start := !m.reading
	m.reading = true
	m.mu.Unlock()
	if start {
		m.dispatcher.Schedule(m.readAll)
	}
}

// read gives the actor messages until none is left or the actor panics. It reports
// whether none is left.
func (m *Mailbox) read() (empty bool) {
	var message any
	defer func() {
		if reason := recover(); reason != nil {
			m.escalate(reason, message)
		}
	}()
	for n := 1; ; n++ {
		if m.stepper != nil && m.hasNext() {
			m.stepper.Reading(m)
		}
		var of kind
		if message, of = m.next(); m.stepper != nil && of != none {
			m.stepper.Read(m, message)
		}
		switch {
		case of == none:
			return true
		case of == system:
			m.invokeSystem(message)
		case m.unread != nil:
			m.unread(message)
		case isTouch(message):
			m.touched(message)
		default:
			m.invoker.InvokeUserMessage(message)
		}
		if n%m.dispatcher.Throughput() == 0 {
			runtime.Gosched()
		}
	}
}

// kind is the kind of a message.
type kind uint8

const (
	none kind = iota // no message
	user
	system
)

// hasNext reports whether there is a message, which the actor may read.
func (m *Mailbox) hasNext() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.system.len() > 0 || m.user.len() > 0 && (!m.suspended || m.unread != nil)
}

// next removes the next message. Without one, the next post schedules readAll.
func (m *Mailbox) next() (message any, of kind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.system.len() > 0 {
		switch message := m.system.pop().(type) {
		case *actor.SuspendMailbox:
			m.suspended = true
		case *actor.ResumeMailbox:
			m.suspended = false
		default:
			return message, system
		}
	}
	if m.user.len() > 0 && (!m.suspended || m.unread != nil) {
		return m.user.pop(), user
	}
	m.reading = false
	return nil, none
}

// escalate suspends the actor, and tells its parent that it has failed.
func (m *Mailbox) escalate(reason, message any) {
	if m.Parent == nil {
		m.invoker.EscalateFailure(reason, message)
		return
	}
	m.mu.Lock()
	m.suspended = true
	m.system.remove(func(message any) bool { // of the restart, if Started has panicked
		_, is := message.(*actor.ResumeMailbox)
		return is
	})
	m.mu.Unlock()
	m.Parent.PostSystemMessage(&actor.Failure{Who: m.self(), Reason: reason, Message: message, RestartStats: actor.NewRestartStatistics()})
}

// self returns the PID of the actor.
func (m *Mailbox) self() *actor.PID { return m.invoker.(interface{ Self() *actor.PID }).Self() }

// invokeSystem gives the actor a system message. The watchers are kept here: the engine would tell
// them of the end in the goroutine of the actor.
func (m *Mailbox) invokeSystem(message any) {
	switch msg := message.(type) {
	case *actor.Watch:
		m.watch(msg.Watcher)
		return
	case *actor.Unwatch:
		if m.watchers != nil {
			m.watchers.Remove(msg.Watcher)
		}
	}
	m.invoker.InvokeSystemMessage(message)
}

// watch adds a watcher, or tells it at once that the actor has stopped.
func (m *Mailbox) watch(watcher *actor.PID) {
	if m.unread != nil {
		m.tellEnd(watcher)
		return
	}
	if m.watchers == nil {
		m.watchers = actor.NewPIDSet()
	}
	m.watchers.Add(watcher)
}

// tellEnd tells a watcher that the actor has stopped.
func (m *Mailbox) tellEnd(watcher *actor.PID) {
	m.Post.Terminated(watcher, m.self(), actor.TerminatedReason_Stopped)
}

// isTouch reports whether the engine would answer a message itself, after the actor has read it.
func isTouch(message any) bool {
	_, is := actor.UnwrapEnvelopeMessage(message).(actor.AutoRespond)
	return is
}

// touched answers a [actor.Touch]. The actor reads no message that the engine would answer.
func (m *Mailbox) touched(message any) {
	if _, is := actor.UnwrapEnvelopeMessage(message).(*actor.Touch); is {
		m.Post.Send(actor.UnwrapEnvelopeSender(message), &actor.Touched{Who: m.self()})
	}
}
