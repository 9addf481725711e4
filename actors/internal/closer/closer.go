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
	"github.com/mcpactor/mcpactor/actors/internal/handles"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/keeper"
	"github.com/mcpactor/mcpactor/actors/internal/member"
	"github.com/mcpactor/mcpactor/actors/internal/sessions"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/messages"
)

// Closer is used by the actor of the registry only.
type Closer struct{ With }

// With is what the closer needs.
type With struct {
	Cfg      *contract.Config
	Table    *table.Table
	Book     *closing.Book
	Sessions *sessions.Sessions
	Member   *member.Member
	Alarm    *alarm.Alarm[func()]
	Jobs     *jobs.Jobs
	Keeper   *keeper.Keeper
}

// New returns a closer without commands.
func New(with With) *Closer { return &Closer{with} }

// Close closes the sessions that a close command is about, and answers when they are closed. It returns the failure of a command
// that is not accepted, or nil.
func (c *Closer) Close(cmd messages.Command, from *actor.PID) *messages.Failure {
	what := selectionOf(cmd)
	if c.Book.Of(what.scope).Count >= closing.MaxOfScope {
		return messages.NewFailure(cmd, messages.CodeBusy, "too many close commands have no reply yet")
	}
	o := closing.Order{ID: cmd.RequestID(), Caller: from, Match: what.match, How: contract.Drain{Now: what.now}, Keeps: what.keeps}
	if what.scope == "" {
		closes := c.Begin(o, func(server string) bool { return what.server == "" || server == what.server })
		c.release(closes, "", func() { c.DrainAll(closes) })
		return nil
	}
	o.Scopes, o.UpTo = []string{what.scope}, c.Table.Serial
	c.EndScope(c.Begin(o, nil), what.scope)
	return nil
}

// release releases the handles of the scopes of a close command, or of one of them, before it drains their sessions, unless it keeps them.
func (c *Closer) release(closes *closing.Command, scope string, then func()) {
	if closes.Keeps || closes.How.Leave || closes.How.Moves {
		then()
		return
	}
	closes.Releasing()
	c.Keeper.End(handles.Matches{Key: closes.Match, Scope: scope}, closes.How.Now, func(e *handles.End) {
		closes.Released(e.Left)
		then()
	})
}

// CloseUnneeded closes a session that was opened to release handles only. The close commands about its key wait for it.
func (c *Closer) CloseUnneeded(reg *table.Registration) {
	for closes := range c.Book.OfKey(reg.Key) {
		c.drain(closes, reg)
	}
	c.Sessions.Drain(reg, contract.Drain{})
}

// CloseAll closes all sessions for nobody.
func (c *Closer) CloseAll(how contract.Drain) *closing.Command {
	closes := c.Begin(closing.Order{Match: anyKey, How: how}, anyServer)
	c.release(closes, "", func() { c.DrainAll(closes) })
	return closes
}

// EndScope releases the handles of a scope of a close command that drains by scope, and then drains its sessions.
func (c *Closer) EndScope(closes *closing.Command, scope string) {
	c.release(closes, scope, func() {
		c.drainScope(closes, scope)
		c.proceed(closes)
	})
}

// Release drains the sessions of the keys that match.
func (c *Closer) Release(msg *protocol.Release, from *actor.PID) {
	how := contract.Drain{Evict: true, Restart: true, Moves: true, Now: msg.Now, Leave: msg.Leave && c.Cfg.Store != nil}
	c.Keeper.Moved(msg.Match)
	c.DrainAll(c.Begin(closing.Order{Caller: from, Match: msg.Match, How: how}, anyServer))
}

// Time returns how long a close command or a [protocol.Release] takes at most, also one with Now: sessions
// may not respond.
func (c *Closer) Time() time.Duration {
	drainTime, closeTime := c.Table.Servers.Slowest()
	return drainTime + 2*closeTime + 3*contract.UnresponsiveAfter + c.Keeper.Time()
}

// Begin begins a close command. DrainAll drains those of its sessions that are of these servers; nil is none.
func (c *Closer) Begin(o closing.Order, servers func(server string) bool) *closing.Command {
	if servers != nil {
		o.Sessions, o.UpTo = c.Table.Cursor(servers), c.Table.Serial
	}
	o.Stored = c.Cfg.Store != nil && !o.How.Leave
	closes := c.Book.Begin(o, c.GiveUp)
	c.Alarm.Set(&closes.Due, time.Now().Add(c.Time()))
	if o.Stored {
		c.listStore(closes)
	}
	return closes
}

// listStore asks the store for its keys that match a close command.
func (c *Closer) listStore(closes *closing.Command) {
	c.Jobs.Await(func() (then func()) {
		var keys []messages.Key
		contract.KeyStore{Cfg: c.Cfg}.Try("list", func(ctx context.Context) error {
			all, err := c.Cfg.Store.Keys(ctx)
			if err == nil {
				keys = slices.DeleteFunc(all, func(key messages.Key) bool {
					return !closes.Match(key) || !recordkey.IsOfSession(key)
				})
			}
			return err
		})
		return func() {
			c.Book.Listed(closes, keys)
			c.proceed(closes)
		}
	})
}

// DrainAll drains the sessions of a close command in steps, and then proceeds with it.
func (c *Closer) DrainAll(closes *closing.Command) {
	c.Jobs.Do(&jobs.Job{Step: func() (more bool) {
		more = closes.Sessions.Step(func(reg *table.Registration) {
			if closes.Match(reg.Key) {
				c.drain(closes, reg)
			}
		})
		if !more {
			c.proceed(closes)
		}
		return more
	}})
}

// drainScope drains the sessions of a scope that a close command is about.
func (c *Closer) drainScope(closes *closing.Command, scope string) {
	for _, reg := range c.Table.OfScope(scope) {
		if reg.Serial <= closes.UpTo && closes.Match(reg.Key) {
			c.drain(closes, reg)
		}
	}
}

// ScopesDrained proceeds with a close command whose scopes are all drained.
func (c *Closer) ScopesDrained(closes *closing.Command) {
	closes.ScopesDrained()
	c.proceed(closes)
}

// drain drains a session for a close command.
func (c *Closer) drain(closes *closing.Command, reg *table.Registration) {
	if c.Book.Wait(closes, reg) || closes.Replied() {
		c.Sessions.Drain(reg, closes.How)
	}
}

// proceed closes what is left open of the keys of a close command, and replies if nothing is left to wait for.
func (c *Closer) proceed(closes *closing.Command) {
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
	c.Jobs.Later(&jobs.Job{Step: func() (more bool) { c.proceed(closes); return false }})
}

// end replies to a close command if nothing is left to wait for.
func (c *Closer) end(closes *closing.Command) {
	if c.Book.End(closes) {
		c.Alarm.Remove(&closes.Due)
		c.Cfg.Post.Send(closes.Caller, closes.Reply)
	}
}

// cleanUp closes what is left open of a key for a close command, unless the command has already done so.
func (c *Closer) cleanUp(closes *closing.Command, key messages.Key) {
	if left, leave, ok := c.Book.CleanUp(closes, key, c.Member.Owns(key)); ok {
		c.drain(closes, c.Sessions.CleanUp(key, left, leave))
	}
}

// GiveUp replies to a close command that takes too long.
func (c *Closer) GiveUp(closes *closing.Command) {
	for _, reg := range c.Book.GiveUp(closes) {
		if closes.How.Moves {
			reg.EndLife()
		}
	}
	c.proceed(closes)
}

// Apply applies the close commands that came before a call to the key of the
// call: a session that they have not reached is drained, and leftovers are closed before
// the session of the call opens.
func (c *Closer) Apply(key messages.Key) {
	if c.Book.Count() == 0 {
		return
	}
	for closes := range c.Book.OfKey(key) {
		if reg := c.Table.Current(key); reg != nil && closes.Reaches(reg) {
			c.drain(closes, reg)
		}
		if closes.Concerns(key, c.Table.Entry(key) != nil) {
			c.cleanUp(closes, key)
		}
	}
}

// SessionClosed proceeds with the close commands that have waited for the end of a session actor, which has closed a number of MCP
// sessions, and could not close others.
func (c *Closer) SessionClosed(reg *table.Registration, sessions int, left []contract.Leftover) {
	for _, closes := range c.Book.Closed(reg, sessions, left) {
		c.proceed(closes)
	}
}

// CloseRecord closes the MCP session that the store has of a key, if the session actor has ended before it could resume that: it was
// closed or restarted.
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
