package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// unreadMailbox sees to the messages that an actor leaves unread when it stops,
// which Proto.Actor discards without a word. It is a mailbox middleware: that is
// still called for them.
type unreadMailbox struct {
	mailbox actor.Mailbox
	root    *actor.RootContext // set in Stopped, on the mailbox's goroutine
	// answer handles one message.
	answer func(c *actor.RootContext, message any, sender *actor.PID)
}

// props gives the actor a mailbox with this middleware.
func (a *unreadMailbox) props() actor.PropsOption {
	return actor.WithMailbox(func() actor.Mailbox {
		a.mailbox = actor.Unbounded(a)()
		return a.mailbox
	})
}

// answerUnread is called in Stopped. A suspended mailbox would not be read any more.
func (a *unreadMailbox) answerUnread(c actor.Context) {
	a.root = c.ActorSystem().Root
	a.mailbox.PostSystemMessage(&actor.ResumeMailbox{})
}

// MessageReceived is called after each message, handled or discarded.
func (a *unreadMailbox) MessageReceived(message any) {
	if a.root != nil {
		a.answer(a.root, actor.UnwrapEnvelopeMessage(message), actor.UnwrapEnvelopeSender(message))
	}
}

// MailboxStarted does nothing.
func (a *unreadMailbox) MailboxStarted() {}

// MessagePosted does nothing.
func (a *unreadMailbox) MessagePosted(any) {}

// MailboxEmpty does nothing.
func (a *unreadMailbox) MailboxEmpty() {}

// stoppedDetail is what callers are told whose command comes too late.
const stoppedDetail = "the supervisor has stopped"

// answerUnread answers what was left unread in a mailbox.
func answerUnread(c *actor.RootContext, msg any, sender *actor.PID) {
	switch msg := msg.(type) {
	case *call:
		if msg.caller != nil {
			c.Send(msg.caller, msg.failure(messages.CodeClosed, "the session was stopped"))
		}
	case *passedOn:
		answerUnread(c, msg.call, nil)
	case *handback:
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
