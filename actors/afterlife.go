package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// afterlife sees to the messages that an actor leaves unread when it stops,
// which Proto.Actor discards without a word. It is a mailbox middleware: that is
// still called for them.
type afterlife struct {
	mailbox actor.Mailbox
	root    *actor.RootContext // set in Stopped, on the mailbox's goroutine
	// bury handles one message.
	bury func(c *actor.RootContext, message any, sender *actor.PID)
}

// props gives the actor a mailbox with this middleware.
func (a *afterlife) props() actor.PropsOption {
	return actor.WithMailbox(func() actor.Mailbox {
		a.mailbox = actor.Unbounded(a)()
		return a.mailbox
	})
}

// begin is called in Stopped. A suspended mailbox would not be read any more.
func (a *afterlife) begin(c actor.Context) {
	a.root = c.ActorSystem().Root
	a.mailbox.PostSystemMessage(&actor.ResumeMailbox{})
}

// MessageReceived is called after each message, handled or discarded.
func (a *afterlife) MessageReceived(message any) {
	if a.root != nil {
		a.bury(a.root, actor.UnwrapEnvelopeMessage(message), actor.UnwrapEnvelopeSender(message))
	}
}

// MailboxStarted does nothing.
func (a *afterlife) MailboxStarted() {}

// MessagePosted does nothing.
func (a *afterlife) MessagePosted(any) {}

// MailboxEmpty does nothing.
func (a *afterlife) MailboxEmpty() {}

// stopped is what callers are told whose command comes too late.
const stopped = "the supervisor has stopped"

// bury answers what was left unread in a mailbox.
func bury(c *actor.RootContext, msg any, sender *actor.PID) {
	switch msg := msg.(type) {
	case *call:
		if msg.caller != nil {
			c.Send(msg.caller, msg.failure(messages.CodeClosed, "the session was stopped"))
		}
	case *passedOn:
		bury(c, msg.call, nil)
	case *handback:
		for _, k := range msg.calls {
			bury(c, k, nil)
		}
	case *late:
		for _, k := range msg.calls {
			bury(c, k, nil)
		}
	case *dialed:
		if msg.conn != nil {
			go closing(patience, msg.conn.Close) //nolint:errcheck // nobody is left who could be told
		}
	case *messages.Cancel, messages.Cancel:
	default:
		if sender != nil {
			cmd, _ := pointed[messages.Command](msg)
			c.Send(sender, messages.NewFailure(cmd, messages.CodeClosed, stopped))
		}
	}
}
