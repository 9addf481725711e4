package admission

import "time"

// Second is a second session of a key that is opened beside the first, to ask it what the first was
// asked. It needs a permit, and no slot: it uses that of the first.
type Second struct {
	Of  *Session
	For any // who waits for AllowSecond

	place   *Place // where it waits, or has its permit
	allowed bool   // it uses the slot
	dialing bool   // it has a permit
	ended   bool
}

// WantSecond queues a second session, also of a session that drains: its calls wait for what the second
// one finds out. While the server is down, one that comes when a probe is due counts as the probe. Others
// are refused: WantSecond returns nil.
func (g *Gate) WantSecond(of *Session, now time.Time, caller any) *Second {
	ep := of.Place.Endpoint
	if ep.Down {
		if !ep.AllowsProbe(now) {
			return nil
		}
		ep.ProbedAt, ep.Next = now, now.Add(MaxProbeInterval)
		g.recall(ep)
	}
	k := &Second{Of: of, For: caller, place: of.Place}
	of.Place.seconds = append(of.Place.seconds, k)
	g.allowSeconds(of.Place)
	return k
}

// allowSeconds gives permits to second sessions.
func (g *Gate) allowSeconds(p *Place) {
	for len(p.seconds) > 0 && p.dialing < p.server.maxDials {
		k := p.seconds[0]
		p.seconds = p.seconds[1:]
		if k.ended {
			continue
		}
		k.allowed, k.dialing = true, true
		k.Of.seconds++
		p.dialing++
		g.decide(Decision{Do: AllowSecond, Second: k})
	}
}

// SecondOpened takes back the permit of a second session.
func (g *Gate) SecondOpened(k *Second) {
	if k.dialing {
		k.dialing = false
		g.returnPermit(k.place)
	}
}

// SecondEnded notes that a second session has ended, or is not wanted any more.
func (g *Gate) SecondEnded(k *Second) {
	k.ended = true
	g.SecondOpened(k)
	if k.allowed {
		k.allowed = false
		if k.Of.seconds--; k.Of.seconds == 0 && k.Of.lent {
			g.returnSlot(k.Of)
		}
	}
}
