package registry

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/session"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// onClose closes the sessions that a close command is about, and answers when they are closed.
func (r *registry) onClose(cmd messages.Command, from *actor.PID) {
	what := selectionOf(cmd)
	if r.closings.Of(what.scope).Count >= closing.MaxOfScope {
		r.respond(from, messages.NewFailure(cmd, messages.CodeBusy, "too many close commands have no reply yet"))
		return
	}
	closes := r.beginClose(cmd.RequestID(), from, what, contract.Drain{Now: what.now})
	if what.scope == "" {
		r.drainAll(closes)
		return
	}
	r.closings.Narrow(closes, what.scope)
	for _, reg := range r.table.OfScope(what.scope) {
		if what.match(reg.Key) {
			r.drainFor(closes, reg)
		}
	}
	r.continueClose(closes)
}

// selection is what a close command is about.
type selection struct {
	match   func(messages.Key) bool  // its keys; may be called from any goroutine
	scope   string                   // of all of them, or "" if they may have any
	servers func(server string) bool // whose sessions are searched for them; none if they are found otherwise
	now     bool
}

// selectionOf returns what a close command is about. The caller may change the command afterwards.
func selectionOf(cmd messages.Command) selection {
	switch cmd := cmd.(type) {
	case *messages.CloseSession:
		key := cmd.Key.Normal()
		return selection{match: func(k messages.Key) bool { return k == key }, scope: key.Scope, servers: noServer, now: cmd.Now}
	case *messages.CloseScope:
		scope := (messages.Key{Scope: cmd.Scope}).Normal().Scope
		return selection{match: func(k messages.Key) bool { return k.Scope == scope }, scope: scope, servers: noServer, now: cmd.Now}
	case *messages.CloseMatching:
		of := *cmd
		return selection{match: of.Matches, servers: func(server string) bool { return of.Server == "" || of.Server == server }, now: of.Now}
	case *messages.CloseServer:
		server := cmd.Server
		return selection{match: func(k messages.Key) bool { return k.Server == server }, servers: func(name string) bool { return name == server }, now: cmd.Now}
	}
	return selection{match: anyKey, servers: anyServer, now: cmd.(*messages.CloseAll).Now}
}

// anyKey matches all keys.
func anyKey(messages.Key) bool { return true }

// anyServer matches all servers.
func anyServer(string) bool { return true }

// noServer matches none.
func noServer(string) bool { return false }

// beginClose begins a close command, whose sessions are drained afterwards.
func (r *registry) beginClose(id string, from *actor.PID, what selection, how contract.Drain) *closing.Command {
	closes := &closing.Command{Reply: &messages.Closed{ID: id}, Caller: from, Match: what.match, How: how, Cursor: r.table.Cursor(what.servers)}
	closes.Due.Of = func() { r.onCloseDue(closes) }
	r.due.Set(&closes.Due, time.Now().Add(r.closeTime()))
	r.closings.Begin(closes)
	if r.cfg.Store != nil && !how.Leave {
		closes.Listing = true
		r.listStore(closes)
	}
	return closes
}

// onRelease drains the sessions of the keys that match.
func (r *registry) onRelease(msg *protocol.Release, from *actor.PID) {
	how := contract.Drain{Evict: true, Restart: true, Moves: true, Now: msg.Now, Leave: msg.Leave && r.cfg.Store != nil}
	r.drainAll(r.beginClose("", from, selection{match: msg.Match, servers: anyServer}, how))
}

// closeTime returns how long a close command or a [protocol.Release] takes at most, also one with Now: sessions
// may not respond.
func (r *registry) closeTime() time.Duration {
	drainTime, closeTime := r.table.Slowest()
	return drainTime + 2*closeTime + 3*contract.UnresponsiveAfter
}

// drainAll drains the sessions of a close command in steps, and then continues it.
func (r *registry) drainAll(closes *closing.Command) {
	r.do(&job{step: func() (more bool) {
		more = closes.Step(func(reg *table.Registration) {
			if closes.Match(reg.Key) {
				r.drainFor(closes, reg)
			}
		})
		if !more {
			r.continueClose(closes)
		}
		return more
	}})
}

// drainFor drains a session for a close command.
func (r *registry) drainFor(closes *closing.Command, reg *table.Registration) {
	if r.closings.Wait(closes, reg) || closes.Replied() {
		r.drain(reg, closes.How)
	}
}

// continueClose closes what is left open of the keys of a close command, and replies if nothing is left to wait for.
func (r *registry) continueClose(closes *closing.Command) {
	has := func(key messages.Key) bool { return r.table.Entry(key) != nil }
	for range contract.WalkStep { // most keys have nothing left
		key, leaves, more := r.closings.Next(closes, has)
		if !more {
			r.endClose(closes)
			return
		}
		if leaves {
			r.cleanUp(closes, key)
		}
	}
	r.mailbox.PostUserMessage(&job{step: func() (more bool) { r.continueClose(closes); return false }})
}

// endClose replies to a close command if nothing is left to wait for.
func (r *registry) endClose(closes *closing.Command) {
	if r.closings.End(closes) {
		r.due.Remove(&closes.Due)
		r.respond(closes.Caller, closes.Reply)
		r.stopIfEmpty()
	}
}

// cleanUp closes what is left open of a key for a close command, unless the command has already done so.
func (r *registry) cleanUp(closes *closing.Command, key messages.Key) {
	if left, leave, is := r.closings.CleanUp(closes, key, r.member.Owns(key)); is {
		r.drainFor(closes, r.startCleanup(key, left, leave))
	}
}

// startCleanup spawns a session actor that closes leftovers of a key, and the MCP session in the store unless that is to
// be left. The next session of the key waits for it.
func (r *registry) startCleanup(key messages.Key, left []contract.Leftover, leave bool) *table.Registration {
	e := r.table.Ensure(key)
	srv := r.table.Servers[key.Server]
	if srv == nil {
		srv = r.dialing.NewServer(mcpbridge.Server{Name: key.Server}, "")
	}
	reg := &table.Registration{Key: key, Server: srv, Session: admission.Session{Draining: true, Cleanup: true}, DrainedBy: contract.Drain{Leave: leave}, Leftovers: left}
	r.start(reg, nil, session.Spec{Generation: e.Generation, Cleanup: &session.Cleanup{Leftovers: left, Leave: leave}})
	if r.table.Servers[key.Server] != srv {
		r.gate.Remove(srv.Turns) // when this session has left
	}
	r.lists.SetState(reg, messages.StateDraining)
	e.Draining = append(e.Draining, reg)
	return reg
}

// onCloseDue replies to a close command that takes too long.
func (r *registry) onCloseDue(closes *closing.Command) {
	for _, reg := range r.closings.GiveUp(closes) {
		if closes.How.Moves {
			reg.EndLife()
		}
	}
	r.continueClose(closes)
}

// applyPendingCloses applies the close commands that came before a call to the key of the
// call: a session that they have not reached is drained, and leftovers are closed before
// the session of the call opens.
func (r *registry) applyPendingCloses(key messages.Key) {
	if r.closings.Count() == 0 {
		return
	}
	for closes := range r.closings.OfKey(key) {
		if reg := r.table.Current(key); reg != nil && closes.Drains() && reg.Serial <= closes.UpTo {
			r.drainFor(closes, reg)
		}
		if closes.Concerns(key, r.table.Entry(key) != nil) {
			r.cleanUp(closes, key)
		}
	}
}
