// Package mailboxtest is for tests of what actors are sent.
package mailboxtest

import "github.com/mcpactor/mcpactor/actors/internal/mailbox"

// Inbox has the messages that an actor was sent, which does nothing with them. It is no actor of a system: the goroutine that sends
// a message adds it.
type Inbox []any

// New returns the mailbox of an actor, and what that is sent.
func New() (*mailbox.Mailbox, *Inbox) {
	m, read := new(mailbox.Mailbox), new(Inbox)
	m.RegisterHandlers(read, inline{})
	return m, read
}

// Take returns the messages since it was last called.
func (b *Inbox) Take() (read []any) {
	read, *b = *b, nil
	return read
}

// InvokeUserMessage adds a message.
func (b *Inbox) InvokeUserMessage(msg any) { *b = append(*b, msg) }

// InvokeSystemMessage ignores a message.
func (*Inbox) InvokeSystemMessage(any) {}

// EscalateFailure ignores a failure.
func (*Inbox) EscalateFailure(_, _ any) {}

// inline is a dispatcher that runs an actor in the goroutine that sends it a message.
type inline struct{}

func (inline) Schedule(run func()) { run() }
func (inline) Throughput() int     { return 1 }
