package admission

import "time"

// Control is a second MCP session of a key, which is opened beside the first to ask it what the first has
// refused. It needs a permit, and no slot: it uses that of the first.
type Control struct {
	Of  *Session
	For any // who waits for AllowControl

	place   *Place // where it waits, or has its permit
	allowed bool   // it uses the slot
	dialing bool   // it has a permit
	ended   bool
}

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
		g.recall(ep)
	}
	k := &Control{Of: of, For: caller, place: of.Place}
	of.Place.controls = append(of.Place.controls, k)
	g.allowControls(of.Place)
	return k
}

// allowControls gives permits to controls.
func (g *Gate) allowControls(p *Place) {
	for len(p.controls) > 0 && p.dialing < p.server.maxDials {
		k := p.controls[0]
		p.controls = p.controls[1:]
		if k.ended {
			continue
		}
		k.allowed, k.dialing = true, true
		k.Of.controls++
		p.dialing++
		g.decide(Decision{Do: AllowControl, Control: k})
	}
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
		if k.Of.controls--; k.Of.controls == 0 && k.Of.lent {
			g.returnSlot(k.Of)
		}
	}
}
