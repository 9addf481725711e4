// Package owed has the calls of a session: those that wait, and those that run.
package owed

import (
	"iter"
	"slices"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/messages"
)

// Calls are the calls of one session. They outlive its restarts.
type Calls struct {
	Parked  contract.Queue // are accepted, and do not run
	Running contract.Queue // run on the connection, or on the one before it; some have their reply
}

// IsBlocked reports whether a call waits for one that runs, about the same subscription, so that the last one decides.
func (c *Calls) IsBlocked(k *contract.Call) bool {
	uri, subscribes := k.Subscription()
	if !subscribes {
		return false
	}
	for other := range c.Running.All() {
		if its, is := other.Subscription(); is && its == uri {
			return true
		}
	}
	return false
}

// Unanswered yields the calls that run, and have no reply yet.
func (c *Calls) Unanswered() iter.Seq[*contract.Call] {
	return func(yield func(*contract.Call) bool) {
		for k := range c.Running.All() {
			if !k.Run.Replied && !yield(k) {
				return
			}
		}
	}
}

// AnyUnanswered reports whether a caller waits for a call that runs.
func (c *Calls) AnyUnanswered() bool {
	for range c.Unanswered() {
		return true
	}
	return false
}

// Owed returns all calls that have no reply yet.
func (c *Calls) Owed() []*contract.Call {
	return slices.AppendSeq(slices.Collect(c.Parked.All()), c.Unanswered())
}

// OnlyOperation returns the operation of the only call that runs, if its caller waits for it.
func (c *Calls) OnlyOperation() (op messages.Operation, is bool) {
	if only := c.Running.First(); c.Running.Count == 1 && !only.Run.Replied {
		return only.Op, true
	}
	return nil, false
}

// CancelRunning cancels all calls that run.
func (c *Calls) CancelRunning() {
	for k := range c.Running.All() {
		k.Run.Ctx.Cancel()
	}
}

// AnyOn reports whether calls run on a connection. Those whose questions are asked run on none.
func (c *Calls) AnyOn(conn dial.Conn) bool {
	for k := range c.Running.All() {
		if k.Run.Conn == conn {
			return true
		}
	}
	return false
}

// CancelOn cancels all calls that run on a connection.
func (c *Calls) CancelOn(conn dial.Conn) {
	for k := range c.Running.All() {
		if k.Run.Conn == conn {
			k.Run.Ctx.Cancel()
		}
	}
}

// InterruptTasks ends the runs of calls that follow tasks. They are run again on the next connection.
func (c *Calls) InterruptTasks(which func(*contract.Call) bool) {
	for k := range c.Unanswered() {
		if k.Run.Task != nil && which(k) {
			k.Run.Ctx.Cancel()
		}
	}
}
