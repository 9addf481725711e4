// Package cleanup has the actor that closes leftovers of a key.
package cleanup

import (
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
)

// cleanup is the actor. The registry knows it as a session that drains, takes no calls, and ends when the leftovers are closed,
// or cannot be closed.
//
//	loading ──▶ queued ──grant──▶ closing ──▶ done ──▶ closed
//
// Its state outlives a restart, which only a bug causes.
type cleanup struct {
	contract.Child
	state    func(message any) // the behavior: a method below, from loading to closed
	sessions Sessions
	closes   bool      // leftoversClosed will come
	giveUp   time.Time // when it has waited too long for its grant
	bug      *actors.Fault
	last     contract.SessionClosed // is sent when nothing is left to do
	timer    alarm.Timer            // sends timerFired
	mailbox  mailbox.Mailbox
}

// Props returns the Props of the actor, and its mailbox.
func Props(child contract.Child, sessions Sessions) (*actor.Props, *mailbox.Mailbox) {
	a := &cleanup{Child: child, sessions: sessions, last: contract.SessionClosed{Of: child.Registration}}
	a.mailbox.Parent = a.Registry
	a.timer.Fire = func() { a.mailbox.PostUserMessage(&timerFired{}) }
	return actor.PropsFromProducer(func() actor.Actor { return a }, a.Config.RunsOn(&a.mailbox)...), &a.mailbox
}

// Receive handles lifecycle messages, and gives the rest to the state.
func (a *cleanup) Receive(c actor.Context) {
	defer a.recoverBug(c)
	if a.Config.Probe != nil {
		a.Config.Probe(c)
	}
	switch msg := c.Message().(type) {
	case *actor.Started:
		a.onStarted()
	case *actor.Stopped:
		a.onStopped()
	case *actor.Restarting, *actor.Stopping:
	default:
		a.state(msg)
	}
}

// loading: the record of the store is awaited.
func (a *cleanup) loading(message any) {
	if msg, ok := message.(*recordLoaded); ok {
		a.onRecordLoaded(msg)
	}
}

// queued: the grant is awaited.
func (a *cleanup) queued(message any) {
	switch message.(type) {
	case *contract.Grant:
		a.onGrant()
	case *timerFired:
		a.timer.Fired()
		a.finish(a.sessions.unclosed("it waited too long for its turn to be closed"))
	}
}

// closing: the leftovers are being closed.
func (a *cleanup) closing(message any) {
	switch msg := message.(type) {
	case *leftoversClosed:
		a.finish(msg)
	case *timerFired:
		a.timer.Fired()
	}
}

// done: timerFired is in the mailbox, and the last message is sent after it.
func (a *cleanup) done(message any) {
	if _, ok := message.(*timerFired); ok {
		a.timer.Fired()
		a.close()
	}
}

// closed: the last message was sent, and the registry is about to stop the actor.
func (a *cleanup) closed(any) {}

// onStarted loads the record of the store. After a bug, nothing more is closed, and what is being closed is awaited.
func (a *cleanup) onStarted() {
	if a.giveUp.IsZero() {
		a.giveUp = time.Now().Add(a.Limits.DrainTimeout + a.Limits.CloseTimeout + contract.UnresponsiveAfter)
	}
	switch store := a.Store(); {
	case a.closes:
		a.state = a.closing
	case a.bug != nil:
		a.finish(a.sessions.unclosed(a.bug.Cause.Error()))
	case a.Config.Store == nil:
		a.onRecordLoaded(&recordLoaded{})
	default:
		a.state = a.loading
		a.Config.Async(&a.mailbox, func() any { return &recordLoaded{store.Load()} })
	}
}

// onRecordLoaded asks for a grant, as for a dial. A key without leftovers needs none.
func (a *cleanup) onRecordLoaded(msg *recordLoaded) {
	if a.sessions.keep(msg.record); msg.record != nil {
		a.Generation = max(a.Generation, msg.record.Generation)
	}
	if a.sessions.isEmpty() {
		a.finish(&leftoversClosed{})
		return
	}
	a.state = a.queued
	a.timer.By(a.giveUp)
	a.Registry.PostUserMessage(&contract.DialRequested{Of: a.Registration})
}

// onGrant closes the leftovers.
func (a *cleanup) onGrant() {
	a.state, a.closes = a.closing, true
	sessions, timeout, store, generation := a.sessions, a.Limits.CloseTimeout, a.Store(), a.Generation
	a.Config.Async(&a.mailbox, func() any { return sessions.close(timeout, store, generation) })
}

// finish sends the last message, unless timerFired comes first.
func (a *cleanup) finish(msg *leftoversClosed) {
	a.state, a.closes = a.done, false
	a.last.Leftovers, a.last.CleanedUp = msg.leftovers, msg.count
	if a.timer.Stop() {
		a.close()
	}
}

// close sends the last message.
func (a *cleanup) close() {
	a.state = a.closed
	a.Registry.PostUserMessage(&a.last)
}

// onStopped answers what was not read.
func (a *cleanup) onStopped() {
	a.timer.Stop()
	a.mailbox.Close(func(message any) {
		a.Config.AnswerUnread(actor.UnwrapEnvelopeMessage(message), actor.UnwrapEnvelopeSender(message))
	})
}

// recoverBug recovers from a panic, which is a bug, and restarts the actor. What the message brought is not lost.
func (a *cleanup) recoverBug(c actor.Context) {
	reason := recover()
	if reason == nil {
		return
	}
	contract.About(a.Config.Logger.Error(), a.Key, a.Generation).Type("message", c.Message()).Interface("reason", reason).
		Bytes("stack", debug.Stack()).Msg("session panicked")
	switch msg := c.Message().(type) {
	case *recordLoaded:
		a.sessions.keep(msg.record)
	case *leftoversClosed:
		a.closes = false
	case *timerFired:
		a.timer.Fired()
	case *actor.Stopped:
		a.onStopped()
		return
	case *actor.Restarting, *actor.Stopping:
		return // a panic here would lose the restart, or the stop
	}
	a.bug = contract.BugFault(a.Key, reason)
	contract.Fail(reason)
}
