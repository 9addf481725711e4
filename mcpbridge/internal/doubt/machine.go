// Package doubt settles whether a server knows a session, after a refusal that may be about the session or about
// something else. [Machine] takes facts and returns decisions. It sends nothing, waits for nothing, and has no clock.
package doubt

import (
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// Machine settles doubt about one session, once for all callers. The caller reports each fact with what it knows of the
// session at that time, then takes the decisions with Take. It calls Wake at the time that Due returns.
//
// A session is unheard from the answer of a front until the server has answered a check. Meanwhile [Machine.Admit]
// lets no operation be sent. The zero Machine has no doubt.
type Machine struct{ memory }

// Take returns the decisions since the last call. They are to be carried out in this order.
func (m *Machine) Take() []Decision {
	decided := m.decided
	m.decided = nil
	return decided
}

// Due returns when to call Wake, or zero.
func (m *Machine) Due() time.Time {
	if m.running == nil {
		return time.Time{}
	}
	return m.running.due
}

// IsRunning reports whether there is an inquiry.
func (m *Machine) IsRunning() bool { return m.running != nil }

// Holds reports whether Admit may have to hold operations back.
func (m *Machine) Holds() bool {
	return m.dead != nil || m.front != nil || m.running != nil && !m.running.holdUntil.IsZero()
}

// Refused notes a refusal in doubt. It returns the inquiry that settles the doubt. It returns nil if the session is
// known to be alive, and then isAlive is true, or if no inquiry may begin now.
func (m *Machine) Refused(s Session, k Kind) (i *Inquiry, isAlive bool) {
	switch {
	case m.dead != nil:
		return m.dead, false
	case s.Now.Before(m.alive[k]):
		return nil, true
	case m.running != nil:
		m.running.later = m.running.later.with(k)
		return m.running, false
	case m.ended, s.HasEnded, m.front == nil && s.Now.Before(m.next):
		return nil, false
	}
	return m.start(s, k), false
}

// Front notes that a front has answered an operation in place of the server, and begins an inquiry. It returns the
// inquiry, or nil.
func (m *Machine) Front(s Session, k Kind, e *mcpbridge.Error) *Inquiry {
	m.noteFront(s, e)
	kinds := Kinds{{}}
	if wire.IsMissing(e.Status) {
		kinds = append(kinds, k)
	}
	switch {
	case m.dead != nil:
		return m.dead
	case m.running != nil:
		m.running.later = m.running.later.with(kinds...)
		return m.running
	case m.ended, s.HasEnded:
		return nil
	}
	return m.start(s, kinds...)
}

// Admit returns no inquiry and no error when an operation may be sent. An inquiry says that it waits, until a time
// that may be zero, and is to be admitted again then. The error says that the operation is not sent. After a check was
// refused, an operation waits for holdTimeout at most. With untilHeard, it also waits while the session is unheard.
func (m *Machine) Admit(s Session, untilHeard bool) (i *Inquiry, until time.Time, e *mcpbridge.Error) {
	i = m.running
	switch {
	case m.dead != nil:
		e = &mcpbridge.Error{Class: mcpbridge.NotSent, Session: mcpbridge.Gone, Withheld: true, Detail: "the server refuses the session"}
		if !s.Resumable {
			e.Session = mcpbridge.Broken
		}
		return nil, until, e
	case m.ended, s.HasEnded:
		return nil, until, nil
	case m.front == nil:
		if i == nil || !s.Now.Before(i.holdUntil) {
			return nil, until, nil
		}
		return i, i.holdUntil, nil
	case !untilHeard:
		return nil, until, &mcpbridge.Error{Class: mcpbridge.Unavailable, Session: mcpbridge.Unheard, Withheld: true, Detail: m.front.Detail, RetryAfter: m.front.RetryAfter}
	case i == nil:
		i = m.start(s, Kind{})
	}
	return i, until, nil
}

// Unheard returns the last answer of a front while the session is unheard, or nil.
func (m *Machine) Unheard() *mcpbridge.Error { return m.front }

// Wait notes that a caller waits for the verdict. An inquiry that meets no server is repeated while one does.
func (m *Machine) Wait() { m.waiting++ }

// Leave notes that a caller does not wait any more.
func (m *Machine) Leave() { m.waiting-- }

// Name adds to the text of a refusal that one server of several may have refused, if that was found for these words.
func (m *Machine) Name(e *mcpbridge.Error) {
	if digest := wire.EvidenceOf(e).Digest; digest != [16]byte{} && digest == m.balanced {
		e.Detail += ": the server knows this session at one time, and not at another: is it balanced without affinity?"
	}
}

// start begins an inquiry.
func (m *Machine) start(s Session, kinds ...Kind) *Inquiry {
	pace := m.pace
	if m.front != nil {
		pace = paceMin
	}
	m.running = &Inquiry{machine: &m.memory, later: kinds, hasID: s.HasID, pace: paceMin, Done: make(chan struct{})}
	i := m.running
	if i.due = m.asked.Add(pace); !s.Now.Before(i.due) {
		i.check(s)
	}
	return i
}

// Attach begins an inquiry into a session that the server may still know. A control decides if the session gives no answer.
func (m *Machine) Attach(s Session) *Inquiry {
	m.running = &Inquiry{machine: &m.memory, state: attaching, kinds: Kinds{{}}, hasID: s.HasID, isAttach: true, Done: make(chan struct{})}
	i := m.running
	i.ask(s, attaching, Ask, attachTimeout, Ping, List)
	return i
}

// End ends the inquiry, after the control if there is one. No other will begin. It returns the inquiry, or nil.
func (m *Machine) End(s Session) *Inquiry {
	m.ended = true
	if m.running != nil {
		m.running.end(s)
	}
	return m.running
}

// Answered notes the answer to a check of a step, or nil if there is none.
func (m *Machine) Answered(s Session, step int, which Check, a *Answer) {
	if i := m.running; i != nil && step == m.step && i.open[which] {
		i.open[which] = false
		i.got[which] = a
		i.answered(s)
	}
}

// Opened notes that the control is open. isSame is true if it has the id of the first session.
func (m *Machine) Opened(s Session, isSame bool) { m.running.opened(s, isSame) }

// NotOpened notes why the control could not be opened.
func (m *Machine) NotOpened(s Session, e *mcpbridge.Error) {
	m.running.Failure = e
	m.running.compared(s, judgeOpening(e))
}

// NotAllowed notes that no control may be opened now.
func (m *Machine) NotAllowed(s Session) { m.running.compared(s, Away) }

// Done notes that the control was ended, or that the end of the session was reported.
func (m *Machine) Done(s Session) {
	switch i := m.running; i.state {
	case discarding:
		i.compared(s, i.Verdict)
	case expiring:
		i.conclude(s, Dead)
	}
}

// Wake notes the time.
func (m *Machine) Wake(s Session) {
	if i := m.running; i != nil && !i.due.IsZero() && !s.Now.Before(i.due) {
		i.wake(s)
	}
}
