package registry

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/catalogue"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/session"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// registration is what the registry knows of one session actor. Sessions carry a pointer
// to their registration in their messages, and do not read it.
type registration struct {
	admission.Session

	key     messages.Key
	pid     *actor.PID
	mailbox *mailbox.Mailbox // of the session actor, which takes messages also when that has stopped
	endLife func()           // see contract.KeyStore
	server  *server          // as it was configured when the session was spawned
	decider actors.Decider   // nil before the first fault

	serial        uint64 // in the order of spawning
	group         *group
	older, newer  *registration                 // in group
	stateNode     admission.Node[*registration] // in group, by state
	stateSince    uint64                        // when the session got its state, in the order of all such changes
	closeCommands []*closeCommand               // that wait for the session to be closed

	waiting     int               // outstanding calls that wait, see [registry.recount]
	outstanding int               // calls without a reply
	inFlight    int               // outstanding calls that do not wait
	calls       uint64            // that were forwarded
	usedAt      time.Time         // when outstanding last changed
	limits      *mcpbridge.Limits // that the session was told; read-only
	tenant      *tenant           // nil without one

	generation uint64
	info       mcpbridge.Info // of the last connection

	wasOpen   bool // there has been a connection
	wantsDial bool // it waits for a grant
	addressed bool // the server of the last dial is known to be that of the key
	tailSet   bool // a Tail came for it, which counts more than that of the session before

	drainedBy contract.Drain // the last one

	unheard *mcpbridge.Error // why its calls wait although it is ready, or nil

	bugs        int16 // panics since the last connection was opened
	restarts    int32
	failedDials int32 // dials that failed while those of other keys succeeded

	lists    catalogue.Session // what the catalogue knows of it
	ownLists bool              // the scope has set what its server may list by

	leftovers []contract.Leftover // that it was spawned to close

	cause        *actors.Fault // the last fault; nil while there is a connection
	notBefore    time.Time     // the earliest time of the next dial
	breakerUntil time.Time     // calls are rejected until then
	backoff      alarm.Entry[func()]
}

// Registered says that messages of the session carry it.
func (*registration) Registered() {}

// registrationOf returns the registration in a message, or nil.
func registrationOf(of any) *registration {
	reg, _ := of.(*registration)
	return reg
}

// send sends a message to the session.
func (reg *registration) send(msg any) { reg.mailbox.PostUserMessage(msg) }

// mayHaveNewCredentials reports whether the session may dial before its cool-down is over:
// the server refused its credentials, or its configuration was invalid, and the next ones may
// be different.
func (reg *registration) mayHaveNewCredentials() bool {
	if reg.cause == nil {
		return false
	}
	switch reg.cause.Class {
	case mcpbridge.Unauthorized:
		return reg.server.Auth != nil || reg.server.PerKey != nil
	case mcpbridge.Invalid:
		return reg.server.PerKey != nil && reg.cause.Dialing
	}
	return false
}

// protocol returns the negotiated version of MCP, or "".
func (reg *registration) protocol() string {
	if reg.info.Server == nil {
		return ""
	}
	return reg.info.Server.ProtocolVersion
}

// breakerOpen reports whether the strategy has given up the session.
func (reg *registration) breakerOpen(now time.Time) bool {
	return reg.cause != nil && now.Before(reg.breakerUntil)
}

// unconnected reports whether the session neither has a connection nor dials.
func (reg *registration) unconnected() bool {
	return reg.state() == messages.StateWaiting || reg.state() == messages.StateBroken
}

// state returns the state of the session, or "" if it was removed.
func (reg *registration) state() messages.State { return protocol.States[reg.stateNode.Rank] }

// removed reports whether the session was removed.
func (reg *registration) removed() bool { return reg.state() == "" }

// onUnheard notes that calls of a session wait although it has a connection, or wait no longer. Those that run
// count among them.
func (r *registry) onUnheard(msg *contract.Unheard) {
	if reg := registrationOf(msg.Of); !reg.removed() {
		reg.unheard = msg.Cause
		r.recount(reg)
	}
}

// isHeard reports whether a session runs calls.
func (reg *registration) isHeard() bool {
	return reg.state() == messages.StateReady && reg.unheard == nil
}

// hasRoom reports whether a session would run another call at once. One that is unheard has room for the call that
// finds out whether it still is.
func (reg *registration) hasRoom(inFlight int) bool {
	return reg != nil && reg.state() == messages.StateReady && reg.outstanding < inFlight && (reg.unheard == nil || reg.outstanding == 0)
}

// entry is what the registry knows of a key while the key has sessions.
type entry struct {
	current    *registration   // takes the calls; nil while all sessions drain
	draining   []*registration // the oldest first
	generation uint64          // of the last MCP session

	cancelledUpTo uint64 // the calls of the scope were cancelled up to this serial
}

// predecessor returns an older session of the key that may still have an MCP session on
// the server, or nil. No other may be opened before the predecessor is closed.
func (e *entry) predecessor(reg *registration) *registration {
	if len(e.draining) == 0 || e.draining[0] == reg {
		return nil
	}
	return e.draining[0]
}

// closesRecord reports whether an older session of the key closes the MCP session of the record in
// the store, or was to. One that was evicted before it was open leaves it to the next.
func (e *entry) closesRecord() bool {
	return slices.ContainsFunc(e.draining, func(reg *registration) bool {
		how := reg.drainedBy
		return !how.Leave && (reg.wasOpen || reg.Cleanup || how.Restart || !how.Evict)
	})
}

// entry returns the entry of a key, which it adds if there is none.
func (r *registry) entry(key messages.Key) *entry {
	e := r.entries[key]
	if e == nil {
		e = &entry{generation: r.generations.of(key)}
		r.entries[key] = e
	}
	return e
}

// currentOf returns the current session of a key, or nil.
func (r *registry) currentOf(key messages.Key) *registration {
	if e := r.entries[key]; e != nil {
		return e.current
	}
	return nil
}

// sessionOf returns the current session of a key. If there is none, it spawns its actor, which
// does not dial.
func (r *registry) sessionOf(key messages.Key) *registration {
	e := r.entry(key)
	if e.current != nil {
		return e.current
	}
	reg := &registration{key: key, server: r.servers[key.Server]}
	r.joinTenant(reg)
	r.start(reg, session.Spec{Generation: e.generation, Floor: r.generations.floor, NoResume: e.closesRecord(), Leftovers: r.leftovers.sessionIDs(key)})
	r.setState(reg, messages.StateWaiting)
	e.current = reg
	return reg
}

// start spawns the actor of a session.
func (r *registry) start(reg *registration, spec session.Spec) {
	reg.limits = reg.server.limits
	reg.Of = reg
	reg.backoff.Of = func() { r.advance(reg) }
	r.gate.Join(&reg.Session, reg.server.turns, reg.tenant.shared())
	spec.Config, spec.Key, spec.Server, spec.Limits = r.cfg, reg.key, &reg.server.Server, reg.limits
	spec.Registry, spec.Registration, spec.Bind = r.mailbox, reg, r.owners.bindingOf(reg.key.Scope)
	life, end := context.WithCancelCause(context.Background())
	spec.Life, reg.endLife = life, func() { end(contract.ErrLifeOver) }
	var props *actor.Props
	props, reg.mailbox = session.Props(spec)
	reg.pid = r.spawn(props)
	r.children++
	r.registrations[reg.pid.Id] = reg
	r.index.add(reg)
}

// setState notes the state of a session.
func (r *registry) setState(reg *registration, state messages.State) {
	r.index.setState(reg, state)
	if state == messages.StateReady {
		r.catalogue.Opened(&reg.lists, reg.key, r.classOf(reg.server, reg, reg.key), time.Now())
	} else {
		r.catalogue.Lost(&reg.lists, time.Now())
	}
	reg.unheard = nil
	r.recount(reg)
}

// refusal returns the failure for a call that the session of its key cannot take, or nil.
func (r *registry) refusal(k *contract.Call, now time.Time) *messages.Failure {
	srv, reg := r.servers[k.Key.Server], r.currentOf(k.Key)
	if f := r.unavailable(k, srv, reg, now); f != nil {
		return f
	}
	return r.busy(k, srv, reg)
}

// unavailable returns the failure for a call that would wait for a server that is down, with FailFast, or for a
// session that was given up, or nil. reg is the session of the key, or nil.
func (r *registry) unavailable(k *contract.Call, srv *server, reg *registration, now time.Time) *messages.Failure {
	ep := srv.turns.Home.Endpoint
	if reg != nil {
		ep = reg.Place.Endpoint
	}
	var f *messages.Failure
	switch {
	case r.cfg.FailFast && !k.Watches() && ep.Down && !ep.AllowsProbe(now) && (reg == nil || reg.unconnected()):
		f = k.Unavailable(causeOf(ep, reg))
		contract.RetryIn(f, ep.Next.Sub(now))
	case reg != nil && reg.breakerOpen(now) && !reg.mayHaveNewCredentials():
		f = k.Unavailable(reg.cause.Cause)
		contract.RetryIn(f, reg.breakerUntil.Sub(now))
	}
	return f
}

// busy returns the failure for a call that finds too many others waiting, or nil. reg is the session of the key, or
// nil.
func (r *registry) busy(k *contract.Call, srv *server, reg *registration) *messages.Failure {
	detail := ""
	var t *tenant
	if r.cfg.Tenant != nil {
		t = r.tenantOf(k.Key, reg)
	}
	switch most := srv.limits.MaxInFlight + srv.limits.MaxWaiting; {
	case k.Kept:
	case reg != nil && reg.outstanding >= most:
		detail = fmt.Sprintf("%d calls of this session are running or waiting (MaxInFlight, MaxWaiting)", reg.outstanding)
	case reg.hasRoom(srv.limits.MaxInFlight):
	case r.noSlotFor(k.Key, reg) != "":
		detail = r.noSlotFor(k.Key, reg)
	case t != nil && t.waiting >= t.mostWaiting(most):
		detail = fmt.Sprintf("%d calls of all sessions of the tenant are waiting (MaxSessionsPerTenant sessions with MaxInFlight, MaxWaiting)", t.waiting)
	case r.waiting >= r.cfg.MaxWaitingTotal:
		detail = fmt.Sprintf("%d calls of all sessions are waiting (MaxWaitingTotal)", r.waiting)
	}
	if detail == "" {
		return nil
	}
	return k.Failure(messages.CodeBusy, detail)
}

// give gives a call to the session of its key. It spawns the session if there is none.
func (r *registry) give(k *contract.Call) {
	reg := r.sessionOf(k.Key)
	if _, sets := k.Op.(*messages.SetRoots); sets {
		reg.ownLists = true
		r.catalogue.Separate(time.Now(), reg.key.Scope, &reg.lists)
	}
	reg.outstanding++
	reg.calls++
	r.recount(reg)
	r.touch(reg)
	r.tellLimits(reg)
	r.calls.add(k, reg)
	reg.send(k)
}

// recount updates the number of waiting calls after the calls or the state of a session
// have changed.
func (r *registry) recount(reg *registration) {
	waiting := reg.outstanding
	switch {
	case reg.Draining: // its calls are running or were handed back
		waiting = 0
	case reg.isHeard():
		waiting = max(0, waiting-reg.server.limits.MaxInFlight)
	}
	r.waiting += waiting - reg.waiting
	inFlight := reg.outstanding - waiting
	reg.group.load.InFlight += inFlight - reg.inFlight
	reg.group.load.Waiting += waiting - reg.waiting
	if reg.tenant != nil {
		reg.tenant.waiting += waiting - reg.waiting
	}
	reg.waiting, reg.inFlight = waiting, inFlight
}

// touch makes a session the most recently used one of its rank.
func (r *registry) touch(reg *registration) {
	reg.usedAt = time.Now()
	r.gate.Use(&reg.Session, reg.outstanding == 0)
	timeout := reg.server.limits.IdleTimeout
	if timeout > 0 {
		r.due.Hasten(&r.idleDue, reg.usedAt.Add(timeout))
	}
}

// tellLimits tells a session its limits, if they have changed since it was last told.
func (r *registry) tellLimits(reg *registration) {
	if reg.limits != reg.server.limits {
		reg.limits = reg.server.limits
		reg.send(&contract.LimitsChanged{Limits: reg.limits})
	}
}

// onOpened notes that a session has a connection.
func (r *registry) onOpened(msg *contract.Opened) {
	reg := registrationOf(msg.Of)
	r.gate.Opened(&reg.Session)
	r.serverUp(reg)
	reg.wasOpen, reg.cause, reg.breakerUntil = true, nil, time.Time{}
	reg.bugs, reg.failedDials = 0, 0
	reg.generation, reg.info = msg.Generation, msg.Info
	reg.group.load.Dials.Add(msg.Dialed)
	r.rememberGeneration(reg.key, msg.Generation)
	if !reg.Draining {
		r.setState(reg, messages.StateReady)
	}
	if msg.Expired > 0 {
		r.counters.Expired++
		stamp := r.stamp(reg)
		stamp.Generation = msg.Expired
		r.publish(&messages.SessionExpired{Stamp: stamp, Cause: "the server does not know the session from before the restart of this process"})
	}
	if !msg.Restarted {
		r.counters.Opened++
		r.publish(&messages.SessionOpened{Stamp: r.stamp(reg), Attached: msg.Info.Attached, Protocol: reg.protocol(), Elapsed: msg.Elapsed})
		return
	}
	r.publish(&messages.SessionRestarted{Stamp: r.stamp(reg), Attached: msg.Info.Attached, Protocol: reg.protocol(), Elapsed: msg.Elapsed, Lifetime: msg.Lifetime})
}

// rememberGeneration notes the generation of a key, in the entry if there is one.
func (r *registry) rememberGeneration(key messages.Key, generation uint64) {
	if e := r.entries[key]; e != nil {
		e.generation = generation
		return
	}
	r.generations.set(key, generation)
}

// remove removes a session that is closed, and gives its slot to others.
func (r *registry) remove(reg *registration) {
	delete(r.registrations, reg.pid.Id)
	r.index.remove(reg)
	r.catalogue.Closed(&reg.lists, time.Now())
	reg.outstanding = 0
	r.recount(reg)
	reg.wantsDial = false
	r.due.Remove(&reg.backoff)
	e := r.entries[reg.key]
	e.draining = slices.DeleteFunc(e.draining, func(other *registration) bool { return other == reg })
	r.gate.Leave(&reg.Session)
	r.leaveTenant(reg)
	for _, other := range e.draining {
		r.advance(other) // one that closes leftovers waits for its predecessor
	}
	switch {
	case e.current != nil:
		r.advance(e.current)
	case len(e.draining) == 0:
		delete(r.entries, reg.key)
		if e.generation > 0 {
			r.generations.set(reg.key, e.generation)
		}
	}
}

// stamp returns the stamp of an event of the session.
func (r *registry) stamp(reg *registration) messages.Stamp {
	return messages.Stamp{Key: reg.key, Generation: reg.generation, Time: time.Now(), Supervisor: r.cfg.Name}
}
