package admission

import "time"

// Wake returns when Due is to be called, or the zero time.
func (g *Gate) Wake() (at time.Time) {
	at = g.starts.next()
	if probe := g.queue.probes.Next(); !probe.IsZero() && (at.IsZero() || probe.Before(at)) {
		at = probe
	}
	return at
}

// Due ends the youth of starts, and lets the probes begin that are due. If too many are due for one step, the others stay due.
func (g *Gate) Due(now time.Time) {
	if g.starts.pass(now) {
		g.queue.changed = true
	}
	for range maxSkipped {
		due := g.queue.probes.Due(now)
		if due == nil {
			return
		}
		g.probe(due.What, now)
	}
}

// probe lets the next probe of an endpoint begin. If there are too many, the second oldest is abandoned: the
// oldest keeps its full time, for servers that are slow.
func (g *Gate) probe(ep *Endpoint, now time.Time) {
	limit := MaxProbes
	for _, probe := range ep.Probes {
		limit = min(limit, probe.Place.server.maxDials)
	}
	if ep.Down && len(ep.Probes) >= limit && !now.Before(ep.Next) {
		ep.Next = now.Add(SlowProbeInterval)
		if limit > 1 {
			g.decide(Decision{Do: Abandon, Session: ep.Probes[1]})
		}
	}
	g.queue.unblock(ep)
}
