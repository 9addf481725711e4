package calls

import (
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/pace"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// CancelNamed cancels the calls of a key with an id, each in its turn.
func (c *Calls) CancelNamed(key messages.Key, id string, turns *pace.Pace[messages.Key]) {
	e := c.Table.Entry(key)
	if e == nil {
		return
	}
	all := e.Draining
	if e.Current != nil {
		all = append([]*table.Registration{e.Current}, all...)
	}
	for _, reg := range all {
		for k := c.Table.Calls.Named(reg, id); k != nil; k = k.Ticket.Older {
			if !k.Ticket.Cancelled {
				k.Ticket.Cancelled = true
				turns.Add(key, func() { Cancel(k, "") })
			}
		}
	}
}

// CancelScope cancels the calls of a scope on all servers whose serial is at most upTo, and returns how
// many had no reply.
func (c *Calls) CancelScope(scope string, upTo uint64, detail string) (count int) {
	msg := &contract.CancelCalls{UpTo: upTo, Detail: detail}
	for _, reg := range c.Table.OfScope(scope) {
		count += reg.Outstanding
		reg.Send(msg)
		c.Table.Entry(reg.Key).CancelledUpTo = upTo
	}
	return count
}

// Cancel tells the session of a call to cancel it. If no session has it, it was answered, or is being handed
// back, and is not accepted again.
func Cancel(k *contract.Call, detail string) {
	k.Ticket.Cancelled = true
	if at := table.Of(k.Ticket.At); at != nil {
		at.Send(&contract.CancelCalls{Call: k, Detail: detail})
	}
}

// Withdraw cancels a call that was accepted, also if it was handed back since.
func (c *Calls) Withdraw(k *contract.Call) {
	Cancel(k, "")
	c.Member.Withdraw(k)
}
