package actors

import (
	"context"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// park takes a call in.
func (s *session) park(c actor.Context, k *call) {
	s.parked, s.reopened = append(s.parked, k), false
	s.wakeBy(c, k.deadline)
}

// startParked runs as many calls as may run at once.
func (s *session) startParked(c actor.Context) {
	for len(s.parked) > 0 && len(s.running) < s.cfg.MaxInFlight {
		k := s.parked[0]
		s.parked = slices.Delete(s.parked, 0, 1) // which keeps its room
		if s.held.shared(k.op) {
			s.held.note(k.op)
			k.generation = s.generation
			s.reply(c, k, k.sign(&messages.Ack{}))
			continue
		}
		s.start(c, k)
	}
}

// start runs a call.
func (s *session) start(c actor.Context, k *call) {
	ctx, cancel := context.WithCancel(context.Background())
	conn := s.conn
	k.runs++
	k.conn, k.cancel, k.generation = conn, cancel, s.generation
	s.running = append(s.running, k)
	s.cfg.work(c, func() any {
		defer cancel()
		result, declined, err := k.perform(ctx, conn)
		return &answered{k, conn, result, err, declined}
	})
}

// onAnswered passes the result on, or decides what becomes of a call that had
// none, and of the session.
func (s *session) onAnswered(c actor.Context, msg *answered) {
	k := msg.call
	s.forget(k)
	e := mcpbridge.AsError(msg.err)
	if e == nil {
		s.held.note(k.op)
	}
	switch {
	case k.answered:
	case e == nil:
		s.reply(c, k, k.sign(msg.result))
	default:
		s.onFailed(c, k, e, msg.declined)
	}
	// What is said of an older connection changes nothing.
	if e != nil && e.Session != mcpbridge.Alive && msg.conn == s.conn && s.draining == nil {
		s.broke(e)
	}
}

// onFailed answers a call with its failure, or keeps it for the next connection.
func (s *session) onFailed(c actor.Context, k *call, e *mcpbridge.Error, declined bool) {
	if e.Class == mcpbridge.Cancelled {
		// Nobody but us has cancelled it: when the grace was over.
		e = &mcpbridge.Error{Class: mcpbridge.Lost, Detail: "cut off, because its session was replaced", Sent: true, Err: e}
	}
	again, ask := k.mayRepeat(e)
	if again && !declined && e.Class == mcpbridge.Lost {
		k.lost, k.lostIn = e, k.generation
	}
	switch {
	case declined:
		k.runs--
		k.generation = k.lostIn
		s.reply(c, k, k.explain(e))
	case !again:
		s.reply(c, k, k.explain(e))
	case s.draining == nil:
		k.conn, k.ask = nil, ask
		s.parked = slices.Insert(s.parked, 0, k)
		s.wakeBy(c, k.deadline)
	case s.draining.evict && !ask:
		c.Send(s.registry, &handback{s.of, []*call{k}})
	case s.draining.evict: // nobody can be asked any more whether it may run again
		s.reply(c, k, k.explain(e))
	default:
		f := k.explain(e)
		f.Code = messages.CodeClosed
		s.reply(c, k, f)
	}
}

// onHeard passes on what the server has said: progress to who asked for it, before
// the reply and not after it; the rest to all.
func (s *session) onHeard(c actor.Context, msg *heard) {
	stamp := messages.Stamp{Key: s.key, Generation: s.generation, Time: time.Now()}
	if msg.of != nil {
		for _, k := range s.running {
			if k.op == msg.of && !k.answered {
				stamp.Generation = k.generation
				msg.note.SetStamp(stamp)
				c.Send(k.op.Head().Subscriber, msg.note)
			}
		}
		return
	}
	msg.note.SetStamp(stamp)
	if updated, ok := msg.note.(*messages.ResourceUpdated); ok {
		for _, subscriber := range s.held.subscribers(updated.URI) {
			c.Send(subscriber, updated)
		}
	}
	c.Send(s.registry, &said{s.of, msg.note})
}

// goOn does what the end of a call makes possible.
func (s *session) goOn(c actor.Context) {
	switch {
	case s.draining != nil:
		s.finish(c)
	case s.old != nil:
		s.release(c)
	case s.conn != nil:
		s.startParked(c)
	}
}

// onCancelled answers the calls with an id, and tells the server of those that
// run.
func (s *session) onCancelled(c actor.Context, msg *cancelled) {
	s.parked = slices.DeleteFunc(s.parked, func(k *call) bool {
		if !msg.means(k) {
			return false
		}
		s.reply(c, k, k.failure(messages.CodeCancelled, ""))
		return true
	})
	for _, k := range s.running {
		if msg.means(k) && !k.answered {
			s.abandon(c, k, messages.CodeCancelled)
		}
	}
	s.withdraw(c)
}

// abandon answers a call that is running, and cancels it. It should return
// soon after.
func (s *session) abandon(c actor.Context, k *call, code messages.Code) {
	f := k.failure(code, "")
	f.MayHaveRun = true
	s.reply(c, k, f)
	k.cancel()
	k.deadline = time.Now().Add(s.cfg.CloseTimeout)
	s.wakeBy(c, k.deadline)
}

// withdraw takes the wish for a connection back if nobody waits any more.
func (s *session) withdraw(c actor.Context) {
	if s.asked && s.abort == nil && s.conn == nil && s.draining == nil && len(s.parked) == 0 {
		s.proceed(c)
	}
}

// onWoke does what is due, and sets the timer for what comes next.
func (s *session) onWoke(c actor.Context) {
	now := time.Now()
	s.expireParked(c, now)
	for _, k := range s.running {
		switch {
		case now.Before(k.deadline):
			s.wakeBy(c, k.deadline)
		case !k.answered:
			s.abandon(c, k, messages.CodeDeadline)
		case k.conn == s.conn && s.draining == nil:
			s.broke(&mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Detail: "a cancelled call does not return"})
		}
	}
	if !s.pingAt.IsZero() && s.draining == nil {
		s.onPing(c, now)
	}
	s.withdraw(c)
	if s.draining != nil || s.old != nil {
		s.goOn(c)
	}
}

// expireParked answers the calls that have waited until their deadline. What they
// have waited for before there was a connection is the registry's to say.
func (s *session) expireParked(c actor.Context, now time.Time) {
	var calls []*call
	s.parked = slices.DeleteFunc(s.parked, func(k *call) bool {
		if now.Before(k.deadline) {
			s.wakeBy(c, k.deadline)
			return false
		}
		if s.conn != nil {
			s.reply(c, k, k.failure(messages.CodeDeadline, "while waiting for other calls of the session (MaxInFlight)"))
			return true
		}
		k.answered = true
		calls = append(calls, k)
		return true
	})
	if len(calls) > 0 {
		c.Send(s.registry, &late{s.of, calls})
	}
}

// onPing sends a keepalive ping, unless the one before is not answered yet.
func (s *session) onPing(c actor.Context, now time.Time) {
	if now.Before(s.pingAt) {
		s.wakeBy(c, s.pingAt)
		return
	}
	if s.pinging {
		s.broke(&mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Detail: "the server did not answer a ping"})
	}
	s.pinging = true
	conn, timeout := s.conn, s.server.KeepAlive
	s.cfg.work(c, func() any {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		ping := &call{op: &messages.Ping{}}
		_, _, err := ping.perform(ctx, conn)
		return &pulsed{conn, err}
	})
	s.keepAlive(c)
}

// onPulsed takes any answer for a sign of life.
func (s *session) onPulsed(msg *pulsed) {
	if msg.conn != s.conn {
		return
	}
	e := mcpbridge.AsError(msg.err)
	switch {
	case e == nil || e.Session == mcpbridge.Alive && e.Class != mcpbridge.Deadline:
		s.pinging = false
	case e.Session != mcpbridge.Alive:
		s.broke(e)
	}
}

// reply answers a call, and tells the registry.
func (s *session) reply(c actor.Context, k *call, reply messages.Reply) {
	k.answered = true
	if k.caller != nil {
		c.Send(k.caller, reply)
	}
	c.Send(s.registry, s.settled)
}

// takeParked returns the calls that wait, which do not any more.
func (s *session) takeParked() []*call {
	parked := s.parked
	s.parked = nil
	return parked
}

// wakeBy sees to it that woke comes at a time, or before.
func (s *session) wakeBy(c actor.Context, at time.Time) {
	if s.timer != nil && !at.Before(s.wakeAt) {
		return
	}
	if s.timer != nil && !s.timer.Stop() {
		return // it fired: woke is in the mailbox
	}
	s.wakeAt = at
	s.timer = after(c, max(0, time.Until(at)), &woke{})
}

// stopTimer reports whether no woke is on its way.
func (s *session) stopTimer() bool {
	if s.timer == nil || s.timer.Stop() {
		s.timer = nil
		return true
	}
	return false
}
