package actors

import (
	"runtime/debug"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// onWantDial begins the way to a grant.
func (r *registry) onWantDial(c actor.Context, ch *child) {
	if (!ch.leaving || ch.ending) && !ch.dialing {
		ch.wants = true
		r.advance(c, ch)
	}
}

// advance takes a child that wants a grant as far as it gets now: past its
// backoff, past its predecessor, to a slot, to a dial permit.
func (r *registry) advance(c actor.Context, ch *child) {
	if !ch.wants {
		return
	}
	srv := ch.server
	switch wait := time.Until(ch.notBefore); {
	case wait > 0:
		ch.stopTimer()
		ch.timer = after(c, wait, &due{ch})
	case r.entries[ch.key].holder(ch) != nil:
		// when that one is gone, we are called again
	case !ch.slot && r.open >= r.cfg.MaxSessions:
		ch.enqueue(&r.slotQueue)
		c.Send(ch.pid, &queued{})
		r.makeRoom(c)
	case srv.dialing >= r.cfg.MaxDials:
		r.takeSlot(ch)
		ch.enqueue(&srv.queue)
	default:
		r.takeSlot(ch)
		ch.dequeue()
		srv.dialing++
		r.counters.Dials++
		ch.wants, ch.dialing = false, true
		if !ch.leaving {
			r.enter(ch, messages.StateConnecting)
		}
		c.Send(ch.pid, &grant{})
	}
}

// takeSlot counts a child under the cap.
func (r *registry) takeSlot(ch *child) {
	if !ch.slot {
		ch.slot = true
		r.open++
		if ch.leaving {
			r.freeing++
		}
	}
	r.lru.put(&ch.place, ch.rank(), ch)
}

// freeSlot gives the slot of a child to those who wait for one.
func (r *registry) freeSlot(c actor.Context, ch *child) {
	if !ch.slot {
		return
	}
	ch.slot = false
	r.open--
	if ch.leaving {
		r.freeing--
	}
	for r.open < r.cfg.MaxSessions && r.slotQueue.Len() > 0 {
		r.advance(c, r.slotQueue.Front().Value.(*child))
	}
}

// freePermit gives the dial permit of a child to the next.
func (r *registry) freePermit(c actor.Context, ch *child) {
	if !ch.dialing {
		return
	}
	ch.dialing = false
	srv := ch.server
	srv.dialing--
	if next := srv.queue.Front(); next != nil {
		r.advance(c, next.Value.(*child))
	}
}

// makeRoom evicts as many sessions as there are waiting for a slot: idle ones
// first, then busy ones, each the least recently used first. One that is not
// open yet, and has callers, is left alone.
func (r *registry) makeRoom(c actor.Context) {
	for _, of := range []rank{unused, inUse} {
		for ch := range r.lru.oldest(of) {
			if r.freeing >= r.slotQueue.Len() {
				return
			}
			if ch.slot && (of == unused || ch.state() == messages.StateReady) {
				r.evict(c, ch, messages.EvictCap)
			}
		}
	}
}

// evict drains a session that nobody asked to be closed.
func (r *registry) evict(c actor.Context, ch *child, reason messages.EvictReason) {
	if ch.served {
		r.counters.Evicted++
		r.emit(c, &messages.SessionEvicted{Stamp: ch.stamp(), Reason: reason})
	}
	r.drain(c, ch, drain{evict: true})
}

// onIdle evicts whom nobody has used for the idle timeout.
func (r *registry) onIdle(c actor.Context) {
	r.idleTimer = nil
	now := time.Now()
	next := time.Duration(-1)
	for _, of := range []rank{unused, resting} {
		for ch := range r.lru.oldest(of) {
			if left := ch.used.Add(r.cfg.IdleTimeout).Sub(now); left > 0 {
				if next < 0 || left < next {
					next = left
				}
				break
			}
			r.evict(c, ch, messages.EvictIdle)
		}
	}
	if next > 0 {
		r.idleTimer = after(c, next, &idle{})
	}
}

// onVacant takes the slot of a child that has no connection and wants none.
func (r *registry) onVacant(c actor.Context, ch *child) {
	if ch.dialing || ch.leaving {
		return
	}
	ch.wants = false
	ch.dequeue()
	ch.stopTimer()
	r.freeSlot(c, ch)
	r.lru.put(&ch.place, ch.rank(), ch)
	// Keys that cannot be opened are remembered for their backoff, but not
	// without bound.
	for old := range r.lru.oldest(resting) {
		if r.lru.len(resting) <= max(r.cfg.MaxSessions, minResting) {
			break
		}
		r.evict(c, old, messages.EvictCap)
	}
}

// minResting is how many keys without a session are remembered in any case.
const minResting = 1024

// onOpened notes that a session is ready.
func (r *registry) onOpened(c actor.Context, msg *opened) {
	ch := msg.of
	r.freePermit(c, ch)
	ch.served, ch.cause, ch.openUntil, ch.bugs = true, nil, time.Time{}, 0
	ch.generation, ch.info = msg.generation, msg.info
	r.remember(ch.key, msg.generation)
	if !ch.leaving {
		r.enter(ch, messages.StateReady)
		r.makeRoom(c)
	}
	if msg.expired > 0 {
		r.counters.Expired++
		stamp := ch.stamp()
		stamp.Generation = msg.expired
		r.emit(c, &messages.SessionExpired{Stamp: stamp, Cause: "the server does not know the session of before our restart"})
	}
	if !msg.restarted {
		r.counters.Opened++
		r.emit(c, &messages.SessionOpened{Stamp: ch.stamp(), Attached: msg.info.Attached, Protocol: ch.protocol(), Elapsed: msg.elapsed})
		return
	}
	r.emit(c, &messages.SessionRestarted{Stamp: ch.stamp(), Attached: msg.info.Attached, Protocol: ch.protocol(), Elapsed: msg.elapsed})
}

// remember notes the generation of a key: in its entry, as long as there is one.
func (r *registry) remember(key messages.Key, generation uint64) {
	if e := r.entries[key]; e != nil {
		e.generation = generation
		return
	}
	r.past.set(key, generation)
}

// HandleFailure makes the registry the supervision strategy of its children. A
// session actor is restarted at once, so that it can serve deadlines and
// cancellations; what takes time is the grant for its next dial. What becomes
// of that is decided when the new incarnation has said failed: a failure
// overtakes what its actor has sent before, a message does not.
func (r *registry) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, pid *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	directive := actor.RestartDirective
	ch := r.children[pid.Id]
	if _, typed := reason.(*Fault); !typed && ch != nil {
		ch.bugs++
	}
	if ch == nil || ch.bugs > maxBugs {
		directive = actor.StopDirective
	}
	r.cfg.Events.Put(&actor.SupervisorEvent{Child: pid, Reason: reason, Directive: directive})
	if directive == actor.StopDirective {
		supervisor.StopChildren(pid)
		return
	}
	r.counters.Restarts++
	supervisor.RestartChildren(pid)
}

// maxBugs is how many bugs are survived between two connections: one in what a
// restart does would be met for ever.
const maxBugs = 5

// onFailed decides what becomes of a session that was restarted.
func (r *registry) onFailed(c actor.Context, msg *failed) {
	ch, f := msg.of, msg.fault
	ch.wants = false
	ch.dequeue()
	r.freePermit(c, ch)
	if ch.leaving {
		return
	}
	r.count(c, ch, f)
	now := time.Now()
	v := r.decide(ch, f, now)
	ch.cause, ch.notBefore = f, now.Add(v.Delay)
	r.enter(ch, messages.StateWaiting)
	switch {
	case v.GiveUp:
		r.enter(ch, messages.StateBroken)
		ch.openUntil = ch.notBefore
		r.counters.GaveUp++
		r.emit(c, &messages.SessionGaveUp{Stamp: ch.stamp(), Cause: f.Cause.Error(), RetryAt: ch.openUntil})
	case ch.served:
		r.emit(c, &messages.SessionRestarting{Stamp: ch.stamp(), Attempt: v.Attempt, Delay: v.Delay, Cause: f.Cause.Error()})
	}
	c.Send(ch.pid, &verdict{cause: f, gaveUp: v.GiveUp, retryAt: ch.notBefore})
}

// decide asks the strategy, which is not ours to trust.
func (r *registry) decide(ch *child, f *Fault, now time.Time) (v Verdict) {
	defer func() {
		if reason := recover(); reason != nil {
			r.cfg.Logger.Error().Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("strategy panicked")
			v = Verdict{Delay: time.Second}
		}
	}()
	if ch.decider == nil {
		ch.decider = r.cfg.Strategy.Decider(ch.key)
	}
	return ch.decider.Decide(f, now)
}

// count notes a fault of a session that was open.
func (r *registry) count(c actor.Context, ch *child, f *Fault) {
	switch {
	case f.Dialing:
	case f.Class == mcpbridge.Expired:
		r.counters.Expired++
		r.emit(c, &messages.SessionExpired{Stamp: ch.stamp(), Cause: f.Cause.Error()})
	default:
		r.counters.Lost++
		r.emit(c, &messages.SessionLost{Stamp: ch.stamp(), Cause: f.Cause.Error()})
	}
}

// remove forgets a child that has no connection any more.
func (r *registry) remove(c actor.Context, ch *child) {
	delete(r.children, ch.pid.Id)
	r.roster.remove(ch)
	ch.outstanding = 0
	r.recount(ch)
	r.lru.remove(&ch.place)
	ch.wants = false
	ch.dequeue()
	ch.stopTimer()
	e := r.entries[ch.key]
	e.leaving = slices.DeleteFunc(e.leaving, func(l *child) bool { return l == ch })
	r.freePermit(c, ch)
	r.freeSlot(c, ch)
	if len(e.leaving) == 0 {
		e.cancels = cancels{}
	}
	for _, l := range e.leaving {
		r.advance(c, l) // one that is ending waits for the one before it
	}
	switch {
	case e.current != nil:
		r.advance(c, e.current)
	case len(e.leaving) == 0:
		delete(r.entries, ch.key)
		if e.generation > 0 {
			r.past.set(ch.key, e.generation)
		}
	}
}

// stamp returns what all events of a child carry.
func (ch *child) stamp() messages.Stamp {
	return messages.Stamp{Key: ch.key, Generation: ch.generation, Time: time.Now()}
}

func (ch *child) stopTimer() {
	if ch.timer != nil {
		ch.timer.Stop()
	}
	ch.timer = nil
}
