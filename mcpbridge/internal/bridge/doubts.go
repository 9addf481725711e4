package bridge

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

const (
	// proofTimeout is how long a server may take to answer a check with an id that was never issued.
	proofTimeout = time.Second
	// holdTimeout is how long calls that are not sent yet wait for the verdict after a check was refused.
	holdTimeout = time.Second
	// aliveFor is how long the verdict holds that a refusal is not about the session.
	aliveFor = 30 * time.Second
	// pauseMin and pauseMax bound the pause between two inquiries after the first has remained unsettled.
	// paceOther is the time between two rounds of checks otherwise.
	pauseMin, pauseMax = time.Second, 30 * time.Second
	paceOther          = time.Second
	// paceMin and paceMax bound the time between two rounds of checks while the server is away.
	paceMin, paceMax = 100 * time.Millisecond, time.Second
	// awayLimit is how long the server must be away before a control is opened.
	awayLimit = 2 * time.Second
)

// subject is the session that doubts are about.
type subject interface {
	// mayRefuse reports whether a refusal can be about the session.
	mayRefuse() bool
	// isResumable reports whether the server keeps the session without its connection.
	isResumable() bool
	// hasList reports whether the server has declared a list.
	hasList() bool
	// operations returns how many operations have begun. succeededSince reports whether an operation that
	// began after such a count had a result.
	operations() uint64
	succeededSince(count uint64) bool
	// untilCut returns the context that ends with the session.
	untilCut() context.Context
	// runChecks runs checks at the same time, until the answers are enough, or a time is over.
	runChecks(ctx context.Context, limit time.Duration, isEnough func(answers) (enough, half bool), checks ...check) answers
	// becomesKnown repeats the checks on a fresh session, and reports whether the server knows the session at last.
	becomesKnown(context.Context, answers) bool
	// control repeats the refused checks on a second session, and compares the answers. isAway is true if
	// the server has not answered on this session.
	control(ctx context.Context, got answers, again []check, isAway bool) verdict
	// repeat runs one check.
	repeat(context.Context, check) *answer
	// hasID reports whether the session has an id.
	hasID() bool
	// asUnknown runs a check with a session id that was never issued, and returns the refusal, or nil.
	asUnknown(context.Context, check) *mcpbridge.Error
	// expire notes that the session is dead.
	expire(*mcpbridge.Error)
}

// doubts settles whether the server knows a session, after a refusal that may be about the
// session or about something else. It does so once for all callers, by requests that change nothing.
//
//	refusal in doubt ───checks───▶ result: alive
//	                    ▲     ├──▶ refused alike ──control──▶ answers: dead
//	                    │     │                          └──▶ else: alive
//	                    │     ├──▶ the server is away: again, for as long as anybody waits
//	                    └─────┘
//	                          └──▶ anything else: unsettled
//
// The checks are a ping and one page of a list, on the session itself. The control is a second session, on
// which they are repeated. Then they are repeated on the first session, so that a temporary refusal does
// not count. See the documentation of package mcpbridge.
//
// A session is unheard from the answer of a front until the server has answered a check. Meanwhile
// [doubts.admit] lets no operation be sent.
type doubts struct {
	about subject
	// holds is true while admit may have to hold operations back.
	holds   atomic.Bool
	balance balance

	mu      sync.Mutex
	ended   bool
	running *inquiry           // nil while there is none
	cancel  context.CancelFunc // ends running
	dead    *inquiry           // the inquiry that has found the session dead, or nil
	alive   map[kind]time.Time // until when a kind of refusal is known not to be about the session
	next    time.Time          // when the next inquiry may begin
	pause   time.Duration      // the pause after the last inquiry
	asked   time.Time          // when the last checks began
	waiting int                // how many callers wait for a verdict
	until   time.Time          // until when operations that are not sent yet wait for the verdict

	front  *mcpbridge.Error // the last answer of a front; nil while the server is heard
	fronts int              // how many answers of fronts there were
	since  time.Time        // when the first of them answered since the server was heard
}

// noteFront notes what a front has answered. The lock is held.
func (d *doubts) noteFront(e *mcpbridge.Error) {
	if d.front == nil {
		d.since = time.Now()
	}
	d.front = e
	d.fronts++
	d.alive = nil
	d.holds.Store(true)
}

// inquire returns the inquiry that settles doubt about a kind of refusal. It begins one if need be. It returns nil
// if the session is known to be alive, and then isAlive is true, or if no inquiry may begin now.
func (d *doubts) inquire(k kind) (i *inquiry, isAlive bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	switch {
	case d.dead != nil:
		return d.dead, false
	case now.Before(d.alive[k]):
		return nil, true
	case d.running != nil:
		d.running.later = d.running.later.with(k)
		return d.running, false
	case d.ended, now.Before(d.next), d.about.untilCut().Err() != nil:
		return nil, false
	}
	return d.start(k), false
}

// start begins an inquiry. The lock is held.
func (d *doubts) start(kinds ...kind) *inquiry {
	i := &inquiry{later: kinds, done: make(chan struct{}), hasID: d.about.hasID()}
	ctx, cancel := context.WithCancel(wire.WithoutRefresh(d.about.untilCut()))
	d.running, d.cancel = i, cancel
	pace := paceOther
	if d.front != nil {
		pace = paceMin
	}
	go d.run(ctx, i, time.Until(d.asked.Add(pace)))
	return i
}

// end ends the running inquiry, and waits for its end. No other will begin.
func (d *doubts) end(ctx context.Context) {
	d.mu.Lock()
	d.ended = true
	i := d.running
	if i != nil {
		d.cancel()
	}
	d.mu.Unlock()
	if i == nil {
		return
	}
	select {
	case <-i.done:
	case <-ctx.Done():
	}
}

// run runs checks until there is a verdict, or nobody waits for it.
func (d *doubts) run(ctx context.Context, i *inquiry, wait time.Duration) {
	for pace := paceMin; wire.Sleep(ctx, wait); wait, pace = max(pace, i.pace), min(2*pace, paceMax) {
		if d.conclude(i, d.round(ctx, i)) {
			return
		}
	}
	d.conclude(i, verdictUnsettled)
}

// round runs the checks once, and compares with a control if need be.
func (d *doubts) round(ctx context.Context, i *inquiry) (v verdict) {
	began := d.about.operations()
	d.mu.Lock()
	i.kinds, i.later = i.kinds.with(i.later...), nil
	i.refused, i.unknown = nil, nil // a front may have answered in an earlier round
	i.fronts, d.asked = d.fronts, time.Now()
	d.mu.Unlock()
	isAlike := func(e *mcpbridge.Error) bool { return d.kindsOf(i).haveLike(e) }
	judge := func(got answers) finding { return got.judge(isAlike, d.about.hasList()) }
	got := d.check(ctx, func(got answers) (enough, half bool) {
		f := judge(got)
		return f.verdict != verdictUnsettled, len(f.again) > 0
	})
	f := judge(got)
	switch {
	case d.about.succeededSince(began), f.verdict == verdictAlive:
		d.balance.note(ctx, got, d.kindsOf(i), d.about.repeat)
		return verdictAlive
	case f.verdict == verdictDead:
		for _, a := range got {
			if a.read() == readGone {
				i.refused = append(i.refused, a.refusal)
			}
		}
		return verdictDead
	case f.away || got == (answers{}) && d.isUnheard():
		return d.whileAway(ctx, i, got)
	case len(f.again) == 0:
		return d.withoutAnswer(i, got)
	}
	if d.about.isResumable() {
		d.hold()
	}
	d.gather(ctx, i, got, f.again)
	switch {
	case !d.about.isResumable():
		v = judgePlain(got, f.again, d.kindsOf(i).areAboutLists())
	case d.about.becomesKnown(ctx, got):
		v = verdictLate
	case d.about.succeededSince(began):
		v = verdictAlive
	default:
		v = d.about.control(ctx, got, f.again, false)
	}
	switch v {
	case verdictDead, verdictLate:
		d.prove(ctx, i, got, f.again, true)
	case verdictAlive:
		d.balance.note(ctx, got, d.kindsOf(i), d.about.repeat)
	}
	if v == verdictUnsettled && got.meetsFront() {
		v = verdictAway
	}
	return v
}

// whileAway opens a control when the server has been away for long: what looks like a front may be the server, which
// refuses the session.
func (d *doubts) whileAway(ctx context.Context, i *inquiry, got answers) verdict {
	d.mu.Lock()
	var again []check
	for which, a := range got {
		if a.read() == readAway {
			d.noteFront(a.refusal)
			i.fronts++
		}
		again = append(again, check(which))
	}
	lasts := time.Since(d.since) >= awayLimit
	d.mu.Unlock()
	v := verdictAway
	switch {
	case !lasts:
	case !d.about.isResumable():
		v = judgePlain(got, again, d.kindsOf(i).areAboutLists())
	default:
		d.gather(ctx, i, got, again)
		v = d.about.control(ctx, got, again, true)
	}
	if v == verdictUnsettled || v == verdictDead && !d.about.mayRefuse() { // without sessions, the server has come back meanwhile
		v = verdictAway
	}
	return v
}

// withoutAnswer returns what follows from checks that were neither answered nor refused like a call. A front, a limit
// of the server and silence may be temporary: after them the pause does not grow.
func (d *doubts) withoutAnswer(i *inquiry, got answers) verdict {
	isHeard := !d.isUnheard()
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case got.meetsFront():
		if i.mixed++; i.mixed < persistence { // the server may be back between two requests
			return verdictAway
		}
		d.pause = 0
	case got.meetsLimit() && isHeard:
		i.pace = paceOther
		return verdictAway
	case got.meetsLimit(), got[checkPing].read() == readSilent && got[checkList].read() == readSilent:
		d.pause = 0
	}
	return verdictUnsettled
}

// gather notes the refusals of checks, for the case that the session is dead. For a refusal without the id of its
// request, it asks for proof before there is a second session: some servers refuse with other words while they have one.
func (d *doubts) gather(ctx context.Context, i *inquiry, got answers, again []check) {
	for _, which := range again {
		if a := got[which]; a != nil && a.refusal != nil {
			i.refused = append(i.refused, a.refusal)
		}
	}
	d.prove(ctx, i, got, again, false)
}

// prove sends a check with a session id that was never issued, if the check was refused in the words of a call. own
// says whether it looks for a refusal with the id of its request. For such refusals it is called after the control,
// when the server is known to work.
func (d *doubts) prove(ctx context.Context, i *inquiry, got answers, again []check, own bool) {
	for _, which := range again {
		if a := got[which]; i.hasID && a != nil && a.refusal != nil && a.refusal.Own == own && a.refusal.Status < 500 && d.kindsOf(i).haveWordsOf(a.refusal) {
			ctx, cancel := context.WithTimeout(ctx, proofTimeout)
			defer cancel()
			if unknown := d.about.asUnknown(ctx, which); unknown != nil {
				i.unknown = append(i.unknown, unknown)
			}
			return
		}
	}
}

// check runs both checks. On an unheard session they get less time.
func (d *doubts) check(ctx context.Context, isEnough func(answers) (enough, half bool)) answers {
	limit := checkTimeout
	if d.isUnheard() {
		limit = awayLimit
	}
	return d.about.runChecks(ctx, limit, isEnough, checkPing, checkList)
}

// isUnheard reports whether a front has answered since the server was heard.
func (d *doubts) isUnheard() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.front != nil
}

// hold makes operations wait for the verdict, for holdTimeout.
func (d *doubts) hold() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until = time.Now().Add(holdTimeout)
	d.holds.Store(true)
}

// conclude ends an inquiry with a verdict, and wakes those who wait. It returns false if the inquiry continues,
// because the server is away and somebody waits.
func (d *doubts) conclude(i *inquiry, v verdict) bool {
	if v == verdictDead {
		d.expire(i)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	isAway := v == verdictAway
	if isAway && d.waiting > 0 && !d.ended {
		return false
	}
	i.verdict = v
	d.running = nil
	d.cancel()
	now := time.Now()
	if d.fronts == i.fronts && !isAway {
		d.front = nil
	}
	switch v {
	case verdictDead:
		d.dead = i
	case verdictUnsettled:
		d.pause = min(max(2*d.pause, pauseMin), pauseMax)
		d.next = now.Add(d.pause)
	case verdictAway, verdictLate:
	case verdictAlive:
		d.pause = 0
		if d.alive == nil || len(d.alive) > maxKinds {
			d.alive = map[kind]time.Time{}
		}
		for _, k := range i.kinds {
			d.alive[k] = now.Add(aliveFor)
		}
	}
	d.holds.Store(d.dead != nil || d.front != nil)
	close(i.done)
	return true
}

// expire reports that the session is dead, if the server has said so, or if sessions outlive their connections.
func (d *doubts) expire(i *inquiry) {
	for _, refusal := range i.refused {
		if refusal.Session == mcpbridge.Gone {
			d.about.expire(refusal)
			return
		}
	}
	if d.about.isResumable() {
		d.about.expire(&mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Sent: true, Detail: "the server refuses this session, and answers another"})
	}
}

// kindsOf returns the kinds of the refusals that an inquiry is about.
func (d *doubts) kindsOf(i *inquiry) kinds {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Concat(i.kinds, i.later)
}
