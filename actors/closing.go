package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// tally is a close command that waits for sessions to be gone.
type tally struct {
	reply  *messages.Closed
	caller *actor.PID
	match  func(messages.Key) bool // whose sessions are closed; safe in any goroutine
	how    drain
	timer  *time.Timer
	over   bool // it was answered

	upTo    uint64   // the last child that there was when the command came
	cursors []*child // where the sweep goes on, one for each server

	waiting    map[*child]struct{}        // told to drain, and not gone
	unended    map[messages.Key][]unended // that are to be ended, and were not begun
	listing    bool                       // the keys that the store has are being asked for
	remembered []messages.Key             // of these keys the store has a record
	begun      map[messages.Key]bool      // of these, whose records were seen to
	ending     int                        // how many of waiting end what was left
}

// sweepStep is how many sessions are told to drain before others have their turn.
const sweepStep = 64

// maxEnding bounds how many keys, of one close command, sessions of before are ended of at once.
const maxEnding = 16

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
		t := r.tally(c, cmd, scope, drain{})
		for ch := range r.roster.scopes[key.Scope] {
			r.drainFor(c, t, ch)
		}
		r.close(c, t)
	case *messages.CloseServer:
		if r.servers[cmd.Server] == nil {
			r.respond(c, messages.NewFailure(cmd, messages.CodeUnknownServer, "no server of that name is configured"))
			return
		}
		r.sweep(c, r.tally(c, cmd, func(k messages.Key) bool { return k.Server == cmd.Server }, drain{}))
	case *messages.CloseAll:
		r.sweep(c, r.tally(c, cmd, everything, drain{}))
	case *messages.Inspect:
		r.respond(c, r.snapshot(cmd))
	}
}

func everything(messages.Key) bool { return true }

// onStop closes everything. When all is gone, the registry stops.
func (r *registry) onStop(c actor.Context) {
	if !r.stopping {
		r.stopping = true
		r.sweep(c, r.tally(c, &messages.CloseAll{}, everything, drain{leave: r.cfg.LeaveOpen}))
		r.stopIfEmpty(c)
	}
}

// tally begins a close command.
func (r *registry) tally(c actor.Context, cmd messages.Command, match func(messages.Key) bool, how drain) *tally {
	t := &tally{
		reply: &messages.Closed{ID: cmd.RequestID()}, caller: c.Sender(), match: match, how: how, upTo: r.roster.serial,
		waiting: map[*child]struct{}{}, begun: map[messages.Key]bool{},
	}
	t.cursors = r.roster.firsts(func(server string) bool {
		_, scoped := cmd.(*messages.CloseScope)
		return !scoped && match(messages.Key{Server: server})
	})
	t.timer = after(c, r.cfg.DrainTimeout+2*r.cfg.CloseTimeout+3*patience, &overdue{t})
	t.unended = r.left.take(match)
	r.tallies[t] = struct{}{}
	if r.cfg.Store != nil && !how.leave {
		t.listing = true
		r.list(c, t)
	}
	return t
}

// sweep drains the sessions that there were when the command came, some at a time.
func (r *registry) sweep(c actor.Context, t *tally) {
	for n := 0; n < sweepStep && len(t.cursors) > 0 && !t.over; n++ {
		last := len(t.cursors) - 1
		ch := t.cursors[last]
		if ch == nil || ch.serial > t.upTo {
			t.cursors = t.cursors[:last]
			continue
		}
		t.cursors[last] = ch.newer
		if ch.state() != "" {
			r.drainFor(c, t, ch)
		}
	}
	if len(t.cursors) > 0 && !t.over {
		c.Send(c.Self(), &swept{t})
		return
	}
	r.close(c, t)
}

// drainFor drains a session for a close command that waits for it.
func (r *registry) drainFor(c actor.Context, t *tally, ch *child) {
	if _, ok := t.waiting[ch]; !ok {
		t.waiting[ch] = struct{}{}
		ch.tallies = append(ch.tallies, t)
		r.drain(c, ch, t.how)
	}
}

// close ends what no session of ours has, when those are drained, and answers the
// command when there is nothing to wait for.
func (r *registry) close(c actor.Context, t *tally) {
	for n := 0; len(t.cursors) == 0 && t.ending < maxEnding && !t.over; n++ {
		key, more := t.next()
		if !more {
			break
		}
		if n == sweepStep { // most were ended before
			c.Send(c.Self(), &swept{t})
			return
		}
		if _, left := t.unended[key]; left || r.entries[key] == nil {
			r.endFor(c, t, key)
		}
		if len(t.remembered) > 0 && t.remembered[0] == key {
			t.remembered = t.remembered[1:]
		}
	}
	r.settle(c, t)
}

// next returns the next key of which something may have to be ended.
func (t *tally) next() (key messages.Key, more bool) {
	for key := range t.unended {
		return key, true
	}
	if len(t.remembered) > 0 {
		return t.remembered[0], true
	}
	return key, false
}

// precede sees to it that a close command that came before a call has its way: the
// session that the call would have got is drained, and what is left of older ones is
// ended before its session opens.
func (r *registry) precede(c actor.Context, key messages.Key) {
	for t := range r.tallies {
		if t.over || !t.match(key) {
			continue
		}
		e := r.entries[key]
		if e != nil && e.current != nil && len(t.cursors) > 0 && e.current.serial <= t.upTo {
			r.drainFor(c, t, e.current)
		}
		_, left := t.unended[key]
		if left || e == nil && (t.listing || len(t.remembered) > 0) {
			r.endFor(c, t, key)
		}
	}
}

// endFor spawns a session actor that ends what sessions of a key are left, unless that
// was done for the command.
func (r *registry) endFor(c actor.Context, t *tally, key messages.Key) {
	left := t.unended[key]
	delete(t.unended, key)
	if len(left) == 0 && t.begun[key] {
		return
	}
	t.begun[key] = true
	e := r.entry(key)
	srv := r.servers[key.Server]
	if srv == nil {
		srv = r.at(mcpbridge.Server{Name: key.Server})
	}
	ch := &child{key: key, server: srv, leaving: true, ending: true, left: left, tallies: []*tally{t}}
	r.start(c, ch, &life{generation: e.generation, ending: &ending{left: left, configured: r.servers[key.Server] != nil}})
	r.enter(ch, messages.StateDraining)
	e.leaving = append(e.leaving, ch)
	t.waiting[ch] = struct{}{}
	t.ending++
}

// drain takes a session out of use, and tells it to end.
func (r *registry) drain(c actor.Context, ch *child, how drain) {
	if ch.leaving && (how.evict || !ch.evicted) {
		return
	}
	if !ch.leaving {
		r.detach(ch)
	}
	ch.evicted = how.evict
	c.Send(ch.pid, &how)
}

// detach takes a session out of use: its key gets a new one from here on.
func (r *registry) detach(ch *child) {
	ch.leaving, ch.wants = true, false
	r.enter(ch, messages.StateDraining)
	r.dequeue(ch)
	ch.stopTimer()
	r.lru.remove(&ch.place)
	if ch.slot {
		r.freeing++
	}
	e := r.entries[ch.key]
	e.current = nil
	e.leaving = append(e.leaving, ch)
}

// onGone forgets a session that has ended as it was told.
func (r *registry) onGone(c actor.Context, msg *gone) {
	if r.children[msg.of.pid.Id] == msg.of {
		c.Stop(msg.of.pid)
		if msg.ended > 0 {
			r.shown(c, msg.of)
		}
		r.bid(c, msg.of, msg.left, msg.ended)
	}
}

// onTerminated forgets a session that somebody else has stopped.
func (r *registry) onTerminated(c actor.Context, msg *actor.Terminated) {
	if ch := r.children[msg.Who.Id]; ch != nil {
		if !ch.leaving {
			r.detach(ch)
		}
		r.bid(c, ch, ch.left, 0)
	}
}

// bid forgets a session that is gone, and tells those who waited for that. left is
// what it could not end, and ended how many it has ended of sessions that were not its own.
func (r *registry) bid(c actor.Context, ch *child, left []unended, ended int) {
	had := ch.served
	event := &messages.SessionClosed{Stamp: ch.stamp()}
	if len(left) > 0 {
		event.Cause = left[0].reason
		r.left.keep(ch.key, left)
	}
	if had {
		r.counters.Closed++
		r.emit(c, event)
		if len(left) == 0 {
			ended++
		}
	}
	r.remove(c, ch)
	for _, t := range ch.tallies {
		if t.over {
			continue
		}
		delete(t.waiting, ch)
		if ch.ending {
			t.ending--
		}
		t.reply.Sessions += ended
		for _, one := range left {
			t.reply.Left = append(t.reply.Left, messages.Left{Key: ch.key, Reason: one.reason})
		}
		r.close(c, t)
	}
	ch.tallies = nil
	r.stopIfEmpty(c)
}

// settle answers a close command when there is nothing more to wait for.
func (r *registry) settle(c actor.Context, t *tally) {
	if t.over || t.listing || len(t.cursors)+len(t.waiting)+len(t.unended)+len(t.remembered) > 0 {
		return
	}
	t.over = true
	t.timer.Stop()
	delete(r.tallies, t)
	slices.SortFunc(t.reply.Left, func(a, b messages.Left) int { return compareKeys(a.Key, b.Key) })
	if t.caller != nil {
		c.Send(t.caller, t.reply)
	}
	r.stopIfEmpty(c)
}

// onOverdue answers a close command that could not be done in time. What it has not
// begun is left to another one.
func (r *registry) onOverdue(c actor.Context, t *tally) {
	if t.over {
		return
	}
	for ch := range t.waiting {
		t.reply.Left = append(t.reply.Left, messages.Left{Key: ch.key, Reason: "it is still closing"})
	}
	for key, left := range t.unended {
		r.left.keep(key, left)
		t.reply.Left = append(t.reply.Left, messages.Left{Key: key, Reason: left[0].reason})
	}
	for _, key := range t.remembered {
		if !t.begun[key] {
			t.reply.Left = append(t.reply.Left, messages.Left{Key: key, Reason: "there was no time to end the session of before our restart"})
		}
	}
	t.waiting, t.unended, t.remembered, t.cursors, t.listing = nil, nil, nil, nil, false
	r.settle(c, t)
}

// stopIfEmpty stops a registry that was told to, when all sessions are gone.
func (r *registry) stopIfEmpty(c actor.Context) {
	if r.stopping && !r.ending && len(r.children)+len(r.tallies)+r.pending == 0 {
		r.ending = true
		c.Stop(c.Self())
	}
}

// onStopped is the last that is done. Anybody may stop any actor, so there may
// be something left.
func (r *registry) onStopped(c actor.Context) {
	r.ending = true
	if r.idleTimer != nil {
		r.idleTimer.Stop()
	}
	if r.cancellations.timer != nil {
		r.cancellations.timer.Stop()
	}
	for _, ch := range r.children {
		r.dequeue(ch)
		r.endStart(ch)
		ch.stopTimer()
	}
	for t := range r.tallies {
		r.onOverdue(c, t)
	}
	r.after.begin(c)
	r.cfg.Stopped(r.left.list())
}
