package dialing

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// Admit carries out what the gate decides. If there is much, the next step continues.
func (d *Dialing) Admit() {
	if !d.Gate.Pending() {
		return
	}
	var next admission.Decision
	for n := 0; n < contract.WalkStep && next.Do != admission.Continue; n++ {
		found := false
		if next, found = d.Gate.Next(time.Now()); !found {
			d.Alarm.Set(&d.gateDue, d.Gate.Wake())
			return
		}
		switch next.Do {
		case admission.Dial:
			d.letDial(table.Of(next.Session.Of))
		case admission.Evict:
			d.evict(table.Of(next.Session.Of), next.Reason)
		case admission.Abandon:
			table.Of(next.Session.Of).Send(&contract.AbandonDial{})
		case admission.AllowControl:
			d.Cfg.Post.Send(next.Control.For.(*actor.PID), &contract.Allowed{Is: true})
		}
	}
	d.Jobs.Later(&jobs.Job{Step: func() (more bool) { return false }}) // after which the gate is asked again
}

// onGateDue tells the gate the time.
func (d *Dialing) onGateDue() {
	d.Gate.Due(time.Now())
	d.Alarm.Set(&d.gateDue, d.Gate.Wake())
}

// letDial lets a session dial.
func (d *Dialing) letDial(reg *table.Registration) {
	d.Reports.Counters.Dials++
	reg.WantsDial, reg.Addressed = false, reg.Server.PerKey == nil
	if !reg.Draining {
		d.Sessions.SetState(reg, messages.StateConnecting)
	}
	reg.TellLimits()
	reg.Send(&contract.Grant{Generation: d.Table.Entry(reg.Key).Generation})
}

// Wanted queues a session for a grant.
func (d *Dialing) Wanted(reg *table.Registration) {
	if reg.Removed() || reg.Draining && !reg.Cleanup || reg.Dialing {
		return
	}
	reg.WantsDial = true
	if !reg.Draining {
		d.Sessions.SetState(reg, messages.StateWaiting)
	}
	d.Advance(reg)
}

// Advance queues a session that wants to dial, if its backoff is over and its predecessor is closed, or sets the
// alarm for the end of its backoff. It is called again when the predecessor is closed.
func (d *Dialing) Advance(reg *table.Registration) {
	if !reg.WantsDial || reg.Queued() {
		return
	}
	now := time.Now()
	rested := !now.Before(reg.NotBefore) || reg.MayHaveNewCredentials()
	if first := d.Table.Entry(reg.Key).Predecessor(reg) == nil; !rested || !first {
		d.Gate.Rest(&reg.Session)
		if reg.NotBefore.After(now) {
			reg.Backoff.What = func() { d.Advance(reg) }
			d.Alarm.Set(&reg.Backoff, reg.NotBefore)
		}
		return
	}
	d.Gate.Want(&reg.Session, now)
	d.Admit()
	if reg.Queued() && d.Cfg.FailFast && reg.Place.Endpoint.Down {
		d.sendServerDown(reg)
	}
}

// BecameIdle takes back the slot of a session that has no connection and wants none.
func (d *Dialing) BecameIdle(reg *table.Registration) {
	if reg.Dialing || reg.Draining {
		return
	}
	reg.WantNoDial(d.Alarm)
	d.Gate.Idle(&reg.Session)
}

// Abandoned takes back the permits of an abandoned dial.
func (d *Dialing) Abandoned(reg *table.Registration) {
	d.Gate.Abandoned(&reg.Session, time.Now())
	if !reg.Draining {
		d.Sessions.SetState(reg, messages.StateWaiting)
	}
}

// Answered takes back the permit to start a process.
func (d *Dialing) Answered(reg *table.Registration) {
	d.Gate.Started(&reg.Session)
	d.ServerUp(reg)
}

// AddressFound moves a session to the place of the address that its dial has found. The sessions of a
// server with PerKey begin at its base. Each dial finds the address of its key, and asks for it before it
// sends anything:
//
//	grant ──▶ PerKey returns ──AddressFound──▶ the session moves to that place
//	                                             ├─ up, or may be probed ──▶ the dial continues
//	                                             └─ else ──▶ the dial ends, and the session is queued there
func (d *Dialing) AddressFound(msg *contract.AddressFound, from *actor.PID) {
	reg := table.Of(msg.Of)
	is := false
	if reg.Dialing {
		reg.Addressed = true
		is = d.Gate.Move(&reg.Session, msg.Address, time.Now())
	}
	d.Cfg.Post.Send(from, &contract.Allowed{Is: is})
}
