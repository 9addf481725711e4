package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// startLimit is how long the start of a process keeps its permit: one that takes
// longer waits for something else than a processor.
const startLimit = 5 * time.Second

// startOver says that the start of a process has had its time.
type startOver struct {
	of     *child
	dialed time.Time // which start
}

// IgnoreDeadLetterLogging: it may come when the registry has stopped.
func (*startOver) IgnoreDeadLetterLogging() {}

// onWantDial begins the way to a grant. There is no connection: the slot is for
// whoever dials first.
func (r *registry) onWantDial(c actor.Context, ch *child) {
	if ch.leaving && !ch.ending || ch.dialing {
		return
	}
	ch.wants = true
	if !ch.leaving {
		r.enter(ch, messages.StateWaiting)
	}
	now := time.Now()
	if ch.slot && r.ripe(ch, now) && r.room(ch.server, now) > 0 {
		r.grant(c, ch, now)
		return
	}
	r.freeSlot(c, ch)
	r.advance(c, ch)
}

// ripe reports whether a child has to wait for nobody but others that dial: its
// backoff is over, its predecessor is gone.
func (r *registry) ripe(ch *child, now time.Time) bool {
	return (!now.Before(ch.notBefore) || ch.asks()) && r.entries[ch.key].predecessor(ch) == nil
}

// advance takes a child that wants a grant as far as it gets now: past its
// backoff, past its predecessor, into the queue of its server.
func (r *registry) advance(c actor.Context, ch *child) {
	if !ch.wants || ch.elem != nil {
		return
	}
	now := time.Now()
	switch wait := ch.notBefore.Sub(now); {
	case r.ripe(ch, now):
		r.enqueue(ch, now)
		r.pump(c)
		if ch.elem != nil && r.cfg.FailFast && ch.server.endpoint.down {
			r.turnAway(c, ch)
		}
	case wait > 0:
		ch.stopTimer()
		ch.timer = after(c, wait, &due{ch})
	default:
		// when the predecessor is gone, we are called again
	}
}

// enqueue lets a child wait for its turn to dial. While the server is down, who has
// not probed yet goes first, and whoever comes when nobody waits probes at once.
func (r *registry) enqueue(ch *child, now time.Time) {
	srv, ep := ch.server, ch.server.endpoint
	if fresh := !ch.probing && !ch.ending; ep.down && fresh {
		ch.elem = srv.queue.PushFront(ch)
		if soon := ep.probed.Add(probeLeast); ep.queued == 0 && soon.Before(ep.next) && !r.cfg.FailFast {
			ep.next = soon
		}
	} else {
		ch.elem = srv.queue.PushBack(ch)
	}
	ep.queued++
	if srv.turn == nil {
		srv.turn = r.turns.PushBack(srv)
	}
}

// dequeue takes a child out of the queue, if it stands there.
func (r *registry) dequeue(ch *child) {
	if ch.elem == nil {
		return
	}
	srv, ep := ch.server, ch.server.endpoint
	srv.queue.Remove(ch.elem)
	ch.elem = nil
	if ep.queued--; ep.queued == 0 {
		ep.stopTimer()
	}
	if srv.queue.Len() == 0 {
		r.turns.Remove(srv.turn)
		srv.turn = nil
	}
}

// room returns how many sessions of a server may begin to dial now, were there
// slots for all: by its dial permits, by the permits to start processes, and by what
// is known of the server.
func (r *registry) room(srv *server, now time.Time) int {
	n := r.cfg.MaxDials - srv.dialing
	if srv.Command != "" {
		n = min(n, r.starts-r.starting)
	}
	if srv.endpoint.down && n > 0 {
		n = 0
		if srv.endpoint.allows(now) {
			n = 1
		}
	}
	return max(0, n)
}

// pump lets those who wait dial, as many as may: the servers take turns. It takes
// as long as there are servers and grants, however many wait.
func (r *registry) pump(c actor.Context) {
	now := time.Now()
	for left := r.turns.Len(); left > 0; left-- {
		e := r.turns.Front()
		srv := e.Value.(*server)
		if r.room(srv, now) == 0 {
			r.turns.MoveToBack(e)
			r.await(c, srv.endpoint)
			continue
		}
		if r.open >= r.cfg.MaxSessions {
			r.makeRoom(c)
			return
		}
		r.turns.MoveToBack(e)
		r.grant(c, srv.queue.Front().Value.(*child), now)
		left = r.turns.Len() + 1
	}
}

// grant lets a child dial, with all that it takes.
func (r *registry) grant(c actor.Context, ch *child, now time.Time) {
	srv := ch.server
	r.dequeue(ch)
	if !ch.slot {
		ch.slot = true
		r.open++
		if ch.leaving {
			r.freeing++
		}
	}
	srv.dialing++
	r.counters.Dials++
	ch.wants, ch.dialing, ch.dialed = false, true, now
	if !ch.leaving {
		r.enter(ch, messages.StateConnecting)
	}
	ch.probing = srv.endpoint.down && !ch.ending
	switch {
	case ch.probing:
		srv.endpoint.begin(ch, now)
	case ch.ending: // it takes its time, and is no probe: others soon have their turn
		srv.endpoint.next = later(srv.endpoint.next, now.Add(probeLeast))
	}
	if srv.Command != "" {
		ch.starting = true
		r.starting++
		ch.startTimer = after(c, startLimit, &startOver{ch, now})
	}
	r.place(ch)
	c.Send(ch.pid, &grant{})
}

// endDial gives back the permits of a dial. Call pump after it.
func (r *registry) endDial(ch *child) {
	if !ch.dialing {
		return
	}
	ch.dialing = false
	ch.server.dialing--
	ch.server.endpoint.end(ch)
	r.endStart(ch)
}

// endStart gives back the permit to start a process. Call pump after it.
func (r *registry) endStart(ch *child) {
	if ch.starting {
		ch.starting = false
		ch.startTimer.Stop()
		r.starting--
	}
}

// onStartOver gives back the permit of a process that takes its time.
func (r *registry) onStartOver(c actor.Context, msg *startOver) {
	if msg.of.dialed.Equal(msg.dialed) {
		r.endStart(msg.of)
		r.pump(c)
	}
}

// place puts a child where it belongs in the LRU order, as just used.
func (r *registry) place(ch *child) { r.lru.put(&ch.place, ch.rank(), ch) }

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
	r.place(ch)
	r.pump(c)
}

// makeRoom evicts as many sessions as there are that could dial but for a slot:
// idle ones first, then busy ones, each the least recently used first. One that is
// not open yet, and has callers, is left alone.
func (r *registry) makeRoom(c actor.Context) {
	now := time.Now()
	free := r.cfg.MaxSessions - r.open + r.freeing
	for e := r.turns.Front(); e != nil; e = e.Next() {
		srv := e.Value.(*server)
		for range min(r.room(srv, now), srv.queue.Len()) {
			if free--; free < 0 && !r.evictOldest(c) {
				return
			}
		}
	}
}

// evictOldest evicts the session that goes first. It reports whether there is one.
func (r *registry) evictOldest(c actor.Context) bool {
	for _, of := range []rank{unused, inUse} {
		for ch := range r.lru.oldest(of) {
			r.evict(c, ch, messages.EvictCap)
			return true
		}
	}
	return false
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
	ch.wants, ch.probing = false, false
	r.dequeue(ch)
	ch.stopTimer()
	r.freeSlot(c, ch)
	r.place(ch)
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
	r.endDial(ch)
	ch.served, ch.probing, ch.cause, ch.openUntil = true, false, nil, time.Time{}
	ch.bugs, ch.refusals = 0, 0
	ch.generation, ch.info = msg.generation, msg.info
	r.remember(ch.key, msg.generation)
	r.shown(c, ch)
	if !ch.leaving {
		r.enter(ch, messages.StateReady)
		r.place(ch)
	}
	r.pump(c)
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

// remove forgets a child that has no connection any more.
func (r *registry) remove(c actor.Context, ch *child) {
	delete(r.children, ch.pid.Id)
	r.roster.remove(ch)
	ch.outstanding = 0
	r.recount(ch)
	ch.wants = false
	r.dequeue(ch)
	ch.stopTimer()
	e := r.entries[ch.key]
	e.leaving = slices.DeleteFunc(e.leaving, func(l *child) bool { return l == ch })
	r.endDial(ch)
	r.freeSlot(c, ch)
	r.lru.remove(&ch.place)
	r.pump(c)
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
