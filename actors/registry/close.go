package registry

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/session"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// closeCommand is a close command, or a part of a reload or stop, that waits for sessions
// to be closed.
type closeCommand struct {
	reply   *messages.Closed
	caller  *actor.PID
	match   func(messages.Key) bool // the keys to close; may be called from any goroutine
	drain   contract.Drain
	due     alarm.Entry[func()] // when it is answered at the latest
	replied bool                // the reply was sent

	table.Cursor      // of the sessions to drain
	scopes       bool // the scopes of an owner that has terminated are being drained

	nodes        closingNodes
	waiting      map[*table.Registration]struct{}     // told to drain, and not closed yet
	leftovers    map[messages.Key][]contract.Leftover // to be closed, of keys not in begun
	keys         []messages.Key                       // of leftovers, and of some that are not there any more, in order
	listingStore bool                                 // the store is asked for its keys
	stored       []messages.Key                       // keys with a record in the store, and not in begun
	begun        map[messages.Key]bool                // keys whose leftovers are being closed, or were, and those of sessions that could not be closed
	cleanups     int                                  // how many of waiting close leftovers
}

// maxCleanups is how many keys of one close command have their leftovers closed at once.
const maxCleanups = 16

// onClose closes the sessions that a close command is about, and answers when they are closed.
func (r *registry) onClose(cmd messages.Command, from *actor.PID) {
	what := selectionOf(cmd)
	if r.closings.of(what.scope).Count >= maxClosing {
		r.respond(from, messages.NewFailure(cmd, messages.CodeBusy, "too many close commands have no reply yet"))
		return
	}
	closing := r.newCloseCommand(cmd.RequestID(), from, what, contract.Drain{Now: what.now})
	if what.scope == "" {
		r.drainAll(closing)
		return
	}
	r.closings.narrow(closing, what.scope)
	for _, reg := range r.table.OfScope(what.scope) {
		if what.match(reg.Key) {
			r.drainFor(closing, reg)
		}
	}
	r.continueClose(closing)
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

// newCloseCommand starts a close command. Its sessions are drained afterwards.
func (r *registry) newCloseCommand(id string, from *actor.PID, what selection, how contract.Drain) *closeCommand {
	closing := &closeCommand{
		reply: &messages.Closed{ID: id}, caller: from, match: what.match, drain: how, Cursor: r.table.Cursor(what.servers),
		waiting: map[*table.Registration]struct{}{}, begun: map[messages.Key]bool{},
	}
	closing.due.Of = func() { r.onCloseDue(closing) }
	r.due.Set(&closing.due, time.Now().Add(r.closeTime()))
	closing.leftovers = r.leftovers.take(what.match)
	closing.keys = slices.SortedFunc(maps.Keys(closing.leftovers), messages.Key.Compare)
	r.closings.add(closing)
	if r.cfg.Store != nil && !how.Leave {
		closing.listingStore = true
		r.listStore(closing)
	}
	return closing
}

// closeTime returns how long a close command or a [protocol.Release] takes at most, also one with Now: sessions
// may not respond.
func (r *registry) closeTime() time.Duration {
	drainTime, closeTime := r.table.Slowest()
	return drainTime + 2*closeTime + 3*contract.UnresponsiveAfter
}

// drainAll drains the sessions of a close command in steps, and then continues it.
func (r *registry) drainAll(closing *closeCommand) {
	r.do(&job{step: func() (more bool) {
		more = closing.Step(func(reg *table.Registration) {
			if closing.match(reg.Key) {
				r.drainFor(closing, reg)
			}
		})
		if !more {
			r.continueClose(closing)
		}
		return more
	}})
}

// drains reports whether there may be sessions that were not told to drain.
func (closing *closeCommand) drains() bool { return closing.More() || closing.scopes }

// drainFor drains a session for a close command.
func (r *registry) drainFor(closing *closeCommand, reg *table.Registration) {
	if closing.replied {
		r.drain(reg, closing.drain)
		return
	}
	if _, ok := closing.waiting[reg]; !ok {
		closing.waiting[reg] = struct{}{}
		r.closings.waits[reg] = append(r.closings.waits[reg], closing)
		if reg.Cleanup {
			closing.cleanups++
		}
		r.drain(reg, closing.drain)
	}
}

// continueClose closes the leftovers of a close command, once all of its sessions were
// told to drain, and replies if nothing is left to wait for.
func (r *registry) continueClose(closing *closeCommand) {
	for n := 0; !closing.drains() && closing.cleanups < maxCleanups && !closing.replied; n++ {
		key, more := closing.nextLeftover()
		if !more {
			break
		}
		if n == contract.WalkStep { // most keys have no leftovers
			r.mailbox.PostUserMessage(&job{step: func() bool { r.continueClose(closing); return false }})
			return
		}
		if _, left := closing.leftovers[key]; left || r.table.Entry(key) == nil {
			r.cleanUp(closing, key)
		}
		if len(closing.stored) > 0 && closing.stored[0] == key {
			closing.stored = closing.stored[1:]
		}
	}
	r.replyIfDone(closing)
}

// nextLeftover returns the next key that may have leftovers.
func (closing *closeCommand) nextLeftover() (key messages.Key, more bool) {
	for ; len(closing.keys) > 0; closing.keys = closing.keys[1:] {
		if _, left := closing.leftovers[closing.keys[0]]; left {
			return closing.keys[0], true
		}
	}
	if len(closing.stored) > 0 {
		return closing.stored[0], true
	}
	return key, false
}

// cleanUp closes the leftovers of a key for a close command, unless the command has already done so. If another member of
// the cluster has got the key, it may have resumed them from the store: they are kept, unless none of them can be resumed.
func (r *registry) cleanUp(closing *closeCommand, key messages.Key) {
	left, foreign := closing.leftovers[key], !closing.drain.Moves && !r.owns(key)
	if foreign && (len(left) == 0 || slices.ContainsFunc(left, contract.Leftover.IsResumable)) {
		r.keepLeftovers(closing, key)
		return
	}
	delete(closing.leftovers, key)
	if len(left) == 0 && closing.begun[key] {
		return
	}
	closing.begun[key] = true
	r.drainFor(closing, r.startCleanup(key, left, closing.drain.Leave || foreign))
}

// keepLeftovers keeps the leftovers of a key for the next close command.
func (r *registry) keepLeftovers(closing *closeCommand, key messages.Key) {
	if left := closing.leftovers[key]; len(left) > 0 {
		delete(closing.leftovers, key)
		r.leftovers.add(key, left)
		closing.reply.Left = append(closing.reply.Left, messages.Left{Key: key, Reason: left[0].Reason})
	}
}

// startCleanup spawns a session actor that closes leftovers of a key, and the MCP session in the store unless that is to
// be left. The next session of the key waits for it.
func (r *registry) startCleanup(key messages.Key, left []contract.Leftover, leave bool) *table.Registration {
	e := r.table.Ensure(key)
	srv := r.table.Servers[key.Server]
	if srv == nil {
		srv = r.newServer(mcpbridge.Server{Name: key.Server}, "")
	}
	reg := &table.Registration{Key: key, Server: srv, Session: admission.Session{Draining: true, Cleanup: true}, DrainedBy: contract.Drain{Leave: leave}, Leftovers: left}
	r.start(reg, nil, session.Spec{Generation: e.Generation, Cleanup: &session.Cleanup{Leftovers: left, Leave: leave}})
	if r.table.Servers[key.Server] != srv {
		r.gate.Remove(srv.Turns) // when this session has left
	}
	r.setState(reg, messages.StateDraining)
	e.Draining = append(e.Draining, reg)
	return reg
}

// replyIfDone replies to a close command if nothing is left to wait for.
func (r *registry) replyIfDone(closing *closeCommand) {
	if closing.replied || closing.listingStore || closing.drains() || len(closing.waiting)+len(closing.leftovers)+len(closing.stored) > 0 {
		return
	}
	closing.replied = true
	r.due.Remove(&closing.due)
	r.closings.remove(closing)
	slices.SortFunc(closing.reply.Left, func(a, b messages.Left) int {
		return cmp.Or(a.Key.Compare(b.Key), cmp.Compare(a.Reason, b.Reason))
	})
	if closing.caller != nil {
		r.cfg.Post.Send(closing.caller, closing.reply)
	}
	r.stopIfEmpty()
}

// onCloseDue replies to a close command that takes too long. Leftovers whose closing has
// not begun are kept for the next command.
func (r *registry) onCloseDue(closing *closeCommand) {
	if closing.replied {
		return
	}
	for reg := range closing.waiting {
		if closing.drain.Moves {
			reg.EndLife()
		}
		closing.reply.Left = append(closing.reply.Left, messages.Left{Key: reg.Key, Reason: "it is still closing"})
	}
	for key, more := closing.nextLeftover(); more && len(closing.leftovers) > 0; key, more = closing.nextLeftover() {
		r.keepLeftovers(closing, key)
	}
	for _, key := range closing.stored {
		if !closing.begun[key] {
			closing.reply.Left = append(closing.reply.Left, messages.Left{Key: key, Reason: "there was no time to close the session from before the restart of this process"})
		}
	}
	closing.Stop()
	closing.waiting, closing.leftovers, closing.stored, closing.scopes, closing.listingStore = nil, nil, nil, false, false
	r.replyIfDone(closing)
}
