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

// events passes events between members: those of others to the functions that watch, and those of the own
// supervisor to the members that want them.
type events struct {
	*base
	watchers map[uint64]func(messages.Event)
	wanting  map[string]*peer // by incarnation
	observed func()           // ends the observation of the own supervisor; nil if no member wants its events
}

func newEvents(b *base) *events {
	return &events{base: b, watchers: map[uint64]func(messages.Event){}, wanting: map[string]*peer{}}
}

// watched reports whether the events of other members are wanted here.
func (e *events) watched() bool { return len(e.watchers) > 0 }

// onWatch begins or ends the delivery of the events of other members. It reports whether these are to be told that
// they are wanted here, or no longer.
func (e *events) onWatch(msg *Watch) (changed bool) {
	before := e.watched()
	if delete(e.watchers, msg.ID); !msg.End {
		e.watchers[msg.ID] = msg.Handle
	}
	return e.watched() != before
}

// onWantEvents notes whether a member wants events.
func (e *events) onWantEvents(from *peer, want bool) {
	if delete(e.wanting, from.ID); want {
		e.wanting[from.ID] = from
	}
	switch wanted := len(e.wanting) > 0; {
	case wanted && e.observed == nil:
		e.observed = e.cfg.Observe(func(event messages.Event) { e.toSelf(&observedEvent{event: event}) })
	case !wanted && e.observed != nil:
		e.observed()
		e.observed = nil
	}
}

// onObserved sends an event of the own supervisor to the members that want it. If too much
// waits for a member, it misses the event.
func (e *events) onObserved(observed messages.Event) {
	typ, body, err := wire.Encode(observed, refs{})
	if err != nil {
		return
	}
	for _, p := range inOrder(e.wanting) {
		if p.alive() && !p.link.Crowded() {
			p.post(0, &event{typ, body})
		}
	}
}

// onEvent delivers an event of another member.
func (e *events) onEvent(msg *event) {
	value, err := wire.Decode(msg.Type, msg.Body, refs{})
	if event, ok := value.(messages.Event); ok && err == nil {
		for _, handle := range inOrder(e.watchers) {
			handle(event)
		}
	}
}
