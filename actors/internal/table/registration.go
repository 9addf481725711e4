package table

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/catalogue"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/faults"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Registration is what the registry knows of one session actor. Sessions carry a pointer
// to their registration in their messages, and do not read it. Each part of it has one room that changes it; the fields of a part
// are read-only for others.
type Registration struct {
	Key     messages.Key
	PID     *actor.PID
	Mailbox *mailbox.Mailbox // of the session actor, which takes messages also when that has stopped
	EndLife func()           // see contract.KeyStore
	Server  *Server          // as it was configured when the session was spawned

	admission.Session       // changed by the gate
	faults.Faults           // changed by dialing
	Dial                    // changed by dialing
	Connection              // changed by the table
	Use                     // changed by the table
	position                // changed by the table
	Orders                  // changed by sessions
	Pins                    // changed by dialing
	Lists             Lists // changed by lists
}

// Dial is what a session waits for to dial.
type Dial struct {
	WantsDial bool                // it waits for a grant
	Addressed bool                // the server of the last dial is known to be that of the key
	Backoff   alarm.Entry[func()] // the end of the backoff
	UsedAt    time.Time           // when the session got its last call, or the last one left it
}

// Connection is the last connection of a session.
type Connection struct {
	WasOpen    bool // there has been one
	Generation uint64
	Info       dial.Info
}

// Use is which calls a session has.
type Use struct {
	Outstanding  int              // calls without a reply
	Waiting      int              // outstanding calls that wait
	Calls        uint64           // that were forwarded
	OnlyReleases bool             // it was opened to release handles, and has had no other call
	Unheard      *mcpbridge.Error // why its calls wait although it is ready, or nil
	inFlight     int              // outstanding calls that do not wait
}

// position is where a session is in the table.
type position struct {
	Serial       uint64  // in the order of spawning
	tenant       *Tenant // nil without one
	group        *group
	older, newer *Registration                 // in group
	stateNode    admission.Node[*Registration] // in group, by state
	stateSince   uint64                        // when the session got its state, in the order of all such changes
}

// Orders is what a session was told.
type Orders struct {
	DrainedBy contract.Drain      // the last one
	Limits    *mcpbridge.Limits   // read-only
	Leftovers []contract.Leftover // that it was spawned to close
}

// Pins are why a session is pinned.
type Pins struct{ ByCommand, ByHandles bool }

// Lists is which lists a session has.
type Lists struct {
	Catalogue catalogue.Session // what the catalogue knows of it
	Own       bool              // the scope has set what its server may list by
}

// Registered says that messages of the session carry it.
func (*Registration) Registered() {}

// Of returns the registration in a message, or nil.
func Of(of any) *Registration {
	reg, _ := of.(*Registration)
	return reg
}

// Send sends a message to the session.
func (reg *Registration) Send(msg any) { reg.Mailbox.PostUserMessage(msg) }

// WantNoDial notes that a session does not wait for a grant, or for the end of its backoff.
func (reg *Registration) WantNoDial(by *alarm.Alarm[func()]) {
	reg.WantsDial = false
	by.Remove(&reg.Backoff)
}

// TellLimits tells the session its limits, if they have changed since it was last told.
func (reg *Registration) TellLimits() {
	if reg.Limits != reg.Server.Resolved {
		reg.Limits = reg.Server.Resolved
		reg.Send(&contract.LimitsChanged{Limits: reg.Limits})
	}
}

// MayHaveNewCredentials reports whether the session may dial before its cool-down is over:
// the server refused its credentials, or its configuration was invalid, and the next ones may
// be different.
func (reg *Registration) MayHaveNewCredentials() bool {
	if reg.Cause == nil {
		return false
	}
	switch reg.Cause.Class {
	case mcpbridge.Unauthorized:
		return reg.Server.Auth != nil || reg.Server.PerKey != nil
	case mcpbridge.Invalid:
		return reg.Server.PerKey != nil && reg.Cause.Dialing
	}
	return false
}

// Protocol returns the negotiated version of MCP, or "".
func (reg *Registration) Protocol() string {
	if reg.Info.Server == nil {
		return ""
	}
	return reg.Info.Server.ProtocolVersion
}

// Unconnected reports whether the session neither has a connection nor dials.
func (reg *Registration) Unconnected() bool {
	return reg.State() == messages.StateWaiting || reg.State() == messages.StateBroken
}

// State returns the state of the session, or "" if it was removed.
func (reg *Registration) State() messages.State { return protocol.States[reg.stateNode.Rank] }

// Rank returns the place of the session in the order of a snapshot: by its state, and by when it got that.
func (reg *Registration) Rank() (state admission.Rank, since uint64) {
	return reg.stateNode.Rank, reg.stateSince
}

// Removed reports whether the session was removed.
func (reg *Registration) Removed() bool { return reg.State() == "" }

// IsHeard reports whether a session runs calls.
func (reg *Registration) IsHeard() bool {
	return reg.State() == messages.StateReady && reg.Unheard == nil
}

// HasRoom reports whether a session would run another call at once. One that is unheard has room for the call that
// finds out whether it still is. The registration may be nil.
func (reg *Registration) HasRoom(inFlight int) bool {
	return reg != nil && reg.State() == messages.StateReady && reg.Outstanding < inFlight && (reg.Unheard == nil || reg.Outstanding == 0)
}

// Load returns the load of the server of the session.
func (reg *Registration) Load() *Load { return &reg.group.load }

// Snapshot returns the snapshot of the session.
func (reg *Registration) Snapshot(now time.Time) messages.SessionSnapshot {
	one := messages.SessionSnapshot{
		Key: reg.Key, State: reg.State(), Generation: reg.Generation,
		Protocol: reg.Protocol(), Stateless: reg.Info.Stateless,
		Outstanding: reg.Outstanding, Waiting: reg.Waiting, Calls: reg.Calls, Restarts: int(reg.Restarts), LastUsed: reg.UsedAt, Pinned: reg.Pinned,
	}
	if reg.tenant != nil {
		one.Tenant = reg.tenant.name
	}
	if reg.Cause != nil {
		one.Cause = reg.Cause.Cause.Error()
		if now.Before(reg.NotBefore) {
			one.RetryAt = reg.NotBefore
		}
	}
	if reg.Unheard != nil && reg.Waiting > 0 {
		one.Cause = reg.Unheard.Error()
	}
	if ep := reg.Place.Endpoint; ep.Down && reg.Queued() {
		one.Cause, one.RetryAt = reg.CauseOf(ep).Error(), ep.Next
	}
	return one
}

// CauseOf returns why a server is down, as the callers of the session may know it. That is the error of its own dial, if that has
// found the same, or has started a process, whose stderr the error quotes. Otherwise, or if the registration is nil, it is what all
// keys may see.
func (reg *Registration) CauseOf(ep *admission.Endpoint) *mcpbridge.Error {
	if reg == nil || reg.Cause == nil || !reg.Cause.Dialing {
		return ep.Cause
	}
	if own := reg.Cause.Cause; reg.Server.Command != "" || admission.Shared(own).Error() == ep.Cause.Error() {
		return own
	}
	return ep.Cause
}

// group is the sessions of one server. It stays when it is empty.
type group struct {
	first, last *Registration                // in the order in which they were added
	states      admission.LRU[*Registration] // by state, those that have been in it for longest first
	load        Load
}

// Cursor goes through the sessions of some servers in steps. It visits no session that was added after it was made.
type Cursor struct {
	next []*Registration // of each server
	upTo uint64          // the serial of the last session that it visits
}

// Step visits the next sessions. It reports whether there are more.
func (c *Cursor) Step(visit func(reg *Registration)) (more bool) {
	for n := 0; n < contract.WalkStep && len(c.next) > 0; n++ {
		last := len(c.next) - 1
		reg := c.next[last]
		if reg == nil || reg.Serial > c.upTo {
			c.next = c.next[:last]
			continue
		}
		c.next[last] = reg.newer
		if !reg.Removed() {
			visit(reg)
		}
	}
	return len(c.next) > 0
}

// More reports whether there are more sessions to visit.
func (c *Cursor) More() bool { return len(c.next) > 0 }
