package admission

import (
	"container/heap"
	"time"
)

// Wake returns when Due is to be called, or the zero time.
func (g *Gate) Wake() (at time.Time) {
	at = g.starts.next()
	if len(g.probes) > 0 && (at.IsZero() || g.probes[0].wakeAt.Before(at)) {
		at = g.probes[0].wakeAt
	}
	return at
}

// Due ends the youth of starts, and begins probes, whose time has come. If the probes are too many for one step, the others stay
// due.
func (g *Gate) Due(now time.Time) {
	if g.starts.pass(now) {
		g.changed = true
	}
	for n := 0; n < maxLooks && len(g.probes) > 0 && !g.probes[0].wakeAt.After(now); n++ {
		ep := g.probes[0]
		g.probes.remove(ep)
		g.probe(ep, now)
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
	g.recall(ep)
}

// wakes are the endpoints whose next probes are waited for, as a heap.
type wakes []*Endpoint

// set notes when the next probe of an endpoint is due.
func (w *wakes) set(ep *Endpoint, at time.Time) {
	w.remove(ep)
	ep.wakeAt = at
	heap.Push(w, ep)
}

// remove notes that nothing waits for the next probe of an endpoint.
func (w *wakes) remove(ep *Endpoint) {
	if !ep.wakeAt.IsZero() {
		heap.Remove(w, ep.index)
		ep.wakeAt = time.Time{}
	}
}

// Len and the other methods are for [heap.Interface].
func (w wakes) Len() int { return len(w) }

// Less orders by time.
func (w wakes) Less(i, j int) bool { return w[i].wakeAt.Before(w[j].wakeAt) }

// Swap swaps two endpoints.
func (w wakes) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].index, w[j].index = i, j
}

// Push appends an endpoint.
func (w *wakes) Push(ep any) {
	ep.(*Endpoint).index = len(*w)
	*w = append(*w, ep.(*Endpoint))
}

// Pop removes the last endpoint.
func (w *wakes) Pop() any {
	last := len(*w) - 1
	ep := (*w)[last]
	*w = (*w)[:last]
	return ep
}
