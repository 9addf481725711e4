package node

import (
	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// wantEvents asks a member for its events, or for no more.
type wantEvents struct {
	Want bool `json:"want"`
}

func init() { wire.Register[wantEvents]("want-events") }

// events passes events between members: those of others to the function that watches, and those of the own
// supervisor to the members that want them.
type events struct {
	*base
	watch    func(messages.Event) // gets the events of other members; nil if they are not wanted here
	wanting  map[string]*peer     // by incarnation
	observed func()               // ends the observation of the own supervisor; nil if no member wants its events
}

func newEvents(b *base) *events { return &events{base: b, wanting: map[string]*peer{}} }

// onWantEvents notes whether a member wants events.
func (e *events) onWantEvents(from *peer, want bool) {
	if delete(e.wanting, from.ID); want {
		e.wanting[from.ID] = from
	}
	switch wanted := len(e.wanting) > 0; {
	case wanted && e.observed == nil:
		e.observed = e.cfg.Observe(func(event messages.Event) { e.do(func() { e.onObserved(event) }) })
	case !wanted && e.observed != nil:
		e.observed()
		e.observed = nil
	}
}

// onObserved sends an event of the own supervisor to the members that want it. If too much
// waits for a member, it misses the event.
func (e *events) onObserved(observed messages.Event) {
	m, err := encode(envelope{}, observed)
	for _, p := range inOrder(e.wanting) {
		if p.alive() && !p.link.Crowded() {
			p.send(m, err, observed)
		}
	}
}

// onEvent delivers an event of another member.
func (e *events) onEvent(event messages.Event) {
	if e.watch != nil {
		e.watch(event)
	}
}
