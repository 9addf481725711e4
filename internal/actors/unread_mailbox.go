package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// unreadMailbox answers the messages that an actor has not read when it stops, which
// Proto.Actor discards. It is a mailbox middleware, because a middleware sees the
// discarded messages.
type unreadMailbox struct {
	mailbox actor.Mailbox
	root    *actor.RootContext // set in Stopped, on the mailbox's goroutine
	// answer answers one message.
	answer func(c *actor.RootContext, message any, sender *actor.PID)
}

// props gives the actor a mailbox with this middleware.
func (m *unreadMailbox) props() actor.PropsOption {
	return actor.WithMailbox(func() actor.Mailbox {
		m.mailbox = actor.Unbounded(m)()
		return m.mailbox
	})
}

// answerUnread must be called in Stopped. It resumes the mailbox, because a suspended one
// is not read to its end.
func (m *unreadMailbox) answerUnread(c actor.Context) {
	m.root = c.ActorSystem().Root
	m.mailbox.PostSystemMessage(&actor.ResumeMailbox{})
}

// MessageReceived is called after each message, whether it was handled or discarded.
func (m *unreadMailbox) MessageReceived(message any) {
	if m.root != nil {
		m.answer(m.root, actor.UnwrapEnvelopeMessage(message), actor.UnwrapEnvelopeSender(message))
	}
}

// MailboxStarted does nothing.
func (m *unreadMailbox) MailboxStarted() {}

// MessagePosted does nothing.
func (m *unreadMailbox) MessagePosted(any) {}

// MailboxEmpty does nothing.
func (m *unreadMailbox) MailboxEmpty() {}

// stoppedDetail is the detail of the failure for a command that was not read.
const stoppedDetail = "the supervisor has stopped"

// answerUnread answers a message that was not read, and closes a connection in it.
func answerUnread(c *actor.RootContext, msg any, sender *actor.PID) {
	switch msg := msg.(type) {
	case *call:
		if msg.caller != nil {
			c.Send(msg.caller, msg.failure(messages.CodeClosed, "the session was stopped"))
		}
	case *passedOn:
		answerUnread(c, msg.call, nil)
	case *callsHandedBack:
		for _, k := range msg.calls {
			answerUnread(c, k, nil)
		}
	case *callsTimedOut:
		for _, k := range msg.calls {
			answerUnread(c, k, nil)
		}
	case *dialed:
		if msg.conn != nil {
			go closeWithin(unresponsiveAfter, msg.conn.Close) //nolint:errcheck // nobody is left who could be told
		}
	case *messages.Cancel, messages.Cancel:
	default:
		if sender != nil {
			cmd, _ := asPointer[messages.Command](msg)
			c.Send(sender, messages.NewFailure(cmd, messages.CodeClosed, stoppedDetail))
		}
	}
}
