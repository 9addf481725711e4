// Package mailbox is the mailbox of the registry and of the sessions.
package mailbox

import (
	"runtime"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// Mailbox holds the messages that an actor has not read yet. It differs from the mailboxes
// of Proto.Actor in three ways: the messages that are left when its actor has stopped are
// given to a function, and not discarded; to start the actor allocates nothing; and an empty
// mailbox takes little memory. The zero value is empty. The methods may be called from any
// goroutine, except Close.
type Mailbox struct {
	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher
	readAll    func()            // is scheduled when there are messages
	unread     func(message any) // gets the messages after Close; nil before. Used by readAll only

	mu        sync.Mutex
	user      queue
	system    queue
	reading   bool // readAll runs, or is scheduled
	suspended bool // the actor has failed, and gets system messages only
}

// RegisterHandlers sets the actor, and the dispatcher that runs it.
func (m *Mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.invoker, m.dispatcher = invoker, dispatcher
	m.readAll = func() {
		for !m.read() {
		}
	}
}

// Start does nothing.
func (*Mailbox) Start() {}

// Close gives the user messages that are in the mailbox, and those that come later, to
// unread in place of the actor. The actor calls it when it has stopped.
func (m *Mailbox) Close(unread func(message any)) { m.unread = unread }

// PostUserMessage adds a message, which the actor reads after all others.
func (m *Mailbox) PostUserMessage(message any) { m.post(&m.user, message) }

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

// read has the actor read messages until none is left or the actor panics. It reports
// whether none is left.
func (m *Mailbox) read() (empty bool) {
	var message any
	defer func() {
		if reason := recover(); reason != nil {
			m.invoker.EscalateFailure(reason, message)
		}
	}()
	for n := 1; ; n++ {
		var of kind
		switch message, of = m.next(); {
		case of == none:
			return true
		case of == system:
			m.invoker.InvokeSystemMessage(message)
		case m.unread != nil:
			m.unread(message)
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
