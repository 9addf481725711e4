package doubt

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

var (
	known           = Session{Now: start, ConnectTimeout: time.Minute, HasID: true, HasList: true, MayRefuse: true, Resumable: true}
	failed          = KindOf("tools/call", "one", refusal(422, 0, true, failedCall))
	failedOtherwise = KindOf("tools/call", "other", refusal(422, 0, true, otherWords))
)

// after returns what is known of a session some time later.
func (s Session) after(d time.Duration) Session {
	s.Now = s.Now.Add(d)
	return s
}

// doubted returns a machine with an inquiry whose checks have been sent, and their step.
func doubted(s Session) (*Machine, *Inquiry, int) {
	m := &Machine{}
	i, _ := m.Refused(s, failed)
	return m, i, m.Take()[1].Step
}

// refusedToo is doubted with checks that are refused, so that a control is to be opened.
func refusedToo(s Session) (*Machine, *Inquiry) {
	m, i, step := doubted(s)
	for _, which := range []Check{Ping, List} {
		m.Answered(s, step, which, &Answer{Refusal: refusal(422, 0, false, otherWords)})
	}
	return m, i
}

// does returns what is to be done.
func does(m *Machine) (all []Do) {
	for _, d := range m.Take() {
		all = append(all, d.Do)
	}
	return all
}

// An answer may come just as the time for it is over.
func TestAnAnswerToTheChecksOfAnEarlierInquirySettlesNothing(t *testing.T) {
	m, first, step := doubted(known)
	s := known.after(checkTimeout)
	m.Wake(s)
	require.True(t, isDone(first))
	s = s.after(PauseMin)
	second, _ := m.Refused(s, failed)
	m.Answered(s, step, List, &Answer{})
	require.False(t, isDone(second))
	require.True(t, m.IsRunning())
}

// A server is not asked for each refusal.
func TestTheNextChecksFollowAfterAPause(t *testing.T) {
	m, first, step := doubted(known)
	m.Answered(known, step, List, &Answer{})
	require.Equal(t, Alive, first.Verdict)
	m.Take()
	_, isAlive := m.Refused(known, failedOtherwise)
	require.False(t, isAlive)
	require.Empty(t, m.Take())
	require.Equal(t, start.Add(paceOther), m.Due())
	m.Wake(known.after(paceOther))
	require.Equal(t, []Do{Stop, Ask, Ask}, does(m))
}

// The server may have restarted behind the front.
func TestTheAnswerOfAFrontEndsWhatIsKnownOfASession(t *testing.T) {
	m, _, step := doubted(known)
	m.Answered(known, step, List, &Answer{})
	_, isAlive := m.Refused(known, failed)
	require.True(t, isAlive)
	m.Front(known, failed, &mcpbridge.Error{Status: 503})
	next, isAlive := m.Refused(known, failed)
	require.False(t, isAlive)
	require.NotNil(t, next)
}

// The server may have forgotten the session after it answered the checks.
func TestARefusalDuringTheChecksIsNotSettledByThem(t *testing.T) {
	m, first, step := doubted(known)
	joined, _ := m.Refused(known, failedOtherwise)
	require.Same(t, first, joined)
	m.Answered(known, step, List, &Answer{})
	_, isAlive := m.Refused(known, failed)
	require.True(t, isAlive)
	next, isAlive := m.Refused(known, failedOtherwise)
	require.False(t, isAlive)
	require.NotNil(t, next)
}

// A verdict may take longer than operations can wait.
func TestAnOperationIsHeldForALimitedTime(t *testing.T) {
	m, i := refusedToo(known)
	held, until, e := m.Admit(known, false)
	require.Same(t, i, held)
	require.Equal(t, start.Add(holdTimeout), until)
	require.Nil(t, e)
	held, _, e = m.Admit(known.after(holdTimeout), false)
	require.Nil(t, held)
	require.Nil(t, e)
	require.True(t, m.IsRunning())
}

// The end of a session does not wait for answers on a second one.
func TestAControlThatOpensAfterTheEndOfTheSessionIsOnlyEnded(t *testing.T) {
	m, i := refusedToo(known)
	require.Contains(t, does(m), Open)
	m.End(known)
	m.Take()
	m.Opened(known, false)
	require.Equal(t, []Do{Stop, Discard}, does(m))
	m.Done(known)
	require.True(t, isDone(i))
}
