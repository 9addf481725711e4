package doubt

import (
	"net/http"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

const (
	// proofTimeout is how long a server may take to answer a check with an id that was never issued.
	proofTimeout = time.Second
	// holdTimeout is how long calls that are not sent yet wait for the verdict after a check was refused.
	holdTimeout = time.Second
	// AliveFor is how long the verdict holds that a refusal is not about the session.
	AliveFor = 30 * time.Second
	// PauseMin is the pause after the first inquiry that has remained unsettled.
	PauseMin = time.Second
	// PauseMax bounds the pause between two inquiries.
	PauseMax = 30 * time.Second
	// PaceMax bounds the time between two rounds of checks while the server is away. paceMin is the first such time.
	PaceMax = time.Second
	paceMin = 100 * time.Millisecond
	// paceOther is the time between two rounds of checks otherwise.
	paceOther = time.Second
	// awayLimit is how long the server must be away before a control is opened.
	awayLimit = 2 * time.Second
	// attachTimeout is how long a server may take to answer on a session that is to be resumed. Then a control is opened.
	attachTimeout = time.Second
	// leastWait is the least time that each of the two sessions has to answer while the server is away.
	leastWait = 500 * time.Millisecond
)

// memory is what a [Machine] knows between inquiries.
type memory struct {
	decided []Decision
	ended   bool
	running *Inquiry           // nil while there is none
	dead    *Inquiry           // the inquiry that has found the session dead, or nil
	alive   map[Kind]time.Time // until when a kind of refusal is known not to be about the session
	next    time.Time          // when the next inquiry may begin
	pause   time.Duration      // the pause after the last inquiry
	asked   time.Time          // when the last checks began
	pace    time.Duration      // the least time after them until the next inquiry checks, if no front has answered
	waiting int                // how many callers wait for a verdict
	step    int                // the number of the last step of an inquiry

	front    *mcpbridge.Error // the last answer of a front; nil while the server is heard
	fronts   int              // how many answers of fronts there were
	since    time.Time        // when the first of them answered since the server was heard
	balanced [16]byte         // the digest of a refusal that one server of several gives, or zero
}

// noteFront notes what a front has answered.
func (m *memory) noteFront(s Session, e *mcpbridge.Error) {
	if m.front == nil {
		m.since = s.Now
	}
	m.front = e
	m.fronts++
	m.alive = nil
}

// Inquiry settles doubt for all callers that wait for its verdict, by checks and a control. Each state but the first
// and the last three waits for the answers to the checks of one step.
//
//	pausing ──▶ checking ───────── a result ────────────────▶ balancing ──▶ alive
//	   ▲           ├────────────── gone ────────────────────▶ expiring ───▶ dead
//	   └─ away ────┤
//	               │ refused alike, or away for long          (also from attaching)
//	               ▼
//	            proving ──▶ freshening ── known ──▶ reproving ──▶ late
//	                           │
//	            rechecking ◀───┴──▶ opening ──▶ comparing ──▶ confirming
//	            (without an id)        │                          │
//	                                   └── refused: alive         ├─ dead ──▶ reproving ──▶ expiring
//	                                                              └─ else ──▶ discarding ──▶ alive, or unsettled
//
// The checks are a ping and one page of a list, on the session itself. The control is a second session, on
// which they are repeated. Then they are repeated on the first session, so that a temporary refusal does
// not count. See the documentation of package mcpbridge.
type Inquiry struct {
	Done    chan struct{}    // closed when there is a verdict
	Verdict Verdict          // set before Done is closed, as are the fields below
	Failure *mcpbridge.Error // why the control could not be opened
	Refusal *mcpbridge.Error // of the last check of an attempt to attach

	machine  *memory
	hasID    bool
	isAttach bool
	kinds    Kinds              // of the refusals before the last round
	later    Kinds              // of the refusals since then
	refused  []*mcpbridge.Error // the refusals of checks that show that the session is dead
	unknown  []*mcpbridge.Error // the refusals of checks with an id that was never issued

	state  state
	due    time.Time // when the step is over, or its checks are to be repeated
	do     Do        // how the checks of the step are sent
	checks []Check   // of the step
	open   [2]bool   // which of them have no answer yet
	got    Answers   // to the checks of the step
	tries  int       // how often they were sent
	rests  bool      // they are to be repeated
	rest   time.Duration
	limit  time.Duration // for the answers

	began      uint64        // how many operations had begun when the round did
	fronts     int           // memory.fronts then
	mixed      int           // how often a front answered one check, and the server the other
	pace       time.Duration // the time before the next round
	least      time.Duration // the least such time
	holdUntil  time.Time     // until when operations that are not sent yet wait for the verdict
	isAway     bool          // the server has been away for long
	round      Answers       // to the checks of the round
	again      []Check       // the checks to be repeated on the control
	freshEnd   time.Time     // when a fresh session is no longer waited for
	balance    balance
	balanceEnd time.Time // when balance is no longer looked for

	opening       time.Time // when the control was wanted
	controlEnd    time.Time // when the comparison is over
	isSame        bool      // the control has the id of the first session
	first, second Answers   // to the repeated checks
}

type state uint8

const (
	pausing    state = iota // before a round
	checking                // a round
	attaching               // as checking, on a session that is to be resumed
	proving                 // a check with an id that was never issued
	freshening              // the checks on a fresh session, again and again
	rechecking              // the refused checks on a session without an id: the control may take its place
	opening                 // the control
	comparing               // the refused checks on the control
	confirming              // the refused checks on the session
	reproving               // as proving, for refusals with the ids of requests: now the server is known to work
	balancing               // a check, until it is known whether one of several servers refuses it
	discarding              // the control
	expiring                // until the end of the session is reported
)

// over continues when a step is over: its answers are enough, or its time has ended.
func (i *Inquiry) over(s Session) {
	i.stop()
	got := i.got
	switch i.state {
	case pausing:
		i.check(s)
	case checking:
		i.judge(s, got)
	case attaching:
		i.judgeAttach(s, got)
	case proving:
		i.noteProof(got)
		i.proved(s)
	case freshening:
		i.judgeFresh(s, got)
	case rechecking:
		if i.first = got; slices.ContainsFunc(got[:], (*Answer).isKnown) {
			i.compared(s, Alive)
			return
		}
		i.openControl(s)
	case comparing:
		i.judgeSecond(s, got)
	case confirming:
		if i.isAway || !i.persist(s, got) {
			i.first = got
			i.judgeControl(s)
		}
	case reproving:
		i.noteProof(got)
		i.found(s, i.Verdict)
	case balancing:
		i.judgeBalance(s, got)
	}
}

// end ends the inquiry. A control that is being opened or ended is waited for.
func (i *Inquiry) end(s Session) {
	i.stop()
	switch i.state {
	case opening, discarding, expiring:
	case comparing, confirming:
		i.discard(Unsettled)
	case reproving, balancing:
		i.found(s, i.Verdict)
	default:
		i.conclude(s, Unsettled)
	}
}

// ask sends the checks of a step.
func (i *Inquiry) ask(s Session, is state, do Do, limit time.Duration, checks ...Check) {
	if i.state != is {
		i.tries, i.rest = 0, 0
	}
	i.machine.step++
	i.state, i.do, i.limit, i.checks, i.got, i.rests = is, do, limit, checks, Answers{}, false
	i.tries++
	i.setDue(s, limit)
	for _, which := range checks {
		i.open[which] = true
		i.decide(Decision{Do: do, Check: which, MayRefresh: is == attaching && s.MayRefresh && i.tries == 1})
	}
}

// repeat sends the checks of the step once more after a rest.
func (i *Inquiry) repeat(s Session, rest time.Duration) {
	i.rests, i.rest = true, rest
	i.setDue(s, rest)
}

func (i *Inquiry) setDue(s Session, d time.Duration) {
	i.due = s.Now.Add(d)
	if !i.controlEnd.IsZero() && i.controlEnd.Before(i.due) {
		i.due = i.controlEnd
	}
}

// persist repeats the checks of a step if a front answers: behind it there may be several servers, one of which is away.
func (i *Inquiry) persist(s Session, got Answers) bool {
	if !got.meetsFront() || i.tries == persistence || !s.Now.Add(persistPause).Before(i.controlEnd) {
		return false
	}
	i.repeat(s, persistPause)
	return true
}

func (i *Inquiry) decide(d Decision) {
	d.Step = i.machine.step
	i.machine.decided = append(i.machine.decided, d)
}

// stop ends the questions of the step. Answers that come later are not believed.
func (i *Inquiry) stop() {
	i.decide(Decision{Do: Stop})
	i.machine.step++
	i.open, i.due = [2]bool{}, time.Time{}
}

// wake is called at the time due.
func (i *Inquiry) wake(s Session) {
	isOver := !i.controlEnd.IsZero() && !s.Now.Before(i.controlEnd)
	if i.rests && !isOver {
		i.ask(s, i.state, i.do, i.limit, i.checks...)
		return
	}
	i.over(s)
}

// answered is called when there is another answer to the checks of the step. Once one is refused, the others have only
// halfTimeout.
func (i *Inquiry) answered(s Session) {
	enough, half := false, false
	switch i.state {
	case checking:
		f := i.got.judge(i.isAlike, s.HasList)
		enough, half = f.verdict != Unsettled, len(f.again) > 0
	case attaching:
		f := i.got.judgeAttach(s.HasList)
		half = i.got[Ping].isKnown() && i.got[List] == nil && s.HasList
		enough = f.verdict != Unsettled && !half
		half = half || f.away || len(f.again) > 0
	}
	switch due := s.Now.Add(halfTimeout); {
	case enough, i.open == [2]bool{}:
		i.over(s)
	case half && due.Before(i.due):
		i.due = due
	}
}

// check begins a round. On an unheard session the checks get less time.
func (i *Inquiry) check(s Session) {
	m := i.machine
	i.kinds, i.later = i.kinds.with(i.later...), nil
	i.refused, i.unknown, i.isAway = nil, nil, false // a front may have answered in an earlier round
	i.began, i.fronts, m.asked = s.Begun, m.fronts, s.Now
	limit := checkTimeout
	if m.front != nil {
		limit = awayLimit
	}
	i.ask(s, checking, Ask, limit, Ping, List)
}

// judge judges a round.
func (i *Inquiry) judge(s Session, got Answers) {
	i.round = got
	f := got.judge(i.isAlike, s.HasList)
	switch i.again = f.again; {
	case s.Succeeded > i.began, f.verdict == Alive:
		i.findBalance(s)
	case f.verdict == Dead:
		for _, a := range got {
			if a.read() == readGone {
				i.refused = append(i.refused, a.Refusal)
			}
		}
		i.found(s, Dead)
	case f.away, got == Answers{} && i.machine.front != nil:
		i.whileAway(s)
	case len(f.again) == 0:
		i.found(s, i.withoutAnswer())
	default:
		if s.Resumable {
			i.holdUntil = s.Now.Add(holdTimeout)
		}
		i.gather(s)
	}
}

// whileAway opens a control when the server has been away for long: what looks like a front may be the server, which
// refuses the session.
func (i *Inquiry) whileAway(s Session) {
	i.again = nil
	for which, a := range i.round {
		if a.read() == readAway {
			i.machine.noteFront(s, a.Refusal)
			i.fronts++
		}
		i.again = append(i.again, Check(which))
	}
	switch i.isAway = true; {
	case s.Now.Sub(i.machine.since) < awayLimit:
		i.found(s, Away)
	case !s.Resumable:
		i.settled(s, judgePlain(i.round, i.again, i.allKinds().areAboutLists()))
	default:
		i.gather(s)
	}
}

// withoutAnswer returns what follows from checks that were neither answered nor refused like a call. A front, a limit
// of the server and silence may be temporary: after them the pause does not grow.
func (i *Inquiry) withoutAnswer() Verdict {
	got, m := i.round, i.machine
	switch {
	case got.meetsFront():
		if i.mixed++; i.mixed < persistence { // the server may be back between two requests
			return Away
		}
		m.pause = 0
	case got.meetsLimit() && m.front == nil:
		i.least = paceOther
		return Away
	case got.meetsLimit(), got.areSilent():
		m.pause = 0
	}
	return Unsettled
}

// gather notes the refusals of checks, for the case that the session is dead. For a refusal without the id of its
// request, it asks for proof before there is a second session: some servers refuse with other words while they have one.
func (i *Inquiry) gather(s Session) {
	for _, which := range i.again {
		if a := i.round[which]; a != nil && a.Refusal != nil {
			i.refused = append(i.refused, a.Refusal)
		}
	}
	if !i.prove(s, proving, false) {
		i.proved(s)
	}
}

// prove sends a check with a session id that was never issued, if the check was refused in the words of a call. own
// says whether it looks for a refusal with the id of its request. For such refusals it is called after the control,
// when the server is known to work.
func (i *Inquiry) prove(s Session, is state, own bool) bool {
	for _, which := range i.again {
		if a := i.round[which]; i.hasID && a != nil && a.Refusal != nil && a.Refusal.Own == own && a.Refusal.Status < 500 && i.allKinds().haveWordsOf(a.Refusal) {
			i.ask(s, is, Unknown, proofTimeout, which)
			return true
		}
	}
	return false
}

func (i *Inquiry) noteProof(got Answers) {
	for _, a := range got {
		if a != nil && a.Refusal != nil {
			i.unknown = append(i.unknown, a.Refusal)
		}
	}
}

// proved continues when the proof is there, or is not needed.
func (i *Inquiry) proved(s Session) {
	switch {
	case !s.Resumable:
		i.settled(s, judgePlain(i.round, i.again, i.allKinds().areAboutLists()))
	case i.isAway:
		i.control(s)
	case s.IsFresh:
		i.state, i.do, i.limit, i.checks, i.tries = freshening, Ask, checkTimeout, []Check{Ping, List}, 0
		i.freshEnd = s.Now.Add(wire.FreshLimit)
		i.repeat(s, wire.FreshInterval)
	default:
		i.notFresh(s)
	}
}

// judgeFresh continues with a session that has answered nothing since initialize: its server may not know it yet.
func (i *Inquiry) judgeFresh(s Session, got Answers) {
	for which, a := range got {
		if a.isKnown() && i.round[which].read() == readRefused {
			i.decide(Decision{Do: Known})
			if haveSameCredentials(a, i.round[which]) {
				i.settled(s, Late)
			} else {
				i.notFresh(s)
			}
			return
		}
	}
	rest := min(2*i.rest, wire.FreshLimit/5)
	if !s.Now.Add(rest).Before(i.freshEnd) {
		i.notFresh(s)
		return
	}
	i.repeat(s, rest)
}

func (i *Inquiry) notFresh(s Session) {
	if s.Succeeded > i.began {
		i.settled(s, Alive)
		return
	}
	i.control(s)
}

// control compares with a second session. Without ids, a server may replace the first session by the second,
// so that the first is asked before.
func (i *Inquiry) control(s Session) {
	i.controlEnd = s.Now.Add(s.ConnectTimeout)
	i.first, i.second, i.isSame = Answers{}, Answers{}, false
	if !i.hasID {
		i.ask(s, rechecking, Ask, checkTimeout, i.again...)
		return
	}
	i.openControl(s)
}

func (i *Inquiry) openControl(s Session) {
	i.state, i.opening = opening, s.Now
	i.decide(Decision{Do: Open, IsAway: i.isAway && !i.isAttach, IsFree: i.isAttach, Until: i.controlEnd})
}

// opened repeats the refused checks on the control.
func (i *Inquiry) opened(s Session, isSame bool) {
	if i.isSame = isSame; i.machine.ended {
		i.discard(Unsettled)
		return
	}
	limit := checkTimeout
	if i.isAway {
		limit = min(limit, max(leastWait, 2*s.Now.Sub(i.opening)))
	}
	i.ask(s, comparing, Compare, limit, i.again...)
}

// judgeSecond continues with the answers of the control.
func (i *Inquiry) judgeSecond(s Session, got Answers) {
	if i.persist(s, got) {
		return
	}
	switch i.second = got; {
	case !i.hasID || got == Answers{}:
		i.judgeControl(s)
	case i.isSame: // the second session has replaced the first, so that the earlier refusals count
		i.first = i.round
		i.judgeControl(s)
	default:
		i.ask(s, confirming, Ask, i.limit, i.again...)
	}
}

// judgeControl keeps the control if the first session is dead, and else ends it.
func (i *Inquiry) judgeControl(s Session) {
	v := i.round.judgeControl(i.again, i.second, i.first)
	switch {
	case v != Dead:
		i.discard(v)
	case !s.Now.Before(i.controlEnd):
		i.discard(Unsettled)
	default:
		i.decide(Decision{Do: Keep})
		i.compared(s, Dead)
	}
}

func (i *Inquiry) discard(v Verdict) {
	i.stop()
	i.state, i.Verdict = discarding, v
	i.decide(Decision{Do: Discard})
}

// compared continues when the control has ended, is kept, or was not opened.
func (i *Inquiry) compared(s Session, v Verdict) {
	i.controlEnd = time.Time{}
	switch {
	case i.machine.ended:
		i.conclude(s, Unsettled)
	case i.isAttach:
		i.comparedAttach(s, v)
	default:
		i.settled(s, v)
	}
}

// settled continues with the verdict of the comparison.
func (i *Inquiry) settled(s Session, v Verdict) {
	i.Verdict = v
	switch {
	case i.isAway && (v == Unsettled || v == Dead && !s.MayRefuse): // without sessions, the server has come back meanwhile
		i.found(s, Away)
	case i.isAway:
		i.found(s, v)
	case v == Dead || v == Late:
		if !i.prove(s, reproving, true) {
			i.found(s, v)
		}
	case v == Alive:
		i.findBalance(s)
	case v == Unsettled && i.round.meetsFront():
		i.found(s, Away)
	default:
		i.found(s, v)
	}
}

// judgeAttach judges the checks on a session that is to be resumed. They are repeated if they may have refreshed the
// credentials. Without an answer the control decides. So a dial fails only if no new session can be opened.
func (i *Inquiry) judgeAttach(s Session, got Answers) {
	f := got.judgeAttach(s.HasList)
	if f.verdict == Unsettled && s.MayRefresh && i.tries == 1 {
		i.ask(s, attaching, Ask, attachTimeout, Ping, List)
		return
	}
	isGone := false
	for _, a := range got {
		if a != nil && a.Refusal != nil && !isGone {
			i.Refusal, isGone = a.Refusal, a.read() == readGone
		}
	}
	switch i.round, i.again = got, f.again; {
	case isGone:
		i.conclude(s, Dead)
	case f.verdict == Alive:
		i.conclude(s, Alive)
	case i.Refusal != nil && i.Refusal.Class == mcpbridge.RateLimited:
		i.conclude(s, Unsettled)
	default:
		if len(i.again) == 0 {
			i.again = []Check{Ping, List}
		}
		i.isAway = true
		i.control(s)
	}
}

// comparedAttach concludes with what the control has shown. Silence ends no session: a server that opens another may
// only be slow to answer checks, so that the first session is used, and the next refusal is in doubt.
func (i *Inquiry) comparedAttach(s Session, v Verdict) {
	switch {
	case v == Dead:
	case i.round[Ping].isKnown(), v == Alive && (i.Failure == nil || i.Failure.Class != mcpbridge.Unauthorized):
		v = Alive
	case v == Unsettled && i.Failure == nil && i.round.areSilent():
		v = Alive
	default:
		v = Unsettled
	}
	i.conclude(s, v)
}

// findBalance repeats the checks that were refused like a call, although the server knows the session.
func (i *Inquiry) findBalance(s Session) {
	i.Verdict, i.again = Alive, nil
	if i.allKinds().haveStatus(http.StatusBadRequest) {
		for which, a := range i.round {
			isOpen := a == nil && Check(which) == Ping // the answer to the list came first
			if isOpen || a.refusesLike(i.allKinds()) {
				i.again = append(i.again, Check(which))
			}
		}
	}
	i.balanceEnd = s.Now.Add(halfTimeout)
	i.nextBalance(s)
}

func (i *Inquiry) nextBalance(s Session) {
	if len(i.again) == 0 {
		i.found(s, Alive)
		return
	}
	i.balance = balance{wasRefused: i.round[i.again[0]] != nil}
	i.ask(s, balancing, Ask, i.balanceEnd.Sub(s.Now), i.again[0])
}

func (i *Inquiry) judgeBalance(s Session, got Answers) {
	which := i.again[0]
	named, again := i.balance.next(got[which], i.allKinds())
	switch {
	case named != nil:
		i.machine.balanced = wire.EvidenceOf(named).Digest
		i.found(s, Alive)
	case again && s.Now.Before(i.balanceEnd):
		i.ask(s, balancing, Ask, i.balanceEnd.Sub(s.Now), which)
	default:
		i.again = i.again[1:]
		i.nextBalance(s)
	}
}

// found concludes with a verdict. It begins another round instead if the server is away and somebody waits.
func (i *Inquiry) found(s Session, v Verdict) {
	i.Verdict = v
	switch m := i.machine; {
	case v == Away && m.waiting > 0 && !m.ended:
		i.state = pausing
		i.due = s.Now.Add(max(i.pace, i.least))
		i.pace = min(2*i.pace, PaceMax)
	case v == Dead && i.expire(s):
	default:
		i.conclude(s, v)
	}
}

// expire reports that the session is dead, if the server has said so, or if sessions outlive their connections.
func (i *Inquiry) expire(s Session) bool {
	e := &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Sent: true, Detail: "the server refuses this session, and answers another"}
	if at := slices.IndexFunc(i.refused, func(e *mcpbridge.Error) bool { return e.Session == mcpbridge.Gone }); at >= 0 {
		e = i.refused[at]
	} else if !s.Resumable {
		return false
	}
	i.state = expiring
	i.decide(Decision{Do: Expire, Refusal: e})
	return true
}

// conclude ends the inquiry with a verdict, for all who wait.
func (i *Inquiry) conclude(s Session, v Verdict) {
	m := i.machine
	i.Verdict, m.running, m.pace = v, nil, paceOther
	close(i.Done)
	if i.isAttach {
		return
	}
	if m.fronts == i.fronts && v != Away {
		m.front = nil
	}
	switch v {
	case Dead:
		m.dead = i
	case Unsettled:
		m.pause = min(max(2*m.pause, PauseMin), PauseMax)
		m.next = s.Now.Add(m.pause)
	case Away:
		m.pace = max(paceMin, i.least)
	case Late:
		m.pause, m.next = 0, time.Time{}
	case Alive:
		m.pause, m.next = 0, time.Time{}
		if m.alive == nil || len(m.alive) > maxKinds {
			m.alive = map[Kind]time.Time{}
		}
		for _, k := range i.kinds {
			m.alive[k] = s.Now.Add(AliveFor)
		}
	}
}

// allKinds returns the kinds of the refusals that the inquiry is about.
func (i *Inquiry) allKinds() Kinds { return slices.Concat(i.kinds, i.later) }

// isAlike reports whether the refusal of a check is like those that the inquiry is about. After the answer of a front any
// refusal is: the server may have restarted since they came.
func (i *Inquiry) isAlike(e *mcpbridge.Error) bool {
	return i.machine.front != nil || i.mixed > 0 || i.allKinds().haveLike(e)
}
