package session

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/callctx"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// park keeps a call until it can run.
func (s *session) park(k *contract.Call) {
	s.calls.Parked.Push(k)
	s.history.openedUnused = false
	s.timer.By(k.ParkedUntil())
}

// startParked runs parked calls, up to MaxInFlight. A call that waits for another call, or for the annotations of its tool, stays
// parked. So does a call past its deadline. All stay parked while the session is unheard.
func (s *session) startParked() {
	if s.unheard.wantsToListen(s.calls.Parked.Count) {
		s.unheard.listening = true
		s.requests.listen(s.conns.Current)
	}
	var now time.Time
	for k := range s.calls.Parked.All() {
		if now.IsZero() {
			now = time.Now()
		}
		if !now.Before(k.Deadline) {
			continue // timerFired is on its way
		}
		if s.calls.Running.Count >= s.limits.MaxInFlight {
			return
		}
		if s.calls.IsBlocked(k) {
			continue
		}
		if k.Run.NeedsHint && !s.decideReplay(k) {
			continue
		}
		if s.unheard.cause != nil {
			return
		}
		s.calls.Parked.Remove(k)
		if s.subscribers.SubscribedByOthers(k.Op) {
			s.subscribers.Record(k.Op)
			k.Run.Generation = s.last.generation
			s.out.reply(k, k.AddReceipt(&messages.Ack{}))
			continue
		}
		if f := s.repetition.refuse(k, s.limits.MaxRepeats, now); f != nil {
			s.out.reply(k, f)
			continue
		}
		s.start(k, now)
	}
}

// start runs a call on the connection.
func (s *session) start(k *contract.Call, now time.Time) {
	ctx := &k.Run.FirstCtx
	if k.Run.Ctx != nil { // a previous run may still read it
		ctx = new(callctx.Context)
	}
	ctx.Init(k, k.Deadline)
	conn := s.conns.Current
	k.Run.Conn, k.Run.Ctx, k.Run.Generation = conn, ctx, s.last.generation
	op, isNew := k.NextRun()
	if k.Run.Task == nil && !isNew { // else the run follows what an earlier one has begun
		if k.Run.Attempts++; k.Run.Attempts == 1 {
			k.Run.Answered.Waited = now.Sub(k.Accepted)
		} else {
			s.out.report(&contract.CallReplayed{Of: s.out.of, Op: k.Op, Attempt: k.Run.Attempts})
		}
	}
	s.calls.Running.Push(k)
	k.Hear(now)
	if at, quiet := k.EndsAt(); quiet {
		s.timer.By(at)
	}
	pause, self, task := k.Pause(s.cfg.Random), &s.mailbox, k.Run.Task
	s.cfg.Dispatcher.Schedule(func() { // not async: each call would have one closure more
		defer ctx.Cancel()
		result, err := k.RunOn(ctx, pause, conn, op, task, self)
		self.PostUserMessage(&callReturned{k, conn, result, err})
	})
}

// maxToolLists is how often the tools are listed on one connection. A list does not count if the tools have changed
// since it was asked for, as those of some servers do right after a session was opened.
const maxToolLists = 3

// decideReplay decides about a parked call that was lost and whose tool may not be
// idempotent. Without the annotations of the tool the call stays parked, and the tools are
// listed for all such calls of the connection.
func (s *session) decideReplay(k *contract.Call) (mayRun bool) {
	safe, known := s.conns.Current.Hint(k.Tool())
	switch {
	case safe && known:
		k.Run.NeedsHint = false
		return true
	case known || s.toolLists == maxToolLists:
		s.calls.Parked.Remove(k)
		s.out.reply(k, k.FailureOf(k.Run.Lost))
	case !s.awaitsTools:
		s.awaitsTools = true
		s.requests.listTools(s.conns.Current, k)
	}
	return false
}

// onToolsListed decides about the calls that wait for the annotations of their tools.
func (s *session) onToolsListed(msg *toolsListed) {
	s.requests.returned()
	e := mcpbridge.AsError(msg.err)
	s.conns.NoteGone(msg.conn, e)
	if msg.conn != s.conns.Current {
		return
	}
	hasEnded := e != nil && e.Session.HasEnded()
	if hasEnded && e.Class == mcpbridge.NotSent {
		s.connectionEnded(e) // the next session lists them
	}
	s.awaitsTools = false
	s.toolLists++
	if e != nil {
		s.toolLists = maxToolLists
	}
	for k := range s.calls.Parked.All() {
		if k.Run.NeedsHint {
			s.decideReplay(k)
		}
	}
	if hasEnded {
		s.connectionEnded(e)
	}
}

// onCallReturned replies to a call, or replays it later. An error that says that the
// connection has ended ends the incarnation.
func (s *session) onCallReturned(msg *callReturned) {
	k := msg.call
	s.calls.Running.Remove(k)
	s.questions.End(k, "the operation has returned")
	e := mcpbridge.AsError(msg.err)
	if e == nil {
		s.subscribers.Record(k.Op)
	}
	s.conns.NoteGone(msg.conn, e)
	if e != nil && e.Session == mcpbridge.Unheard && msg.conn == s.conns.Current {
		s.unheard.begin(e)
		s.out.report(&contract.Unheard{Of: s.out.of, Cause: s.unheard.cause})
	}
	switch {
	case k.Run.Replied:
	case e == nil:
		s.onResult(k, msg)
	default:
		s.onCallFailed(k, e)
	}
	// An error of an older connection does not concern the current one.
	if e != nil && e.Session.HasEnded() && msg.conn == s.conns.Current && s.drainOrder == nil {
		s.connectionEnded(e)
	}
}

// onResult answers a call with its result, or continues its rounds.
func (s *session) onResult(k *contract.Call, msg *callReturned) {
	switch result := msg.result.(type) {
	case *rounds.Asked:
		s.onAsked(k, msg.conn, result)
	case *rounds.Answers:
		k.Run.Rounds = k.Run.Rounds.Answered(result.All)
		s.continueRounds(k)
	default:
		reply := k.AddReceipt(result)
		s.repetition.note(k, s.limits.MaxRepeats, reply)
		s.out.reply(k, reply)
	}
}

// onCallFailed answers a call with its failure, or parks it for a replay.
func (s *session) onCallFailed(k *contract.Call, e *mcpbridge.Error) {
	if e.Class == mcpbridge.Cancelled {
		// The session has cancelled the call, at the end of the grace.
		e = &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Detail: "cancelled, because its session was restarted", Sent: true, Err: e}
	}
	k.NoteUnprocessed(e)
	again, needsHint := k.MayReplay(e)
	if again && e.MayHaveRun() {
		k.Run.Lost = e
	}
	switch {
	case !again:
		f := k.FailureOf(e)
		s.repetition.note(k, s.limits.MaxRepeats, f)
		s.out.reply(k, f)
		if e.Class != mcpbridge.Lost && !e.Begun { // the task is not over, and nobody follows it any longer
			s.cancelTask(k)
		}
	case s.drainOrder == nil:
		k.Run.Conn, k.Run.NeedsHint = nil, needsHint
		s.calls.Parked.PushFront(k)
		s.timer.By(k.ParkedUntil())
	case s.drainOrder.Evict && !needsHint:
		s.out.report(&contract.CallsHandedBack{Of: s.out.of, Calls: []*contract.Call{k}})
	case s.drainOrder.Evict: // the annotations of its tool cannot be listed any more
		s.out.reply(k, k.FailureOf(e))
	default:
		f := k.FailureOf(e)
		f.Code = messages.CodeClosed
		s.out.reply(k, f)
	}
}

// onCancelled answers the calls that match. Those that run are cancelled on the server.
func (s *session) onCancelled(msg *contract.CancelCalls) {
	for k := range s.calls.Parked.All() {
		if msg.Matches(k) {
			s.calls.Parked.Remove(k)
			s.out.reply(k, k.Failure(messages.CodeCancelled, msg.Detail))
			s.cancelTask(k)
		}
	}
	for k := range s.calls.Unanswered() {
		if msg.Matches(k) {
			s.cutOff(k, messages.CodeCancelled, msg.Detail)
		}
	}
}

// cutOff answers a call that runs, and cancels it. The call has CloseTimeout to return.
func (s *session) cutOff(k *contract.Call, code messages.Code, detail string) {
	f := k.Failure(code, detail)
	f.MayHaveRun = true
	s.out.reply(k, f)
	s.questions.EndFailed(k, f)
	s.cancelTask(k)
	k.Run.Ctx.Cancel()
	k.CutOff(time.Now().Add(s.limits.CloseTimeout))
	s.timer.By(k.LastsUntil())
}

// failParked answers all parked calls with a failure. If the server is down, those that watch it stay parked, see
// [contract.Call.Watches].
func (s *session) failParked(cause *mcpbridge.Error, retryAt time.Time) {
	isDown := cause.Class == mcpbridge.Unavailable && cause.Server == mcpbridge.Absent
	for _, k := range s.calls.Parked.Take() {
		if isDown && k.Watches() {
			s.calls.Parked.Push(k)
			continue
		}
		f := k.Unavailable(cause)
		contract.RetryIn(f, max(f.RetryAfter, time.Until(retryAt)))
		s.out.reply(k, f)
	}
}

// onAsked asks the questions with which the server has answered a call, or parks the call for its next round if there are none.
func (s *session) onAsked(k *contract.Call, conn dial.Conn, asked *rounds.Asked) {
	switch step, e := k.Asks(asked); step {
	case rounds.GiveUp:
		s.out.reply(k, k.FailureOf(e))
	case rounds.Send:
		s.continueRounds(k)
	case rounds.Ask:
		s.ask(k, conn, asked)
	}
}

// ask asks the questions. The call runs meanwhile, and on no connection.
func (s *session) ask(k *contract.Call, conn dial.Conn, asked *rounds.Asked) {
	ctx := new(callctx.Context) // the run before may still read its own
	ctx.Init(k, k.Deadline)
	k.Run.Conn, k.Run.Ctx = nil, ctx
	s.calls.Running.Push(k)
	k.Hear(time.Now())
	if at, quiet := k.EndsAt(); quiet {
		s.timer.By(at)
	}
	self := &s.mailbox
	s.cfg.Dispatcher.Schedule(func() {
		defer ctx.Cancel()
		result, err := k.Ask(ctx, conn, asked)
		self.PostUserMessage(&callReturned{k, nil, result, err})
	})
}

// continueRounds parks a call whose questions are answered: the next round is sent in the ready state, or on the next connection.
// A session that drains sends it at once, on the connection that is still open.
func (s *session) continueRounds(k *contract.Call) {
	switch {
	case s.drainOrder == nil:
		k.Run.Conn = nil
		s.calls.Parked.PushFront(k)
		s.timer.By(k.ParkedUntil())
	case s.conns.Current != nil && s.conns.Closing == nil:
		s.start(k, time.Now())
	case s.drainOrder.Evict:
		s.out.report(&contract.CallsHandedBack{Of: s.out.of, Calls: []*contract.Call{k}})
	default:
		s.out.reply(k, k.ClosedWhileParked())
	}
}
