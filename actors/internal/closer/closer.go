// Package closer carries out what the book of close commands says: it drains sessions, closes what is left open, and replies.
package closer

import (
	"context"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/member"
	"github.com/mcpactor/mcpactor/actors/internal/sessions"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/messages"
)

// Closer is used by the actor of the registry only.
type Closer struct {
	Cfg      *contract.Config
	Table    *table.Table
	Book     *closing.Book
	Sessions *sessions.Sessions
	Member   *member.Member
	Alarm    *alarm.Alarm[func()]
	Do       Do
}

// Do is what the registry does for the closer.
type Do struct {
	Reply   func(to *actor.PID, reply messages.Reply)
	InSteps func(step func() (more bool))   // does something in steps, of which the first one is now
	Later   func(step func() (more bool))   // does the first step with another message
	Await   func(work func() (then func())) // works in another goroutine; the registry stops after it
	Ended   func()                          // a close command has its reply
}

// Close closes the sessions that a close command is about, and answers when they are closed.
func (c *Closer) Close(cmd messages.Command, from *actor.PID) {
	what := selectionOf(cmd)
	if c.Book.Of(what.scope).Count >= closing.MaxOfScope {
		c.Do.Reply(from, messages.NewFailure(cmd, messages.CodeBusy, "too many close commands have no reply yet"))
		return
	}
	closes := c.Begin(cmd.RequestID(), from, what, contract.Drain{Now: what.now})
	if what.scope == "" {
		c.DrainAll(closes)
		return
	}
	c.Book.Narrow(closes, what.scope)
	for _, reg := range what.found(c.Table) {
		c.Drain(closes, reg)
	}
	c.Continue(closes)
}

// CloseAll closes all sessions for nobody.
func (c *Closer) CloseAll(how contract.Drain) {
	c.DrainAll(c.Begin("", nil, Selection{Match: anyKey, Servers: anyServer}, how))
}

// Release drains the sessions of the keys that match.
func (c *Closer) Release(msg *protocol.Release, from *actor.PID) {
	how := contract.Drain{Evict: true, Restart: true, Moves: true, Now: msg.Now, Leave: msg.Leave && c.Cfg.Store != nil}
	c.DrainAll(c.Begin("", from, Selection{Match: msg.Match, Servers: anyServer}, how))
}

// Time returns how long a close command or a [protocol.Release] takes at most, also one with Now: sessions
// may not respond.
func (c *Closer) Time() time.Duration {
	drainTime, closeTime := c.Table.Slowest()
	return drainTime + 2*closeTime + 3*contract.UnresponsiveAfter
}

// Begin begins a close command, whose sessions are drained afterwards.
func (c *Closer) Begin(id string, from *actor.PID, what Selection, how contract.Drain) *closing.Command {
	closes := &closing.Command{Reply: &messages.Closed{ID: id}, Caller: from, Match: what.Match, How: how, Cursor: c.Table.Cursor(what.Servers)}
	closes.Due.What = func() { c.GiveUp(closes) }
	c.Alarm.Set(&closes.Due, time.Now().Add(c.Time()))
	c.Book.Begin(closes)
	if c.Cfg.Store != nil && !how.Leave {
		closes.Listing = true
		c.listStore(closes)
	}
	return closes
}

// listStore asks the store for its keys that match a close command.
func (c *Closer) listStore(closes *closing.Command) {
	c.Do.Await(func() (then func()) {
		var keys []messages.Key
		contract.KeyStore{Cfg: c.Cfg}.Try("list", func(ctx context.Context) error {
			all, err := c.Cfg.Store.Keys(ctx)
			if err == nil {
				keys = slices.DeleteFunc(all, func(key messages.Key) bool {
					return !closes.Match(key) || recordkey.IsList(key) || recordkey.IsCall(key)
				})
			}
			return err
		})
		return func() {
			c.Book.Listed(closes, keys)
			c.Continue(closes)
		}
	})
}

// DrainAll drains the sessions of a close command in steps, and then continues it.
func (c *Closer) DrainAll(closes *closing.Command) {
	c.Do.InSteps(func() (more bool) {
		more = closes.Step(func(reg *table.Registration) {
			if closes.Match(reg.Key) {
				c.Drain(closes, reg)
			}
		})
		if !more {
			c.Continue(closes)
		}
		return more
	})
}

// Drain drains a session for a close command.
func (c *Closer) Drain(closes *closing.Command, reg *table.Registration) {
	if c.Book.Wait(closes, reg) || closes.Replied() {
		c.Sessions.Drain(reg, closes.How)
	}
}

// Continue closes what is left open of the keys of a close command, and replies if nothing is left to wait for.
func (c *Closer) Continue(closes *closing.Command) {
	has := func(key messages.Key) bool { return c.Table.Entry(key) != nil }
	for range contract.WalkStep { // most keys have nothing left
		key, todo, more := c.Book.Next(closes, has)
		if !more {
			c.end(closes)
			return
		}
		if todo {
			c.cleanUp(closes, key)
		}
	}
	c.Do.Later(func() (more bool) { c.Continue(closes); return false })
}

// end replies to a close command if nothing is left to wait for.
func (c *Closer) end(closes *closing.Command) {
	if c.Book.End(closes) {
		c.Alarm.Remove(&closes.Due)
		c.Do.Reply(closes.Caller, closes.Reply)
		c.Do.Ended()
	}
}

// cleanUp closes what is left open of a key for a close command, unless the command has already done so.
func (c *Closer) cleanUp(closes *closing.Command, key messages.Key) {
	if left, leave, ok := c.Book.CleanUp(closes, key, c.Member.Owns(key)); ok {
		c.Drain(closes, c.Sessions.CleanUp(key, left, leave))
	}
}

// GiveUp replies to a close command that takes too long.
func (c *Closer) GiveUp(closes *closing.Command) {
	for _, reg := range c.Book.GiveUp(closes) {
		if closes.How.Moves {
			reg.EndLife()
		}
	}
	c.Continue(closes)
}

// Apply applies the close commands that came before a call to the key of the
// call: a session that they have not reached is drained, and leftovers are closed before
// the session of the call opens.
func (c *Closer) Apply(key messages.Key) {
	if c.Book.Count() == 0 {
		return
	}
	for closes := range c.Book.OfKey(key) {
		if reg := c.Table.Current(key); reg != nil && closes.Drains() && reg.Serial <= closes.UpTo {
			c.Drain(closes, reg)
		}
		if closes.Concerns(key, c.Table.Entry(key) != nil) {
			c.cleanUp(closes, key)
		}
	}
}

// SessionClosed continues the close commands that waited for the end of a session actor: how many MCP sessions it has closed, and
// which it has left.
func (c *Closer) SessionClosed(reg *table.Registration, sessions int, left []contract.Leftover) {
	for _, closes := range c.Book.Closed(reg, sessions, left) {
		c.Continue(closes)
	}
}

// CloseRecord closes the MCP session that the store has of a key, whose session was closed or restarted before it could
// resume it.
func (c *Closer) CloseRecord(reg *table.Registration) {
	if c.Cfg.Store == nil || reg.WasOpen || reg.Cleanup || reg.DrainedBy.Leave {
		return
	}
	if closes := c.Book.ForRecord(reg); closes != nil {
		c.cleanUp(closes, reg.Key)
		return
	}
	if reg.DrainedBy.Restart && !reg.DrainedBy.Moves && c.Member.Owns(reg.Key) {
		c.Sessions.CleanUp(reg.Key, nil, false)
	}
}
