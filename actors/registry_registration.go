package actors

import (
	"container/list"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// child is what the registry knows of one session actor. Only the registry
// touches it.
type registration struct {
	key     messages.Key
	pid     *actor.PID
	server  *server // as it was configured when the child was spawned
	decider Decider // nil before its first fault

	serial        uint64 // in the order of their making
	group         *group
	older, newer  *registration          // of the same server
	stateNode     lruNode[*registration] // in its group, by state
	closeCommands []*closeCommand        // close commands that wait for it

	waiting     int // of outstanding, how many wait: see [registry.recount]
	outstanding int // calls forwarded and not settled
	calls       uint64
	usedAt      time.Time              // when that last changed
	lruNode     lruNode[*registration] // in the LRU order

	generation uint64
	info       mcpbridge.Info // of the last session
	wasOpen    bool           // it has been open

	slot             bool          // counts under the cap: it dials, or has a connection
	wantsDial        bool          // waits for a grant
	queuePosition    *list.Element // its place in the queue of its server; nil while it is not there
	dialing          bool          // has a grant and a dial permit
	dialedAt         time.Time     // when it got the last grant
	probing          bool          // that was while the server was down
	holdsStartPermit bool          // has a permit to start a process
	draining         bool          // told to drain
	evicted          bool          // the drain was an eviction
	cleanup          bool          // it ends sessions that nobody uses: see [unended]
	leftovers        []leftover    // which of them could not be ended before

	startTimer *time.Timer // sends startOver

	bugs         int         // since it was opened last
	failedDials  int         // dials that failed while others got through
	cause        *Fault      // the last one; nil while it is open
	notBefore    time.Time   // when it may dial again
	breakerUntil time.Time   // its circuit breaker is open until then
	backoffTimer *time.Timer // sends due
}

// rank returns where the child stands in the LRU order.
func (reg *registration) rank() rank {
	switch {
	case reg.draining:
		return unranked
	case reg.slot && reg.outstanding == 0:
		return unusedSlot
	case reg.slot && reg.state() == messages.StateReady:
		return usedSlot
	case reg.outstanding == 0:
		return noSlot
	}
	return unranked
}

// asks reports whether the child may dial although it was given up: its credentials
// were refused, and may be others by now.
func (reg *registration) mayHaveNewCredentials() bool {
	return reg.cause != nil && reg.cause.Class == mcpbridge.Unauthorized && reg.server.Auth != nil
}

// protocol returns the version that was agreed on, or "".
func (reg *registration) protocol() string {
	if reg.info.Server == nil {
		return ""
	}
	return reg.info.Server.ProtocolVersion
}

// broken reports whether the circuit breaker is open.
func (reg *registration) breakerOpen(now time.Time) bool {
	return reg.cause != nil && now.Before(reg.breakerUntil)
}

// idles reports whether the child neither has a connection nor dials.
func (reg *registration) unconnected() bool {
	return reg.state() == messages.StateWaiting || reg.state() == messages.StateBroken
}

// spawn makes the session actor of a key.
func (r *registry) spawn(c actor.Context, key messages.Key, e *entry) *registration {
	reg := &registration{key: key, server: r.servers[key.Server]}
	r.start(c, reg, &durable{generation: e.generation, noResume: len(e.draining) > 0 || r.leftovers.has(key)})
	r.setState(reg, messages.StateWaiting)
	return reg
}

// start spawns the actor of a child.
func (r *registry) start(c actor.Context, reg *registration, d *durable) {
	d.cfg, d.key, d.server, d.registry, d.registration, d.callReplied = r.cfg, reg.key, &reg.server.Server, c.Self(), reg, &callReplied{reg}
	d.mailbox.answer = answerUnread
	props := actor.PropsFromProducer(func() actor.Actor { return newSession(d) }, d.mailbox.props(), actor.WithDispatcher(r.cfg.dispatcher))
	reg.pid = c.SpawnPrefix(props, "session")
	r.registrations[reg.pid.Id] = reg
	r.index.add(reg)
}

// enter notes the state that a child is in from now on.
func (r *registry) setState(reg *registration, state messages.State) {
	r.index.setState(reg, state)
	r.recount(reg)
}

// onOpened notes that a session is ready.
func (r *registry) onOpened(c actor.Context, msg *opened) {
	reg := msg.of
	r.returnPermits(reg)
	reg.wasOpen, reg.probing, reg.cause, reg.breakerUntil = true, false, nil, time.Time{}
	reg.bugs, reg.failedDials = 0, 0
	reg.generation, reg.info = msg.generation, msg.info
	r.rememberGeneration(reg.key, msg.generation)
	r.serverUp(c, reg)
	if !reg.draining {
		r.setState(reg, messages.StateReady)
		r.updateRank(reg)
	}
	r.grantDials(c)
	if msg.expired > 0 {
		r.counters.Expired++
		stamp := reg.stamp()
		stamp.Generation = msg.expired
		r.publish(c, &messages.SessionExpired{Stamp: stamp, Cause: "the server does not know the session of before our restart"})
	}
	if !msg.restarted {
		r.counters.Opened++
		r.publish(c, &messages.SessionOpened{Stamp: reg.stamp(), Attached: msg.info.Attached, Protocol: reg.protocol(), Elapsed: msg.elapsed})
		return
	}
	r.publish(c, &messages.SessionRestarted{Stamp: reg.stamp(), Attached: msg.info.Attached, Protocol: reg.protocol(), Elapsed: msg.elapsed})
}

// remember notes the generation of a key: in its entry, as long as there is one.
func (r *registry) rememberGeneration(key messages.Key, generation uint64) {
	if e := r.entries[key]; e != nil {
		e.generation = generation
		return
	}
	r.generations.set(key, generation)
}

// remove forgets a child that has no connection any more.
func (r *registry) remove(c actor.Context, reg *registration) {
	delete(r.registrations, reg.pid.Id)
	r.index.remove(reg)
	reg.outstanding = 0
	r.recount(reg)
	reg.wantsDial = false
	r.dequeue(reg)
	reg.stopBackoffTimer()
	e := r.entries[reg.key]
	e.draining = slices.DeleteFunc(e.draining, func(l *registration) bool { return l == reg })
	r.returnPermits(reg)
	r.freeSlot(c, reg)
	r.lru.remove(&reg.lruNode)
	r.grantDials(c)
	if len(e.draining) == 0 {
		e.cancelled = cancelledCalls{}
	}
	for _, l := range e.draining {
		r.advance(c, l) // one that is ending waits for the one before it
	}
	switch {
	case e.current != nil:
		r.advance(c, e.current)
	case len(e.draining) == 0:
		delete(r.entries, reg.key)
		if e.generation > 0 {
			r.generations.set(reg.key, e.generation)
		}
	}
}

// stamp returns what all events of a child carry.
func (reg *registration) stamp() messages.Stamp {
	return messages.Stamp{Key: reg.key, Generation: reg.generation, Time: time.Now()}
}

func (reg *registration) stopBackoffTimer() {
	if reg.backoffTimer != nil {
		reg.backoffTimer.Stop()
	}
	reg.backoffTimer = nil
}
