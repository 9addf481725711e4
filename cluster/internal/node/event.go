package node

import (
	"encoding/json"

	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// Between nodes.
type (
	// wantEvents asks a member for its events, or for no more.
	wantEvents struct {
		Want bool `json:"want"`
	}
	// event is an event of a member.
	event struct {
		Type string          `json:"type"`
		Body json.RawMessage `json:"body"`
	}
)

func init() {
	wire.Register[wantEvents]("want-events")
	wire.Register[event]("event")
}

// observedEvent brings an event of the own supervisor.
type observedEvent struct {
	late
	event messages.Event
}

// onWatch begins or ends the delivery of the events of other members.
func (n *node) onWatch(msg *Watch) {
	before := len(n.watchers)
	if delete(n.watchers, msg.ID); !msg.End {
		n.watchers[msg.ID] = msg.Handle
	}
	if after := len(n.watchers); (before > 0) == (after > 0) {
		return
	}
	for _, p := range inOrder(n.peers) {
		if p.member {
			n.post(p, 0, &wantEvents{!msg.End})
		}
	}
}

// onWantEvents notes whether a member wants events.
func (n *node) onWantEvents(from *peer, want bool) {
	if from.events == want {
		return
	}
	from.events = want
	wanted := false
	for _, p := range n.peers {
		wanted = wanted || p.events
	}
	switch {
	case wanted && n.observed == nil:
		n.observed = n.cfg.Observe(func(e messages.Event) { n.toSelf(&observedEvent{event: e}) })
	case !wanted && n.observed != nil:
		n.observed()
		n.observed = nil
	}
}

// onObserved sends an event of the own supervisor to the members that want it. If too much
// waits for a member, it misses the event.
func (n *node) onObserved(e messages.Event) {
	typ, body, err := wire.Encode(e, refs{})
	if err != nil {
		return
	}
	for _, p := range inOrder(n.peers) {
		if p.events && p.alive() && !p.link.Crowded() {
			n.post(p, 0, &event{typ, body})
		}
	}
}

// onEvent delivers an event of another member.
func (n *node) onEvent(msg *event) {
	value, err := wire.Decode(msg.Type, msg.Body, refs{})
	if e, ok := value.(messages.Event); ok && err == nil {
		for _, handle := range inOrder(n.watchers) {
			handle(e)
		}
	}
}
