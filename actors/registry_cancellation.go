package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

const (
	// cancelPace is how long a burst of cancellations is taken in before others have
	// their turn again.
	cancelPace = time.Millisecond
	// cancelBurst is how many are passed on in that time. Each one wakes a session and a
	// caller: more of them at once would use all the processors, and a call of
	// another key would have to wait for its turn.
	cancelBurst = 64
)

// cancellations delivers cancellations, and queues those that come in a burst.
type cancellations struct {
	deliver func(actor.Context, queuedCancel)
	queue   []queuedCancel
	used    int         // of the burst
	timer   *time.Timer // sends cancelDue; nil when nothing was cancelled lately
}

// queuedCancel cancels the operations that came before it.
type queuedCancel struct {
	*messages.Cancel
	upTo uint64
}

// cancelDue says that the next cancellations may be delivered.
type cancelDue struct{}

// onCancel passes a cancellation on to whoever may have the call, in its turn.
func (r *registry) onCancel(c actor.Context, msg *messages.Cancel) {
	if msg.ID == "" {
		return
	}
	p, m := &r.cancellations, queuedCancel{msg, r.counters.Calls}
	if p.timer == nil {
		p.timer = after(c, cancelPace, &cancelDue{})
	}
	if p.used >= cancelBurst {
		p.queue = append(p.queue, m)
		return
	}
	p.used++
	p.deliver(c, m)
}

// onCancelDue passes the next cancellations on.
func (r *registry) onCancelDue(c actor.Context) {
	p := &r.cancellations
	p.timer = nil
	p.used = min(len(p.queue), cancelBurst)
	if p.used == 0 {
		p.queue = nil
		return
	}
	p.timer = after(c, cancelPace, &cancelDue{})
	burst := p.queue[:p.used]
	p.queue = p.queue[p.used:]
	for _, m := range burst {
		p.deliver(c, m)
	}
}

// cancel passes a cancellation on to whoever may have the call.
func (r *registry) cancel(c actor.Context, m queuedCancel) {
	r.tell(c, m.Key.Normal(), &cancelCalls{id: m.ID, upTo: m.upTo})
}

// tell passes a cancellation on to all sessions of a key.
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
		if reg.evicted {
			e.cancelled.add(msg, r.cfg.MaxInFlight+r.cfg.MaxWaiting)
		}
	}
}

// onHandback gives calls that an evicted session has not run to its successor.
func (r *registry) onHandback(c actor.Context, msg *handback) {
	msg.of.outstanding -= len(msg.calls)
	r.recount(msg.of)
	var gaveUp cancelledCalls
	if e := r.entries[msg.of.key]; e != nil {
		gaveUp = e.cancelled
	}
	for _, k := range msg.calls {
		if gaveUp.includes(k) {
			if k.caller != nil {
				c.Send(k.caller, k.failure(messages.CodeCancelled, ""))
			}
			continue
		}
		r.accept(c, k)
	}
}
