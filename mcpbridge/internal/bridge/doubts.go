package bridge

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/doubt"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// sessionInDoubt is the session that doubts are about.
type sessionInDoubt interface {
	// state returns what is known of the session now.
	state() doubt.Session
	// untilCut returns the context that ends with the session.
	untilCut() context.Context
	// send sends a check on the session, or with a session id that was never issued.
	send(ctx context.Context, do doubt.Do, which doubt.Check) *doubt.Answer
	// open opens a control. Without one and without an error, none may be opened now.
	open(context.Context, doubt.Decision) (control, *mcpbridge.Error)
	// known notes that the server knows the session. expire notes that the session is dead.
	known()
	expire(*mcpbridge.Error)
}

// control is a control, as long as an inquiry uses it.
type control interface {
	send(ctx context.Context, do doubt.Do, which doubt.Check) *doubt.Answer
	isSame() bool // it has the id of the first session
	keep()
	end()
}

// doubts settles whether the server knows a session. It carries out what a [doubt.Machine] decides: it sends checks,
// and reports the answers.
type doubts struct {
	about sessionInDoubt
	// holds is true while admit may have to hold operations back.
	holds atomic.Bool

	mu      sync.Mutex
	machine doubt.Machine
	ctx     context.Context    // of the running inquiry
	leave   func() bool        // from the end of ctx
	step    context.Context    // of the questions of its step
	stop    context.CancelFunc // ends step
	control control            // of the running inquiry, or nil
	due     time.Time          // when Wake is called
	timer   *time.Timer
}

// note reports a fact, and carries out what follows.
func (d *doubts) note(fact func(*doubt.Machine, doubt.Session)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noteIn(d.about.untilCut(), fact)
}

// noteIn is note while the lock is held. An inquiry that begins has the values of ctx, and ends with it.
func (d *doubts) noteIn(ctx context.Context, fact func(*doubt.Machine, doubt.Session)) {
	wasRunning := d.machine.IsRunning()
	fact(&d.machine, d.about.state())
	isRunning := d.machine.IsRunning()
	if isRunning && !wasRunning {
		d.ctx = ctx
		d.step, d.stop = context.WithCancel(ctx)
		d.leave = context.AfterFunc(ctx, func() { d.cut(ctx) })
	}
	for _, decision := range d.machine.Take() {
		d.carryOut(decision)
	}
	if wasRunning && !isRunning {
		d.stop()
		d.leave()
	}
	d.holds.Store(d.machine.Holds())
	d.wakeAt(d.machine.Due())
}

// wakeAt replaces the timer.
func (d *doubts) wakeAt(due time.Time) {
	if due.Equal(d.due) {
		return
	}
	if d.due = due; d.timer != nil {
		d.timer.Stop()
	}
	if !due.IsZero() {
		d.timer = time.AfterFunc(time.Until(due), func() {
			d.note(func(m *doubt.Machine, s doubt.Session) {
				d.due = time.Time{}
				m.Wake(s)
			})
		})
	}
}

// carryOut carries out a decision. The lock is held: what blocks runs in a goroutine.
func (d *doubts) carryOut(decision doubt.Decision) {
	ctx, control := d.step, d.control
	if !decision.MayRefresh {
		ctx = wire.WithoutRefresh(ctx)
	}
	switch decision.Do {
	case doubt.Stop:
		d.stop()
		d.step, d.stop = context.WithCancel(d.ctx)
	case doubt.Ask, doubt.Unknown:
		go d.ask(ctx, d.about, decision)
	case doubt.Compare:
		go d.ask(ctx, control, decision)
	case doubt.Open:
		go d.open(ctx, decision)
	case doubt.Keep:
		control.keep()
	case doubt.Discard:
		go func() {
			control.end()
			d.note((*doubt.Machine).Done)
		}()
	case doubt.Known:
		d.about.known()
	case doubt.Expire:
		go func() {
			d.about.expire(decision.Refusal)
			d.note((*doubt.Machine).Done)
		}()
	}
}

// ask sends a check.
func (d *doubts) ask(ctx context.Context, to interface {
	send(context.Context, doubt.Do, doubt.Check) *doubt.Answer
}, decision doubt.Decision,
) {
	answer := to.send(ctx, decision.Do, decision.Check)
	d.note(func(m *doubt.Machine, s doubt.Session) { m.Answered(s, decision.Step, decision.Check, answer) })
}

// open opens a control.
func (d *doubts) open(ctx context.Context, decision doubt.Decision) {
	ctx, cancel := context.WithDeadline(ctx, decision.Until)
	defer cancel()
	control, e := d.about.open(ctx, decision)
	d.note(func(m *doubt.Machine, s doubt.Session) {
		switch d.control = control; {
		case e != nil:
			m.NotOpened(s, e)
		case control == nil:
			m.NotAllowed(s)
		default:
			m.Opened(s, control.isSame())
		}
	})
}

// cut ends the running inquiry if it is the one that ends with ctx.
func (d *doubts) cut(ctx context.Context) {
	d.note(func(m *doubt.Machine, s doubt.Session) {
		if m.IsRunning() && d.ctx == ctx {
			m.End(s)
		}
	})
}

// end ends the running inquiry, and waits for its end. No other will begin.
func (d *doubts) end(ctx context.Context) {
	var i *doubt.Inquiry
	d.note(func(m *doubt.Machine, s doubt.Session) { i = m.End(s) })
	if i != nil {
		select {
		case <-i.Done:
		case <-ctx.Done():
		}
	}
}

// attach returns whether the server knows a session that is to be resumed. It returns nil if ctx ends first. Then the
// inquiry ends its control in the background.
func (d *doubts) attach(ctx context.Context) (i *doubt.Inquiry) {
	d.mu.Lock()
	d.noteIn(ctx, func(m *doubt.Machine, s doubt.Session) { i = m.Attach(s) })
	d.mu.Unlock()
	select {
	case <-i.Done:
		return i
	case <-ctx.Done():
		return nil
	}
}
