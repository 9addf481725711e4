package doubt

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/mcpactor/mcpactor/internal/schedule"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

var schedules = schedule.Simulation{Test: "go test ./mcpbridge/internal/doubt", Seeds: 300, Simulate: simulate, Many: 50_000, Crossings: []string{
	"attach: alive", "attach: dead", "attach: unsettled", "verdict: unsettled", "verdict: away", "verdict: alive", "verdict: dead",
	"verdict: late", "a second round", "a control is kept", "a control is ended", "a control is not opened", "a control is not allowed",
	"an answer after its step", "the end while a control opens", "the end while a control is compared", "a front, and dead",
	"a call that acted is lost", "a call is replayed", "a call with its id is replayed", "held", "held while unheard", "balanced", "alive is remembered",
	"a stream is refused", "a stream meets a front",
}}

// TestSimulation runs schedules whose every choice comes from a seed: what the server does and knows, when it answers
// which check, and when time passes.
func TestSimulation(t *testing.T) { schedules.TestSeeds(t) }

func TestSimulationReplaysTapes(t *testing.T) { schedules.TestTapes(t) }

func TestSimulationIsReproducible(t *testing.T) { schedules.TestRepeats(t, 20, 1, func(int) {}) }

// server is a server as the schedule wants it. Its answers say what it knows; it may lie where that is provable.
type server struct {
	knows     bool
	status    int  // with which it refuses a session that it does not know
	own       bool // such a refusal has the id of the request
	noList    bool // it has declared no list
	noPing    bool // it has no ping
	pingsAny  bool // it answers ping on any session
	noListing bool // it refuses the list to every session, like a session that it does not know
	trusting  bool // it answers a session id that was never issued with other words
	balanced  bool // one of its two processes does not know the session
	modest    bool // it opens no second session

	freshUntil time.Time // until then it does not know the session that it has opened
	front      int       // the status of the page with which a front answers, or 0
	limit      bool      // it asks to try again later
	second     bool      // it knows the control
}

// String says how the server is.
func (srv *server) String() string {
	said := fmt.Sprintf("a server that refuses a session that it does not know with %d", srv.status)
	for _, trait := range []struct {
		has   bool
		words string
	}{
		{srv.own, "with the id of the request"},
		{srv.noList, "has no list"},
		{srv.noPing, "has no ping"},
		{srv.pingsAny, "answers ping on any session"},
		{srv.noListing, "refuses the list to every session"},
		{srv.trusting, "refuses an id that was never issued in other words"},
		{srv.balanced, "has two processes, one of which does not know the session"},
		{srv.modest, "opens no second session"},
		{!srv.freshUntil.IsZero(), fmt.Sprintf("knows the session after %v", srv.freshUntil.Sub(start))},
	} {
		if trait.has {
			said += ", " + trait.words
		}
	}
	return said
}

// digests of what the server says.
var (
	unknownSession = [16]byte{1}
	noSuchThing    = [16]byte{2}
	failedCall     = [16]byte{3}
	otherWords     = [16]byte{4}
)

var textOf = map[[16]byte]string{unknownSession: "unknown session", noSuchThing: "no such thing", failedCall: "the call has failed", otherWords: "other words"}

func refusal(status int, code int64, own bool, digest [16]byte) *mcpbridge.Error {
	if status == http.StatusOK && code == 0 {
		code = -32000
	}
	return &mcpbridge.Error{Class: mcpbridge.Invalid, Sent: true, Status: status, Code: code, Own: own, Doubt: true, Err: &wire.Evidence{Digest: digest}}
}

func (m *simulation) frontPage() *mcpbridge.Error {
	return &mcpbridge.Error{Class: mcpbridge.ServerError, Sent: true, Status: m.server.front, Doubt: true, Err: &wire.Evidence{Front: true, Digest: otherWords}}
}

// knowsFirst reports whether the process that takes a request knows the session.
func (m *simulation) knowsFirst() bool {
	if m.now.Before(m.server.freshUntil) || m.server.balanced && m.N(2) == 0 {
		return false
	}
	return m.server.knows
}

// answer is what the server says to a check now.
func (m *simulation) answer(d Decision) *Answer {
	srv := &m.server
	knows := srv.second
	switch d.Do {
	case Ask:
		knows = m.knowsFirst()
	case Unknown:
		knows = false
	}
	switch {
	case d.Check == List && srv.noList:
		return nil
	case srv.front != 0:
		return &Answer{Refusal: m.frontPage()}
	case srv.limit:
		return &Answer{Refusal: &mcpbridge.Error{Class: mcpbridge.RateLimited, Status: http.StatusTooManyRequests}}
	case d.Check == Ping && srv.pingsAny:
		return &Answer{}
	case !knows && d.Do == Unknown && srv.trusting:
		return &Answer{Refusal: refusal(srv.status, 0, srv.own, otherWords)}
	case !knows:
		e := refusal(srv.status, 0, srv.own, unknownSession)
		if wire.IsMissing(srv.status) && !srv.own {
			e.Session = mcpbridge.Gone
		}
		return &Answer{Refusal: e}
	case d.Check == Ping && srv.noPing:
		return &Answer{Refusal: refusal(http.StatusOK, rpc.CodeMethodNotFound, true, noSuchThing)}
	case d.Check == List && srv.noListing:
		return &Answer{Refusal: refusal(srv.status, 0, srv.own, noSuchThing)}
	}
	return &Answer{}
}

// caller is a call that was refused, or an operation that is held. It waits for a verdict.
type caller struct {
	kind  Kind
	said  *mcpbridge.Error // nil: it is held
	acted bool
	until time.Time
	on    *Inquiry
}

// question is a check or an opening on its way.
type question struct {
	Decision
	taken  bool // the server has answered it
	answer *Answer
	failed *mcpbridge.Error
}

type simulation struct {
	*schedule.Run
	now     time.Time
	machine Machine
	server  server
	session Session

	questions []*question
	reports   int // of controls ended, and of the end of the session
	callers   []*caller
	control   bool // there is one, or it is being opened
	opens     bool
	ended     bool

	inquiry   *Inquiry // the last one
	since     time.Time
	unknown   time.Time // when the server last did not know the session
	known     time.Time // when it last knew it
	lied      bool      // the control was refused or forgotten, so that the session is believed alive
	flaps     bool      // a front was away while the control was opened, and then answered only the first session
	meets     bool      // a front has answered since the server was heard, or during the inquiry
	others    bool      // it is about a call that was refused in another way than an unknown session
	wasAway   bool      // the last inquiry has met a front, or could not open a control
	roundAt   time.Time
	proofs    int
	pause     time.Duration // after an inquiry that is unsettled, at most
	pauseEnd  time.Time
	isSettled bool
	late      *Inquiry // the inquiry that found that a fresh session has become known
	alive     map[Kind]time.Time
}

// rarely is true one time in some.
func (m *simulation) rarely(in int) bool { return m.Rarely(2, in) == 1 }

// check notes what does not hold.
func (m *simulation) check(ok bool, kind string, args ...any) {
	if !ok {
		m.Violate(kind, kind, args...)
	}
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// simulate runs one schedule: a server and its faults, calls, and an end after which all is at rest.
func simulate(_ *testing.T, choices *schedule.Tape, actions int, keep bool) (r *schedule.Run) {
	if n, given := choices.Actions(); given {
		actions = n
	}
	m := &simulation{now: start, alive: map[Kind]time.Time{}}
	r = schedule.Begin(choices, keep, func() time.Time { return m.now })
	m.Run = r
	defer func() {
		if reason := recover(); reason != nil {
			m.Logf("%s", debug.Stack())
			m.Violate("a panic", "%v", reason)
		}
	}()
	m.Part()
	m.server = server{
		knows: true, status: []int{400, 404, 401, 422, 503, 200}[m.N(6)], own: m.rarely(2), noList: m.rarely(6), noPing: m.rarely(5),
		pingsAny: m.rarely(5), noListing: m.rarely(6), trusting: m.rarely(4), balanced: m.rarely(12), modest: m.rarely(10), second: true,
	}
	if m.server.status == 200 || m.server.status == 503 {
		m.server.own = true
	}
	if m.rarely(6) {
		m.server.freshUntil = m.now.Add(time.Duration(m.N(2500)) * time.Millisecond)
	}
	m.session = Session{
		ConnectTimeout: 10 * time.Second, HasID: true, HasList: !m.server.noList, MayRefuse: true, Resumable: true,
		MayRefresh: m.rarely(2), IsFresh: !m.server.freshUntil.IsZero(),
	}
	m.Logf("%v", &m.server)
	if m.rarely(4) {
		if m.rarely(2) {
			m.forget()
		}
		m.began(func() *Inquiry { return m.machine.Attach(m.at()) })
	}
	for ; actions > 0 && m.Intact(); actions-- {
		m.Part()
		m.act()
	}
	m.Part()
	m.rest()
	return r
}

// at returns what is known of the session.
func (m *simulation) at() Session {
	s := m.session
	s.Now = m.now
	if m.server.knows && !m.now.Before(m.server.freshUntil) {
		m.known = m.now
	}
	if !m.server.knows || m.server.balanced || m.now.Before(m.server.freshUntil) {
		m.unknown = m.now
	}
	return s
}

func (m *simulation) forget() {
	m.Logf("the server forgets")
	m.lied = m.lied || m.control
	m.server.knows, m.server.second = false, !m.control
}

// act does one of the things that may happen.
func (m *simulation) act() {
	switch m.N(17) {
	case 0:
		if m.rarely(2) {
			m.forget()
		}
	case 1:
		m.server.front = []int{0, 0, 503, 404}[m.N(4)]
		m.flaps = m.flaps || m.control && m.server.front != 0
		m.Logf("the status of the front: %d", m.server.front)
	case 2:
		m.server.limit = m.rarely(4)
		m.Logf("the server asks to try again later: %v", m.server.limit)
	case 3, 4, 5:
		m.call()
	case 6:
		m.admit(m.rarely(2))
	case 7:
		if m.rarely(12) {
			m.end()
		}
	case 8:
		m.pass(time.Duration(m.N(4000)) * time.Millisecond)
	case 9:
		m.pass(time.Duration(m.N(60)) * time.Millisecond)
	case 10:
		if due := m.machine.Due(); !due.IsZero() {
			m.pass(due.Sub(m.now))
		}
	case 11:
		m.report()
	case 16:
		m.stream()
	default:
		m.answerOne()
	}
}

// call sends a call, whose answer comes at once.
func (m *simulation) call() {
	m.at()
	m.session.Begun++
	k := &caller{until: m.now.Add(5 * time.Second)}
	srv := &m.server
	method := []string{"tools/call", "tools/list"}[m.N(2)]
	switch knows := m.knowsFirst(); {
	case srv.front != 0:
		k.said = m.frontPage()
		k.kind = KindOf(method, "", k.said)
		m.Logf("a call meets the front")
		clear(m.alive)
		m.meets = true
		m.began(func() *Inquiry { k.on = m.machine.Front(m.at(), k.kind, k.said); return k.on })
		if k.on == nil || !wire.IsMissing(srv.front) {
			return
		}
		m.machine.Wait()
		m.callers = append(m.callers, k)
		return
	case knows && !m.rarely(4):
		m.session.Succeeded = m.session.Begun
		return
	case knows: // it acts, and refuses what it has done
		k.acted = true
		k.said = refusal(srv.status, 0, srv.own, failedCall)
		if m.rarely(3) {
			k.said.Status = http.StatusConflict
		}
	default:
		k.said = refusal(srv.status, 0, srv.own, unknownSession)
	}
	if k.said.Status == http.StatusOK {
		k.until = m.now.Add(time.Second)
	}
	k.kind = KindOf(method, "", k.said)
	m.Logf("a call is refused; it has acted: %v", k.acted)
	m.ask(k)
}

// stream opens the stream of the session again. The server may refuse that in another way than a call.
func (m *simulation) stream() {
	m.at()
	var e *mcpbridge.Error
	switch srv := &m.server; {
	case srv.front != 0:
		m.Crossed("a stream meets a front")
		e = m.frontPage()
	case m.knowsFirst():
		return
	default:
		m.Crossed("a stream is refused")
		e = refusal([]int{http.StatusBadRequest, http.StatusForbidden, http.StatusInternalServerError}[m.N(3)], 0, false, otherWords)
	}
	m.Logf("the stream is refused: status %d", e.Status)
	m.began(func() *Inquiry { i, _ := m.machine.Refused(m.at(), KindOfOther(http.MethodGet, e)); return i })
}

// ask reports the refusal of a call, which then waits if there is an inquiry.
func (m *simulation) ask(k *caller) {
	isAlive := false
	m.began(func() *Inquiry { k.on, isAlive = m.machine.Refused(m.at(), k.kind); return k.on })
	switch {
	case isAlive:
		m.Crossed("alive is remembered")
		until, ok := m.alive[k.kind]
		m.check(ok && m.now.Before(until), "alive, but not for this refusal")
	case k.on != nil:
		m.check(m.ended || k.on == m.machine.running || k.on == m.machine.dead, "two inquiries")
		m.others = m.others || k.said.Status != m.server.status
		m.machine.Wait()
		m.callers = append(m.callers, k)
	case !m.ended:
		m.check(m.now.Before(m.pauseEnd) && m.machine.front == nil, "no inquiry, and no pause")
	}
}

func (m *simulation) drop(k *caller) {
	m.callers = slices.DeleteFunc(m.callers, func(other *caller) bool { return other == k })
}

// admit asks whether an operation may be sent.
func (m *simulation) admit(untilHeard bool) {
	var i *Inquiry
	var until time.Time
	var e *mcpbridge.Error
	m.began(func() *Inquiry { i, until, e = m.machine.Admit(m.at(), untilHeard); return i })
	m.check(m.machine.Holds() || i == nil && e == nil, "held, although it does not say so")
	switch {
	case e != nil:
		m.check(e.Withheld && (m.machine.dead != nil || m.machine.front != nil), "withheld")
	case i != nil && until.IsZero():
		m.Crossed("held while unheard")
		m.check(m.machine.front != nil, "held without a limit")
		m.machine.Wait()
		m.callers = append(m.callers, &caller{until: m.now.Add(time.Duration(m.N(1000)) * time.Millisecond), on: i})
	case i != nil:
		m.Crossed("held")
		m.check(until.After(m.now) && !until.After(m.now.Add(time.Second)), "held until %v", until.Sub(start))
	}
}

func (m *simulation) end() {
	if m.ended {
		return
	}
	m.Logf("the session ends")
	if i := m.machine.running; i != nil && i.state == opening {
		m.Crossed("the end while a control opens")
	} else if i != nil && (i.state == comparing || i.state == confirming) {
		m.Crossed("the end while a control is compared")
	}
	m.ended = true
	m.machine.End(m.at())
	m.carryOut()
}

// pass lets time pass, with all that is due until then.
func (m *simulation) pass(d time.Duration) {
	for end := m.now.Add(max(0, d)); ; {
		next := end
		if due := m.machine.Due(); !due.IsZero() && due.Before(next) {
			next = due
		}
		for _, k := range m.callers {
			if k.until.Before(next) {
				next = k.until
			}
		}
		if next.After(m.now) {
			m.at()
			m.now = next
		}
		m.machine.Wake(m.at())
		m.carryOut()
		if m.now.Equal(end) || !m.Intact() {
			return
		}
	}
}

// began does what may begin an inquiry, and what follows.
func (m *simulation) began(do func() *Inquiry) {
	before := m.machine.running
	do()
	if i := m.machine.running; i != nil && i != before {
		m.check(before == nil, "two inquiries")
		m.inquiry, m.since, m.lied, m.flaps, m.isSettled = i, m.now, false, false, false
		m.meets, m.others = m.machine.front != nil, false
	}
	m.carryOut()
}

// carryOut does what the machine has decided, and answers those who wait.
func (m *simulation) carryOut() {
	for {
		for _, d := range m.machine.Take() {
			m.decided(d)
		}
		if i := m.inquiry; i != nil && !m.isSettled && isDone(i) {
			m.settled(i)
		}
		if !m.replied() {
			return
		}
	}
}

func isDone(i *Inquiry) bool {
	select {
	case <-i.Done:
		return true
	default:
		return false
	}
}

// decided takes one decision.
func (m *simulation) decided(d Decision) {
	m.Steps++
	if d.Do != Stop {
		m.Logf("%s, step %d", wordsOf(d), d.Step)
	}
	isQuestion := d.Do == Ask || d.Do == Unknown || d.Do == Compare || d.Do == Open
	m.check(!m.ended || !isQuestion, "%s after the end", d.Do)
	if i := m.machine.running; d.Do == Ask && d.Check == Ping && i.state == checking {
		m.check(m.roundAt.IsZero() || m.now.Sub(m.roundAt) >= paceMin, "rounds %v apart", m.now.Sub(m.roundAt))
		if m.machine.front == nil && m.now.Equal(m.since) && !m.wasAway {
			m.check(m.roundAt.IsZero() || m.now.Sub(m.roundAt) >= paceOther, "inquiries %v apart", m.now.Sub(m.roundAt))
		}
		if m.roundAt.After(m.since) {
			m.Crossed("a second round")
		}
		m.roundAt, m.proofs = m.now, 0
	}
	switch d.Do {
	case Unknown:
		m.proofs++
		m.check(m.proofs <= 2, "proof %d in a round", m.proofs)
	case Open:
		m.check(!m.control, "two controls")
		m.control, m.opens, m.server.second = true, true, true
	case Compare:
		m.check(m.control && !m.opens, "no control")
	case Keep:
		m.Crossed("a control is kept")
		m.check(m.control, "no control to keep")
		m.control = false
	case Discard:
		m.Crossed("a control is ended")
		m.check(m.control, "no control to end")
		m.reports++
	case Expire:
		m.reports++
	case Known:
		m.session.IsFresh, m.late = false, m.inquiry
	}
	if isQuestion {
		m.questions = append(m.questions, &question{Decision: d})
	}
}

// report reports that a control was ended, or the end of the session.
func (m *simulation) report() {
	if m.reports > 0 {
		m.reports--
		if m.machine.running.state == discarding {
			m.control = false
		}
		m.machine.Done(m.at())
		m.carryOut()
	}
}

// answerOne lets the server take a question, or lets an answer arrive.
func (m *simulation) answerOne() {
	if len(m.questions) == 0 {
		return
	}
	at := m.N(len(m.questions))
	q := m.questions[at]
	m.at()
	if !q.taken {
		q.taken = true
		if q.Do != Open {
			q.answer = m.answer(q.Decision)
		} else if q.failed = m.opening(); q.failed == nil {
			m.server.second = true
		}
		if m.rarely(2) {
			return
		}
	}
	m.questions = slices.Delete(m.questions, at, at+1)
	if q.Do == Open {
		m.opened(q)
	} else {
		if q.Step != m.machine.step {
			m.Crossed("an answer after its step")
		} else if q.answer != nil && wire.EvidenceOf(q.answer.Refusal).Front {
			m.meets = true
		}
		m.Logf("answer to %s, step %d: %s", wordsOf(q.Decision), q.Step, said(q.answer))
		m.machine.Answered(m.at(), q.Step, q.Check, q.answer)
	}
	m.carryOut()
}

// wordsOf says what is to be done.
func wordsOf(d Decision) string {
	switch check := [...]string{"ping", "list"}[d.Check]; d.Do {
	case Ask:
		return check
	case Unknown:
		return check + " with an id that was never issued"
	case Compare:
		return check + " on the control"
	case Open, Keep, Discard:
		return string(d.Do) + " the control"
	}
	return string(d.Do)
}

func said(a *Answer) string {
	switch {
	case a == nil:
		return "none"
	case a.Refusal == nil:
		return "a result"
	}
	return fmt.Sprintf("status %d, code %d, %q", a.Refusal.Status, a.Refusal.Code, textOf[wire.EvidenceOf(a.Refusal).Digest])
}

// opening returns why the server opens no control, or nil.
func (m *simulation) opening() *mcpbridge.Error {
	switch {
	case m.server.front != 0:
		return &mcpbridge.Error{Class: mcpbridge.Unavailable, Status: m.server.front, Server: mcpbridge.Absent}
	case m.server.modest:
		return &mcpbridge.Error{Class: mcpbridge.Unauthorized, Status: []int{401, 429, 500}[m.N(3)], Server: mcpbridge.Present}
	}
	return nil
}

func (m *simulation) opened(q *question) {
	m.opens = false
	switch {
	case !q.IsFree && m.rarely(8):
		m.Crossed("a control is not allowed")
		m.Logf("no control is allowed")
		m.control = false
		m.machine.NotAllowed(m.at())
	case q.failed != nil:
		m.Crossed("a control is not opened")
		m.Logf("no control is opened: status %d", q.failed.Status)
		m.control, m.lied = false, true
		m.machine.NotOpened(m.at(), q.failed)
	default:
		m.Logf("the control is open")
		m.machine.Opened(m.at(), false)
	}
}

// settled checks the verdict of an inquiry.
func (m *simulation) settled(i *Inquiry) {
	m.isSettled = true
	if i.Verdict == Unsettled && !i.isAttach {
		m.pause = min(max(2*m.pause, PauseMin), PauseMax)
		m.pauseEnd = m.now.Add(m.pause)
	}
	if i.Verdict == Alive {
		m.pause = 0
	}
	m.wasAway = i.Verdict == Away
	m.at()
	name := []string{"unsettled", "away", "alive", "dead", "late"}[i.Verdict]
	m.Logf("verdict: %s", name)
	if i.isAttach {
		m.Crossed("attach: " + name)
	} else {
		m.Crossed("verdict: " + name)
	}
	isHonest := !m.lied && !m.server.pingsAny && !m.server.noListing && !m.server.balanced
	switch i.Verdict {
	case Unsettled:
		refused := func(a *Answer) bool {
			return a.read() == readRefused && wire.EvidenceOf(a.Refusal).Digest == unknownSession
		}
		if !m.ended && !i.isAttach && len(i.again) == 0 && refused(i.round[Ping]) && (m.server.noList || refused(i.round[List])) {
			m.check(m.others && !m.meets, "unsettled, but the server has refused the session")
		}
	case Dead:
		m.check(m.late != i, "dead, but the server knew the session late")
		m.check(m.flaps || !m.unknown.Before(m.since), "dead, but the server knew the session")
		if i.isAway {
			m.Crossed("a front, and dead")
		}
	case Alive:
		m.check(!isHonest || i.isAttach || !m.known.Before(m.since), "alive, but the server did not know the session")
		for _, k := range i.kinds {
			if !i.isAttach {
				m.alive[k] = m.now.Add(AliveFor)
			}
		}
	}
	if m.machine.balanced != [16]byte{} {
		m.Crossed("balanced")
		m.check(m.server.balanced || !m.unknown.IsZero(), "balanced, but the server always knew the session")
	}
}

// replied answers the callers whose inquiry has a verdict, or whose time is over.
func (m *simulation) replied() (any bool) {
	for _, k := range slices.Clone(m.callers) {
		switch isOver := !m.now.Before(k.until); {
		case !slices.Contains(m.callers, k): // it asked again
		case isOver:
			m.machine.Leave()
			m.drop(k)
		case !isDone(k.on):
		case k.said == nil:
			m.machine.Leave()
			m.drop(k)
		case k.on.Verdict == Alive && !wire.EvidenceOf(k.said).Front:
			any = true
			m.machine.Leave()
			m.drop(k)
			m.ask(k)
		default:
			m.machine.Leave()
			m.drop(k)
			e := k.on.Outcome(k.said, false, true)
			m.Logf("the outcome of a call: %s", e.Class)
			switch {
			case e.Class == mcpbridge.Expired || e.Class == mcpbridge.NotSent:
				m.Crossed("a call is replayed")
				if k.said.Own {
					m.Crossed("a call with its id is replayed")
				}
				m.check(!k.acted, "a call that acted is replayed")
			case e.Class == mcpbridge.Lost && k.acted:
				m.Crossed("a call that acted is lost")
			}
		}
	}
	return any
}

// rest stops the faults, and checks that the truth is found in time, and nothing is left.
func (m *simulation) rest() {
	wasEnded := m.ended
	m.server.front, m.server.limit = 0, false
	m.Logf("the faults end")
	isProvable := !m.server.modest && !m.server.balanced && (!m.server.pingsAny || !m.server.noList && !m.server.noListing)
	for end := m.now.Add(PauseMax + AliveFor + 20*time.Second); m.now.Before(end) && m.Intact() && m.machine.dead == nil; {
		if !m.server.knows {
			m.call()
		} else {
			m.admit(true)
		}
		for range 40 {
			m.answerOne()
			m.report()
		}
		m.pass(250 * time.Millisecond)
	}
	m.end()
	for m.machine.running != nil && m.Intact() && (len(m.questions) > 0 || m.reports > 0) {
		m.answerOne()
		m.report()
	}
	m.check(m.machine.running == nil, "an inquiry is left")
	m.check(!m.control, "a control is left")
	isAttachOnly := m.inquiry != nil && m.inquiry.isAttach
	if isProvable && !isAttachOnly && !m.server.knows {
		m.check(m.machine.dead != nil || wasEnded, "the session is dead, and nobody knows")
	}
	if m.server.knows && m.machine.dead == nil {
		m.check(m.machine.front == nil || wasEnded, "the session lives, and is held")
	}
}
