package admission

import "time"

// WantControl queues a control, also of a session that drains: its calls wait for what the control
// finds out. While the server is down, one that comes when a probe is due counts as the probe. Others
// are refused: WantControl returns nil.
func (g *Gate) WantControl(of *Session, now time.Time, caller any) *Control {
	ep := of.Place.Endpoint
	if ep.Down {
		if !ep.AllowsProbe(now) {
			return nil
		}
		ep.ProbedAt, ep.Next = now, now.Add(MaxProbeInterval)
		g.queue.unblock(ep)
	}
	k := &Control{Of: of, For: caller, place: of.Place}
	of.Place.controls = append(of.Place.controls, k)
	g.giveOut(of.Place)
	return k
}

// ControlOpened takes back the permit of a control.
func (g *Gate) ControlOpened(k *Control) {
	if k.dialing {
		k.dialing = false
		g.returnPermit(k.place)
	}
}

// ControlEnded notes that a control has ended, or is not wanted any more.
func (g *Gate) ControlEnded(k *Control) {
	k.ended = true
	g.ControlOpened(k)
	if k.allowed {
		k.allowed = false
		if k.Of.controls--; k.Of.controls == 0 && k.Of.onlyControls {
			g.slots.giveBack(k.Of)
		}
	}
}
