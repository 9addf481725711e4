package actors

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// tally is a close command that waits for sessions to be gone.
type tally struct {
	reply     *messages.Closed
	caller    *actor.PID
	waiting   map[*child]struct{}
	retries   map[messages.Key]struct{} // closings that are tried again
	recalling bool                      // sessions of before our restart are being ended
	timer     *time.Timer
}

// onControl handles the commands that are not about one key.
func (r *registry) onControl(c actor.Context, cmd messages.Command) {
	switch cmd := cmd.(type) {
	case *messages.CloseScope:
		key := messages.Key{Scope: cmd.Scope}.Normal()
		if err := key.Validate(); err != nil {
			r.respond(c, messages.NewFailure(cmd, messages.CodeInvalid, err.Error()))
			return
		}
		r.close(c, cmd, func(k messages.Key) bool { return k.Scope == key.Scope }, drain{})
	case *messages.CloseServer:
		if r.servers[cmd.Server] == nil {
			r.respond(c, messages.NewFailure(cmd, messages.CodeUnknownServer, "no server of that name is configured"))
			return
		}
		r.close(c, cmd, func(k messages.Key) bool { return k.Server == cmd.Server }, drain{})
	case *messages.CloseAll:
		r.close(c, cmd, everything, drain{})
	case *messages.Inspect:
		r.respond(c, r.snapshot(cmd))
	}
}

func everything(messages.Key) bool { return true }

// onStop closes everything. When all is gone, the registry stops.
func (r *registry) onStop(c actor.Context) {
	if !r.stopping {
		r.stopping = true
		r.hurry(c)
		r.close(c, &messages.CloseAll{}, everything, drain{leave: r.cfg.LeaveOpen})
		r.stopIfEmpty(c)
	}
}

// close drains the sessions of some keys, and tries again what could not be
// closed before.
func (r *registry) close(c actor.Context, cmd messages.Command, match func(messages.Key) bool, how drain) {
	t := &tally{
		reply: &messages.Closed{ID: cmd.RequestID()}, caller: c.Sender(),
		waiting: map[*child]struct{}{}, retries: map[messages.Key]struct{}{},
	}
	r.tallies[t] = struct{}{}
	for _, ch := range r.children {
		if match(ch.key) {
			t.waiting[ch] = struct{}{}
			r.drain(c, ch, how)
		}
	}
	timeout := r.cfg.CloseTimeout
	for key, conn := range r.left.take(match) {
		t.retries[key] = struct{}{}
		r.retrying++
		r.cfg.work(c, func() any { return &retried{key, conn, closing(timeout, conn.Close)} })
	}
	if !how.leave {
		r.end(c, t, match)
	}
	t.timer = after(c, r.cfg.DrainTimeout+2*r.cfg.CloseTimeout+3*patience, &overdue{t})
	r.settle(c, t)
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
	ch.leaving, ch.wants, ch.state = true, false, messages.StateDraining
	ch.dequeue()
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
		r.bid(c, msg.of, msg.conn, msg.err)
	}
}

// onTerminated forgets a session that somebody else has stopped.
func (r *registry) onTerminated(c actor.Context, msg *actor.Terminated) {
	if ch := r.children[msg.Who.Id]; ch != nil {
		if !ch.leaving {
			r.detach(ch)
		}
		r.bid(c, ch, nil, nil)
	}
	if r.publisher.Equal(msg.Who) {
		c.Stop(c.Self())
	}
}

// bid says farewell to a session, and tells those who waited for that.
func (r *registry) bid(c actor.Context, ch *child, conn mcpbridge.Conn, err error) {
	had := ch.served && ch.slot
	event := &messages.SessionClosed{Stamp: ch.stamp()}
	if err != nil {
		event.Cause = err.Error()
		r.left.keep(ch.key, conn, err)
	}
	if had {
		r.counters.Closed++
		r.emit(c, event)
	}
	r.remove(c, ch)
	for t := range r.tallies {
		if _, ok := t.waiting[ch]; ok {
			delete(t.waiting, ch)
			if had && err == nil {
				t.reply.Sessions++
			}
			t.note(ch.key, err)
			r.settle(c, t)
		}
	}
	r.stopIfEmpty(c)
}

// onRetried notes how another attempt to close went.
func (r *registry) onRetried(c actor.Context, msg *retried) {
	r.retrying--
	if msg.err != nil {
		r.left.keep(msg.key, msg.conn, msg.err)
	}
	for t := range r.tallies {
		if _, ok := t.retries[msg.key]; ok {
			delete(t.retries, msg.key)
			if msg.err == nil {
				t.reply.Sessions++
			}
			t.note(msg.key, msg.err)
			r.settle(c, t)
		}
	}
	r.stopIfEmpty(c)
}

// note adds a session that could not be closed.
func (t *tally) note(key messages.Key, err error) {
	if err != nil {
		t.reply.Left = append(t.reply.Left, messages.Left{Key: key, Reason: err.Error()})
	}
}

// settle answers a close command when there is nothing more to wait for.
func (r *registry) settle(c actor.Context, t *tally) {
	if len(t.waiting)+len(t.retries) > 0 || t.recalling {
		return
	}
	t.timer.Stop()
	delete(r.tallies, t)
	slices.SortFunc(t.reply.Left, func(a, b messages.Left) int { return compareKeys(a.Key, b.Key) })
	if t.caller != nil {
		c.Send(t.caller, t.reply)
	}
}

// onOverdue answers a close command that could not be done in time.
func (r *registry) onOverdue(c actor.Context, t *tally) {
	if _, ok := r.tallies[t]; !ok {
		return
	}
	for ch := range t.waiting {
		t.reply.Left = append(t.reply.Left, messages.Left{Key: ch.key, Reason: "it is still closing"})
	}
	for key := range t.retries {
		t.reply.Left = append(t.reply.Left, messages.Left{Key: key, Reason: "it is still closing"})
	}
	t.waiting, t.retries, t.recalling = nil, nil, false
	r.settle(c, t)
}

// stopIfEmpty stops a registry that was told to, when all sessions are gone:
// the publisher first, so that their last events get out.
func (r *registry) stopIfEmpty(c actor.Context) {
	if r.stopping && !r.ending && len(r.children)+len(r.intercepted) == 0 && r.retrying == 0 {
		r.ending = true
		c.Poison(r.publisher)
	}
}

// onStopped is the last that is done. Anybody may stop any actor, so there may
// be something left.
func (r *registry) onStopped(c actor.Context) {
	r.ending = true
	if r.idleTimer != nil {
		r.idleTimer.Stop()
	}
	for _, ch := range r.children {
		ch.stopTimer()
	}
	for t := range r.tallies {
		r.onOverdue(c, t)
	}
	for i := range r.intercepted {
		r.giveUp(c, i, messages.CodeClosed, "the supervisor was stopped")
	}
	r.after.begin(c)
	r.cfg.Stopped(r.left.list())
}

// snapshot describes the registry at this moment.
func (r *registry) snapshot(cmd *messages.Inspect) *messages.Snapshot {
	now := time.Now()
	snap := &messages.Snapshot{
		ID: cmd.ID, Time: now, Counters: r.counters, Open: r.open, Cap: r.cfg.MaxSessions,
		Sessions: make([]messages.SessionSnapshot, 0, len(r.children)),
	}
	if r.cfg.Strays != nil {
		snap.Counters.Strays = r.cfg.Strays()
	}
	for _, ch := range r.children {
		one := messages.SessionSnapshot{
			Key: ch.key, State: ch.state, Generation: ch.generation,
			Protocol: ch.protocol(), Stateless: ch.info.Stateless,
			Outstanding: ch.outstanding, Calls: ch.calls, LastUsed: ch.used,
		}
		if ch.cause != nil {
			one.Cause = ch.cause.Cause.Error()
			if now.Before(ch.notBefore) {
				one.RetryAt = ch.notBefore
			}
			if ch.broken(now) {
				one.State = messages.StateBroken
			}
		}
		snap.Sessions = append(snap.Sessions, one)
	}
	slices.SortFunc(snap.Sessions, func(a, b messages.SessionSnapshot) int { return compareKeys(a.Key, b.Key) })
	return snap
}

func compareKeys(a, b messages.Key) int {
	return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Scope, b.Scope))
}

// leftovers are connections whose closing failed: cut off on our side, but maybe
// not on the server's. Closing their key again tries them again.
type leftovers struct {
	limit int
	conns map[messages.Key]leftover
}

type leftover struct {
	conn   mcpbridge.Conn
	reason string
}

// keep remembers a connection. Beyond the limit, which takes a server that
// refuses to end any session, none is.
func (l *leftovers) keep(key messages.Key, conn mcpbridge.Conn, err error) {
	if l.conns == nil {
		l.conns = map[messages.Key]leftover{}
	}
	if len(l.conns) < l.limit {
		l.conns[key] = leftover{conn, err.Error()}
	}
}

// take removes and returns the connections of some keys.
func (l *leftovers) take(match func(messages.Key) bool) map[messages.Key]mcpbridge.Conn {
	taken := map[messages.Key]mcpbridge.Conn{}
	maps.DeleteFunc(l.conns, func(key messages.Key, left leftover) bool {
		if match(key) {
			taken[key] = left.conn
		}
		return match(key)
	})
	return taken
}

// list returns what is left.
func (l *leftovers) list() []messages.Left {
	left := make([]messages.Left, 0, len(l.conns))
	for key, one := range l.conns {
		left = append(left, messages.Left{Key: key, Reason: one.reason})
	}
	slices.SortFunc(left, func(a, b messages.Left) int { return compareKeys(a.Key, b.Key) })
	return left
}
