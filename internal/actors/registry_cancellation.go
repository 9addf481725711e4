package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

const (
	// cancelPace is the interval in which at most cancelBurst cancellations are delivered.
	cancelPace = time.Millisecond
	// cancelBurst bounds the cancellations of one interval. Each one wakes a session and a
	// caller: a larger burst would keep all processors busy, and delay the calls of
	// other keys.
	cancelBurst = 64
)

// cancellations delivers cancellations, at most cancelBurst in each interval of
// cancelPace, and queues the rest.
type cancellations struct {
	deliver func(actor.Context, queuedCancel)
	queue   []queuedCancel
	used    int         // of cancelBurst, in this interval
	timer   *time.Timer // sends cancelDue; nil after an interval without cancellations
}

// queuedCancel is a cancellation of the operations that came before it, or of one operation.
type queuedCancel struct {
	*messages.Cancel
	upTo uint64 // the serial of the last operation before it

	cancel func(actor.Context) // cancels one operation; nil for a Cancel
}

// cancelDue says that an interval of cancelPace is over.
type cancelDue struct{}

// onCancel delivers a cancellation, or queues it.
func (r *registry) onCancel(c actor.Context, msg *messages.Cancel) {
	if msg.ID == "" {
		return
	}
	r.cancellations.add(c, queuedCancel{Cancel: msg, upTo: r.counters.Calls})
}

// add delivers a cancellation, or queues it.
func (q *cancellations) add(c actor.Context, m queuedCancel) {
	if q.timer == nil {
		q.timer = after(c, cancelPace, &cancelDue{})
	}
	if q.used >= cancelBurst {
		q.queue = append(q.queue, m)
		return
	}
	q.used++
	q.run(c, m)
}

// run delivers a cancellation.
func (q *cancellations) run(c actor.Context, m queuedCancel) {
	if m.cancel != nil {
		m.cancel(c)
		return
	}
	q.deliver(c, m)
}

// onCancelDue delivers the next queued cancellations.
func (r *registry) onCancelDue(c actor.Context) {
	q := &r.cancellations
	q.timer = nil
	q.used = min(len(q.queue), cancelBurst)
	if q.used == 0 {
		q.queue = nil
		return
	}
	q.timer = after(c, cancelPace, &cancelDue{})
	burst := q.queue[:q.used]
	q.queue = q.queue[q.used:]
	for _, m := range burst {
		q.run(c, m)
	}
}

// cancel sends a cancellation to the sessions of its key.
func (r *registry) cancel(c actor.Context, m queuedCancel) {
	r.tell(c, m.Key.Normal(), &cancelCalls{id: m.ID, upTo: m.upTo})
}

// onCancelScope cancels the operations of a scope.
func (r *registry) onCancelScope(c actor.Context, cmd *messages.CancelScope) {
	key := messages.Key{Scope: cmd.Scope}.Normal()
	if !r.isValid(c, cmd, key.Validate()) {
		return
	}
	r.cancelScope(c, key.Scope, "")
	r.respond(c, &messages.Done{ID: cmd.ID})
}

// tell sends a cancellation to all sessions of a key, those that drain included.
func (r *registry) tell(c actor.Context, key messages.Key, msg *cancelCalls) {
	e := r.entries[key]
	if e == nil {
		return
	}
	if e.current != nil {
		c.Send(e.current.pid, msg)
	}
	for _, reg := range e.draining {
		c.Send(reg.pid, msg)
		if reg.order.evict {
			e.cancelled.add(msg, reg.server.limits.MaxInFlight+reg.server.limits.MaxWaiting)
		}
	}
}

// onCallsHandedBack accepts, for the successor of an evicted session, the calls that the
// session has not run.
func (r *registry) onCallsHandedBack(c actor.Context, msg *callsHandedBack) {
	msg.of.outstanding -= len(msg.calls)
	r.recount(msg.of)
	var cancelled cancelledCalls
	if e := r.entries[msg.of.key]; e != nil {
		cancelled = e.cancelled
	}
	for _, k := range msg.calls {
		if cancelled.includes(k) {
			r.reject(c, k, k.failure(messages.CodeCancelled, ""))
			continue
		}
		k.kept = msg.of.order.restart
		r.accept(c, k)
	}
}
