package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// park takes a call in.
func (s *session) park(c actor.Context, k *call) {
	s.parked.push(k)
	s.reopened = false
	s.wakeBy(c, k.deadline)
}

// startParked runs as many calls as may run at once. Those that have to wait for
// something else are left where they stand.
func (s *session) startParked(c actor.Context) {
	for k := range s.parked.all() {
		if s.running.count >= s.cfg.MaxInFlight {
			return
		}
		if uri, is := k.subscription(); is && s.turns[uri] {
			continue
		}
		if k.ask && !s.judge(c, k) {
			continue
		}
		s.parked.remove(k)
		if s.held.shared(k.op) {
			s.note(c, k.op)
			k.generation = s.generation
			s.reply(c, k, k.sign(&messages.Ack{}))
			continue
		}
		s.start(c, k)
	}
}

// start runs a call.
func (s *session) start(c actor.Context, k *call) {
	if k.runs == 0 { // what has run before may read it still
		k.until = until{context.Background(), k.deadline}
	}
	ctx, cancel := context.WithCancel(&k.until)
	conn := s.conn
	k.runs++
	k.conn, k.cancel, k.generation = conn, cancel, s.generation
	s.begin(k)
	pause := k.pause()
	s.cfg.work(c, func() any {
		defer cancel()
		result, err := k.performAfter(ctx, pause, conn)
		return &answered{k, conn, result, err}
	})
}

// listTimeout bounds how long lost calls wait for the annotations of their tools.
const listTimeout = 5 * time.Second

// judge decides about a parked call that was lost, and may run again only if its
// tool is safe. While that is not known it stays parked, and the tools are listed:
// once for each connection, whoever waits for it.
func (s *session) judge(c actor.Context, k *call) (mayRun bool) {
	safe, known := s.conn.Hint(k.tool())
	switch {
	case safe && known:
		k.ask = false
		return true
	case known || s.listed:
		s.parked.remove(k)
		s.reply(c, k, k.explain(k.lost))
	case !s.listing:
		s.listing = true
		s.listings++
		conn := s.conn
		s.cfg.work(c, func() any {
			ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
			defer cancel()
			return &listed{conn, attempt(ctx, "tools/list", func(ctx context.Context) error {
				_, err := conn.Do(ctx, &messages.ListTools{})
				return err
			})}
		})
	}
	return false
}

// onListed decides about the calls that have waited for the annotations.
func (s *session) onListed(c actor.Context, msg *listed) {
	s.listings--
	if msg.conn != s.conn || s.draining != nil {
		return
	}
	s.listed = true
	for k := range s.parked.all() {
		if k.ask {
			s.judge(c, k)
		}
	}
	if e := mcpbridge.AsError(msg.err); e != nil && e.Session != mcpbridge.Alive {
		s.broke(e)
	}
}

// note takes in an operation that went well. Who subscribes is watched: a subscriber
// that has stopped is told nothing any more, nor is its subscription put back.
func (s *session) note(c actor.Context, op messages.Operation) {
	s.held.note(op)
	subscriber := op.Head().Subscriber
	if subscriber == nil {
		return
	}
	switch op.(type) {
	case *messages.Subscribe:
		c.Watch(subscriber)
	case *messages.Unsubscribe:
		if !s.held.has(subscriber) {
			c.Unwatch(subscriber)
		}
	}
}

// unwatch forgets the subscribers: they keep a note of each session that watches them.
func (s *session) unwatch(c actor.Context) {
	for _, subscription := range s.held.subscriptions {
		if subscription.Subscriber != nil {
			c.Unwatch(subscription.Subscriber)
		}
	}
}

// onAnswered passes the result on, or decides what becomes of a call that had
// none, and of the session.
func (s *session) onAnswered(c actor.Context, msg *answered) {
	k := msg.call
	s.forget(k)
	e := mcpbridge.AsError(msg.err)
	if e == nil {
		s.note(c, k.op)
	}
	switch {
	case k.answered:
	case e == nil:
		s.reply(c, k, k.sign(msg.result))
	default:
		s.onFailed(c, k, e)
	}
	// What is said of an older connection changes nothing.
	if e != nil && e.Session != mcpbridge.Alive && msg.conn == s.conn && s.draining == nil {
		s.broke(e)
	}
}

// onFailed answers a call with its failure, or keeps it for the next connection.
func (s *session) onFailed(c actor.Context, k *call, e *mcpbridge.Error) {
	if e.Class == mcpbridge.Cancelled {
		// Nobody but us has cancelled it: when the grace was over.
		e = &mcpbridge.Error{Class: mcpbridge.Lost, Detail: "cut off, because its session was replaced", Sent: true, Err: e}
	}
	k.noteUnread(e)
	again, ask := k.mayRepeat(e)
	if again && e.Class == mcpbridge.Lost {
		k.lost, k.lostIn = e, k.generation
	}
	switch {
	case !again:
		s.reply(c, k, k.explain(e))
	case s.draining == nil:
		k.conn, k.ask = nil, ask
		s.parked.unshift(k)
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
		for k := range s.running.all() {
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
	for k := range s.parked.all() {
		if msg.means(k) {
			s.parked.remove(k)
			s.reply(c, k, k.failure(messages.CodeCancelled, ""))
		}
	}
	for k := range s.running.all() {
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
	if s.asked && s.abort == nil && s.conn == nil && s.draining == nil && s.parked.count == 0 {
		s.proceed(c)
	}
}

// onWoke does what is due, and sets the timer for what comes next.
func (s *session) onWoke(c actor.Context) {
	now := time.Now()
	s.expireParked(c, now)
	for k := range s.running.all() {
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

// expireParked answers the calls that have waited until their deadline. What became
// of one that was lost is known. What the others have waited for before there was a
// connection is the registry's to say.
func (s *session) expireParked(c actor.Context, now time.Time) {
	var calls []*call
	for k := range s.parked.all() {
		if now.Before(k.deadline) {
			s.wakeBy(c, k.deadline)
			continue
		}
		s.parked.remove(k)
		switch {
		case k.ask:
			s.reply(c, k, k.explain(k.lost))
		case s.conn != nil:
			s.reply(c, k, k.failure(messages.CodeDeadline, "while waiting for other calls of the session (MaxInFlight)"))
		default:
			k.answered = true
			calls = append(calls, k)
		}
	}
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
		_, err := ping.perform(ctx, conn)
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
