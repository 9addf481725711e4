package registry

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// settle does what follows from a message: it carries out what the gate decides, and sets the timer.
func (r *registry) settle() {
	if !r.finished {
		r.admit()
		r.due.wake(r.mailbox)
	}
}

// admit carries out what the gate decides. If there is much, the next step continues.
func (r *registry) admit() {
	if !r.gate.Pending() {
		return
	}
	var d admission.Decision
	for n := 0; n < contract.WalkStep && d.Do != admission.Continue; n++ {
		found := false
		if d, found = r.gate.Next(time.Now()); !found {
			r.due.Set(&r.gateDue, r.gate.Wake())
			return
		}
		switch d.Do {
		case admission.Dial:
			r.letDial(table.Of(d.Session.Of))
		case admission.Evict:
			r.evict(table.Of(d.Session.Of), d.Reason)
		case admission.Abandon:
			table.Of(d.Session.Of).Send(&contract.AbandonDial{})
		case admission.AllowControl:
			r.cfg.Post.Send(d.Control.For.(*actor.PID), &contract.ControlAllowed{Is: true})
		}
	}
	r.mailbox.PostUserMessage(&job{step: func() (more bool) { return false }}) // after which the gate is asked again
}

// onGateDue tells the gate the time.
func (r *registry) onGateDue() {
	r.gate.Due(time.Now())
	r.due.Set(&r.gateDue, r.gate.Wake())
}

// letDial lets a session dial.
func (r *registry) letDial(reg *table.Registration) {
	r.reports.Counters.Dials++
	reg.WantsDial, reg.Addressed = false, reg.Server.PerKey == nil
	if !reg.Draining {
		r.setState(reg, messages.StateConnecting)
	}
	r.tellLimits(reg)
	reg.Send(&contract.Grant{Generation: r.table.Entry(reg.Key).Generation})
}

// onDialRequested queues a session for a grant.
func (r *registry) onDialRequested(reg *table.Registration) {
	if reg.Removed() || reg.Draining && !reg.Cleanup || reg.Dialing {
		return
	}
	reg.WantsDial = true
	if !reg.Draining {
		r.setState(reg, messages.StateWaiting)
	}
	r.advance(reg)
}

// mayQueue reports whether a session may be queued: its backoff is over, and its
// predecessor is closed.
func (r *registry) mayQueue(reg *table.Registration, now time.Time) bool {
	return (!now.Before(reg.NotBefore) || reg.MayHaveNewCredentials()) && r.table.Entry(reg.Key).Predecessor(reg) == nil
}

// advance queues a session that wants to dial, if it may be queued now, or starts the
// timer for the end of its backoff. It is called again when the predecessor is closed.
func (r *registry) advance(reg *table.Registration) {
	if !reg.WantsDial || reg.Queued() {
		return
	}
	now := time.Now()
	if !r.mayQueue(reg, now) {
		r.gate.Rest(&reg.Session)
		if reg.NotBefore.After(now) {
			r.due.Set(&reg.Backoff, reg.NotBefore)
		}
		return
	}
	r.gate.Want(&reg.Session, now)
	r.admit()
	if reg.Queued() && r.cfg.FailFast && reg.Place.Endpoint.Down {
		r.sendServerDown(reg)
	}
}

// onBecameIdle takes back the slot of a session that has no connection and wants none.
func (r *registry) onBecameIdle(reg *table.Registration) {
	if reg.Dialing || reg.Draining {
		return
	}
	reg.WantsDial = false
	r.due.Remove(&reg.Backoff)
	r.gate.Idle(&reg.Session)
}

// onDialAbandoned takes back the permits of an abandoned dial.
func (r *registry) onDialAbandoned(reg *table.Registration) {
	r.gate.Abandoned(&reg.Session, time.Now())
	if !reg.Draining {
		r.setState(reg, messages.StateWaiting)
	}
}

// onHandshakeAnswered takes back the permit to start a process.
func (r *registry) onHandshakeAnswered(reg *table.Registration) {
	r.gate.Started(&reg.Session)
	r.serverUp(reg)
}

// onAddressFound moves a session to the place of the address that its dial has found. The sessions of a
// server with PerKey begin at its base. Each dial finds the address of its key, and asks for it before it
// sends anything:
//
//	grant ──▶ PerKey returns ──addressFound──▶ the session moves to that place
//	                                             ├─ up, or may be probed ──▶ the dial continues
//	                                             └─ else ──▶ the dial ends, and the session is queued there
func (r *registry) onAddressFound(msg *contract.AddressFound, from *actor.PID) {
	reg := table.Of(msg.Of)
	is := false
	if reg.Dialing {
		reg.Addressed = true
		is = r.gate.Move(&reg.Session, msg.Address, time.Now())
	}
	r.cfg.Post.Send(from, &contract.AddressAllowed{Is: is})
}

// onControlWanted queues a control, or refuses it.
func (r *registry) onControlWanted(msg *contract.ControlWanted, from *actor.PID) {
	control := r.gate.WantControl(&table.Of(msg.Of).Session, time.Now(), from)
	if control == nil {
		r.cfg.Post.Send(from, &contract.ControlAllowed{Is: false})
		return
	}
	r.controls[msg] = control
}

// onControlOpened takes back the permit of a control.
func (r *registry) onControlOpened(msg *contract.ControlWanted) {
	if control := r.controls[msg]; control != nil {
		r.gate.ControlOpened(control)
	}
}

// onControlEnded notes that a control has ended.
func (r *registry) onControlEnded(msg *contract.ControlWanted) {
	if control := r.controls[msg]; control != nil {
		delete(r.controls, msg)
		r.gate.ControlEnded(control)
	}
}
