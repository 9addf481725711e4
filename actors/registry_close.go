package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// tally is a close command that waits for sessions to be gone.
type closeCommand struct {
	reply   *messages.Closed
	caller  *actor.PID
	match   func(messages.Key) bool // whose sessions are closed; safe in any goroutine
	order   drain
	timer   *time.Timer
	replied bool // it was answered

	upTo    uint64          // the last child that there was when the command came
	cursors []*registration // where the sweep goes on, one for each server

	waiting      map[*registration]struct{}  // told to drain, and not gone
	leftovers    map[messages.Key][]leftover // that are to be ended, and were not begun
	listingStore bool                        // the keys that the store has are being asked for
	stored       []messages.Key              // of these keys the store has a record
	begun        map[messages.Key]bool       // of these, whose records were seen to
	cleanups     int                         // how many of waiting end what was left
}

// sweepStep is how many sessions are told to drain before others have their turn.
const drainStep = 64

// maxEnding bounds how many keys, of one close command, sessions of before are ended of at once.
const maxCleanups = 16

// onControl handles the commands that are not about one key.
func (r *registry) onControl(c actor.Context, cmd messages.Command) {
	switch cmd := cmd.(type) {
	case *messages.CloseScope:
		key := messages.Key{Scope: cmd.Scope}.Normal()
		if err := key.Validate(); err != nil {
			r.respond(c, messages.NewFailure(cmd, messages.CodeInvalid, err.Error()))
			return
		}
		scope := func(k messages.Key) bool { return k.Scope == key.Scope }
		closing := r.newCloseCommand(c, cmd, scope, drain{})
		for reg := range r.index.scopes[key.Scope] {
			r.drainFor(c, closing, reg)
		}
		r.continueClose(c, closing)
	case *messages.CloseServer:
		if r.servers[cmd.Server] == nil {
			r.respond(c, messages.NewFailure(cmd, messages.CodeUnknownServer, "no server of that name is configured"))
			return
		}
		r.drainNext(c, r.newCloseCommand(c, cmd, func(k messages.Key) bool { return k.Server == cmd.Server }, drain{}))
	case *messages.CloseAll:
		r.drainNext(c, r.newCloseCommand(c, cmd, anyKey, drain{}))
	case *messages.Inspect:
		r.respond(c, r.snapshot(cmd))
	}
}

func anyKey(messages.Key) bool { return true }

// onStop closes everything. When all is gone, the registry stops.
func (r *registry) onStop(c actor.Context) {
	if !r.stopping {
		r.stopping = true
		r.drainNext(c, r.newCloseCommand(c, &messages.CloseAll{}, anyKey, drain{leave: r.cfg.LeaveOpen}))
		r.stopIfEmpty(c)
	}
}

// tally begins a close command.
func (r *registry) newCloseCommand(c actor.Context, cmd messages.Command, match func(messages.Key) bool, how drain) *closeCommand {
	closing := &closeCommand{
		reply: &messages.Closed{ID: cmd.RequestID()}, caller: c.Sender(), match: match, order: how, upTo: r.index.serial,
		waiting: map[*registration]struct{}{}, begun: map[messages.Key]bool{},
	}
	closing.cursors = r.index.firstOfServers(func(server string) bool {
		_, scoped := cmd.(*messages.CloseScope)
		return !scoped && match(messages.Key{Server: server})
	})
	closing.timer = after(c, r.cfg.DrainTimeout+2*r.cfg.CloseTimeout+3*unresponsiveAfter, &closeDue{closing})
	closing.leftovers = r.leftovers.take(match)
	r.closeCommands[closing] = struct{}{}
	if r.cfg.Store != nil && !how.leave {
		closing.listingStore = true
		r.listStore(c, closing)
	}
	return closing
}

// sweep drains the sessions that there were when the command came, some at a time.
func (r *registry) drainNext(c actor.Context, closing *closeCommand) {
	for n := 0; n < drainStep && len(closing.cursors) > 0 && !closing.replied; n++ {
		last := len(closing.cursors) - 1
		reg := closing.cursors[last]
		if reg == nil || reg.serial > closing.upTo {
			closing.cursors = closing.cursors[:last]
			continue
		}
		closing.cursors[last] = reg.newer
		if reg.state() != "" {
			r.drainFor(c, closing, reg)
		}
	}
	if len(closing.cursors) > 0 && !closing.replied {
		c.Send(c.Self(), &closeStepDue{closing})
		return
	}
	r.continueClose(c, closing)
}

// drainFor drains a session for a close command that waits for it.
func (r *registry) drainFor(c actor.Context, closing *closeCommand, reg *registration) {
	if _, ok := closing.waiting[reg]; !ok {
		closing.waiting[reg] = struct{}{}
		reg.closeCommands = append(reg.closeCommands, closing)
		r.drain(c, reg, closing.order)
	}
}

// close ends what no session of ours has, when those are drained, and answers the
// command when there is nothing to wait for.
func (r *registry) continueClose(c actor.Context, closing *closeCommand) {
	for n := 0; len(closing.cursors) == 0 && closing.cleanups < maxCleanups && !closing.replied; n++ {
		key, more := closing.nextLeftover()
		if !more {
			break
		}
		if n == drainStep { // most were ended before
			c.Send(c.Self(), &closeStepDue{closing})
			return
		}
		if _, left := closing.leftovers[key]; left || r.entries[key] == nil {
			r.cleanUp(c, closing, key)
		}
		if len(closing.stored) > 0 && closing.stored[0] == key {
			closing.stored = closing.stored[1:]
		}
	}
	r.replyIfDone(c, closing)
}

// next returns the next key of which something may have to be ended.
func (closing *closeCommand) nextLeftover() (key messages.Key, more bool) {
	for key := range closing.leftovers {
		return key, true
	}
	if len(closing.stored) > 0 {
		return closing.stored[0], true
	}
	return key, false
}

// precede sees to it that a close command that came before a call has its way: the
// session that the call would have got is drained, and what is left of older ones is
// ended before its session opens.
func (r *registry) applyPendingCloses(c actor.Context, key messages.Key) {
	for closing := range r.closeCommands {
		if closing.replied || !closing.match(key) {
			continue
		}
		e := r.entries[key]
		if e != nil && e.current != nil && len(closing.cursors) > 0 && e.current.serial <= closing.upTo {
			r.drainFor(c, closing, e.current)
		}
		_, left := closing.leftovers[key]
		if left || e == nil && (closing.listingStore || len(closing.stored) > 0) {
			r.cleanUp(c, closing, key)
		}
	}
}

// endFor spawns a session actor that ends what sessions of a key are left, unless that
// was done for the command.
func (r *registry) cleanUp(c actor.Context, closing *closeCommand, key messages.Key) {
	left := closing.leftovers[key]
	delete(closing.leftovers, key)
	if len(left) == 0 && closing.begun[key] {
		return
	}
	closing.begun[key] = true
	e := r.entry(key)
	srv := r.servers[key.Server]
	if srv == nil {
		srv = r.newServer(mcpbridge.Server{Name: key.Server})
	}
	reg := &registration{key: key, server: srv, draining: true, cleanup: true, leftovers: left, closeCommands: []*closeCommand{closing}}
	r.start(c, reg, &durable{generation: e.generation, cleanup: &cleanup{leftovers: left, configured: r.servers[key.Server] != nil}})
	r.setState(reg, messages.StateDraining)
	e.draining = append(e.draining, reg)
	closing.waiting[reg] = struct{}{}
	closing.cleanups++
}

// drain takes a session out of use, and tells it to end.
func (r *registry) drain(c actor.Context, reg *registration, how drain) {
	if reg.draining && (how.evict || !reg.evicted) {
		return
	}
	if !reg.draining {
		r.takeOutOfUse(reg)
	}
	reg.evicted = how.evict
	c.Send(reg.pid, &how)
}

// detach takes a session out of use: its key gets a new one from here on.
func (r *registry) takeOutOfUse(reg *registration) {
	reg.draining, reg.wantsDial = true, false
	r.setState(reg, messages.StateDraining)
	r.dequeue(reg)
	reg.stopBackoffTimer()
	r.lru.remove(&reg.lruNode)
	if reg.slot {
		r.drainingSlots++
	}
	e := r.entries[reg.key]
	e.current = nil
	e.draining = append(e.draining, reg)
}

// onGone forgets a session that has ended as it was told.
func (r *registry) onSessionClosed(c actor.Context, msg *sessionClosed) {
	if r.registrations[msg.of.pid.Id] == msg.of {
		c.Stop(msg.of.pid)
		if msg.cleanedUp > 0 {
			r.serverUp(c, msg.of)
		}
		r.forget(c, msg.of, msg.leftovers, msg.cleanedUp)
	}
}

// onTerminated forgets a session that somebody else has stopped.
func (r *registry) onTerminated(c actor.Context, msg *actor.Terminated) {
	if reg := r.registrations[msg.Who.Id]; reg != nil {
		if !reg.draining {
			r.takeOutOfUse(reg)
		}
		r.forget(c, reg, reg.leftovers, 0)
	}
}

// bid forgets a session that is gone, and tells those who waited for that. left is
// what it could not end, and ended how many it has ended of sessions that were not its own.
func (r *registry) forget(c actor.Context, reg *registration, left []leftover, ended int) {
	had := reg.wasOpen
	event := &messages.SessionClosed{Stamp: reg.stamp()}
	if len(left) > 0 {
		event.Cause = left[0].reason
		r.leftovers.add(reg.key, left)
	}
	if had {
		r.counters.Closed++
		r.publish(c, event)
		if len(left) == 0 {
			ended++
		}
	}
	r.remove(c, reg)
	for _, closing := range reg.closeCommands {
		if closing.replied {
			continue
		}
		delete(closing.waiting, reg)
		if reg.cleanup {
			closing.cleanups--
		}
		closing.reply.Sessions += ended
		for _, one := range left {
			closing.reply.Left = append(closing.reply.Left, messages.Left{Key: reg.key, Reason: one.reason})
		}
		r.continueClose(c, closing)
	}
	reg.closeCommands = nil
	r.stopIfEmpty(c)
}

// settle answers a close command when there is nothing more to wait for.
func (r *registry) replyIfDone(c actor.Context, closing *closeCommand) {
	if closing.replied || closing.listingStore || len(closing.cursors)+len(closing.waiting)+len(closing.leftovers)+len(closing.stored) > 0 {
		return
	}
	closing.replied = true
	closing.timer.Stop()
	delete(r.closeCommands, closing)
	slices.SortFunc(closing.reply.Left, func(a, b messages.Left) int { return compareKeys(a.Key, b.Key) })
	if closing.caller != nil {
		c.Send(closing.caller, closing.reply)
	}
	r.stopIfEmpty(c)
}

// onOverdue answers a close command that could not be done in time. What it has not
// begun is left to another one.
func (r *registry) onCloseDue(c actor.Context, closing *closeCommand) {
	if closing.replied {
		return
	}
	for reg := range closing.waiting {
		closing.reply.Left = append(closing.reply.Left, messages.Left{Key: reg.key, Reason: "it is still closing"})
	}
	for key, left := range closing.leftovers {
		r.leftovers.add(key, left)
		closing.reply.Left = append(closing.reply.Left, messages.Left{Key: key, Reason: left[0].reason})
	}
	for _, key := range closing.stored {
		if !closing.begun[key] {
			closing.reply.Left = append(closing.reply.Left, messages.Left{Key: key, Reason: "there was no time to end the session of before our restart"})
		}
	}
	closing.waiting, closing.leftovers, closing.stored, closing.cursors, closing.listingStore = nil, nil, nil, nil, false
	r.replyIfDone(c, closing)
}

// stopIfEmpty stops a registry that was told to, when all sessions are gone.
func (r *registry) stopIfEmpty(c actor.Context) {
	if r.stopping && !r.finished && len(r.registrations)+len(r.closeCommands)+r.pending == 0 {
		r.finished = true
		c.Stop(c.Self())
	}
}

// onStopped is the last that is done. Anybody may stop any actor, so there may
// be something left.
func (r *registry) onStopped(c actor.Context) {
	r.finished = true
	if r.idleTimer != nil {
		r.idleTimer.Stop()
	}
	if r.cancellations.timer != nil {
		r.cancellations.timer.Stop()
	}
	for _, reg := range r.registrations {
		r.dequeue(reg)
		r.returnStartPermit(reg)
		reg.stopBackoffTimer()
	}
	for closing := range r.closeCommands {
		r.onCloseDue(c, closing)
	}
	r.mailbox.answerUnread(c)
	r.cfg.Stopped(r.leftovers.list())
}
