package doubt

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// This file decides what answers mean for a session in doubt, and sends nothing.

const (
	// persistence is how often a check is repeated that a front answers, and persistPause the time between.
	persistence  = 3
	persistPause = 50 * time.Millisecond
	// checkTimeout is how long a server may take to answer the checks.
	checkTimeout = 5 * time.Second
	// halfTimeout is how long one check may take after the other one was refused. Each is judged alone,
	// because a server may refuse one of them to every session.
	halfTimeout = time.Second / 2
)

// Kind is a kind of refusal: all refusals of the same operation with the same answer. Every refusal of a check is like
// a kind that is not a call's, such as the zero kind.
type Kind struct {
	isCall       bool
	method, tool string
	status       int
	code         int64
	digest       [16]byte
}

// KindOf returns the kind of a refusal of a call. tool is empty unless a tool was called.
func KindOf(method, tool string, e *mcpbridge.Error) Kind {
	return Kind{true, method, tool, e.Status, e.Code, wire.EvidenceOf(e).Digest}
}

// KindOfOther returns the kind of a refusal of a stream or a notification, which a server may refuse in another way than a
// call. Without a refusal, which may be nil, it is the zero kind.
func KindOfOther(method string, e *mcpbridge.Error) Kind {
	if e == nil {
		return Kind{}
	}
	return Kind{false, method, "", e.Status, e.Code, wire.EvidenceOf(e).Digest}
}

// Verdict is the result of an inquiry.
type Verdict uint8

// The verdicts.
const (
	Unsettled Verdict = iota
	Away              // unsettled, because the server cannot be reached, or not always
	Alive             // the server knows the session: the refusal is about something else
	Dead              // the server does not know the session; over a transport without sessions: it refuses even the list
	Late              // the server had just opened the session, and knows it only now
)

// Check is a request that changes nothing, and shows whether the server knows the session.
type Check uint8

// The checks.
const (
	Ping Check = iota
	List       // one page of a list that the server has declared
)

// Answer is the answer to a check.
type Answer struct {
	Refusal     *mcpbridge.Error // nil: a result
	Credentials http.Header      // of the check
}

// Answers are the answers to both checks; nil is none.
type Answers [2]*Answer

// reading is what an answer to a check shows about the session.
type reading uint8

const (
	readSilent  reading = iota // there is no answer
	readUnclear                // an answer that shows nothing, such as 429
	readAway                   // the server cannot be reached: a front answers, or the connection breaks
	readKnown                  // a result, or an error that only a server gives that knows the session
	readRefused                // a refusal in doubt
	readGone                   // a refusal that says that the session has expired
)

func (a *Answer) read() reading {
	switch {
	case a == nil:
		return readSilent
	case a.Refusal == nil:
		return readKnown
	case a.Refusal.Session == mcpbridge.Gone:
		return readGone
	case wire.EvidenceOf(a.Refusal).Front, a.Refusal.Session == mcpbridge.Broken:
		return readAway
	case a.Refusal.Doubt:
		return readRefused
	case a.Refusal.Code != 0 && a.Refusal.Status != http.StatusTooManyRequests: // an error without doubt: only a server that knows the session gives it
		return readKnown
	case a.Refusal.Class == mcpbridge.Deadline, a.Refusal.Class == mcpbridge.Cancelled:
		return readSilent
	}
	return readUnclear
}

// isAnswer reports whether an answer is a result, or a JSON-RPC error on 200.
func (a *Answer) isAnswer() bool {
	return a != nil && (a.Refusal == nil || a.Refusal.Status == http.StatusOK && a.Refusal.Code != 0)
}

// isRefusal reports whether a server may refuse a session with this answer. It may look like the answer of a front.
func (a *Answer) isRefusal() bool {
	return a.read() == readRefused || a.read() == readAway && wire.EvidenceOf(a.Refusal).Front
}

// hasNoPing reports whether a server answers that it has no ping.
func (a *Answer) hasNoPing() bool {
	return a.isAnswer() && a.Refusal != nil && a.Refusal.Code == rpc.CodeMethodNotFound
}

// isKnown reports whether the answer shows that the server knows the session.
func (a *Answer) isKnown() bool { return a.read() == readKnown }

// meetsFront reports whether something other than the server has answered.
func (got Answers) meetsFront() bool {
	return slices.ContainsFunc(got[:], func(a *Answer) bool { return a.read() == readAway })
}

// areSilent reports whether there is no answer to any check.
func (got Answers) areSilent() bool {
	return got[Ping].read() == readSilent && got[List].read() == readSilent
}

// meetsLimit reports whether the server asks to try again later.
func (got Answers) meetsLimit() bool {
	return slices.ContainsFunc(got[:], func(a *Answer) bool { return a != nil && a.Refusal != nil && isLimit(a.Refusal.Status) })
}

// isLimit reports whether a status asks the client to try again later.
func isLimit(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

// finding is what follows from the answers to the checks.
type finding struct {
	verdict Verdict
	away    bool    // the server cannot be reached
	again   []Check // to be repeated on a control
}

// judge returns what follows from the answers so far. isAlike compares a refusal with those
// that caused the doubt. hasList is true if the server has declared a list.
func (got Answers) judge(isAlike func(*mcpbridge.Error) bool, hasList bool) (f finding) {
	readings := map[reading]int{}
	for which, a := range got {
		reading := a.read()
		readings[reading]++
		if reading == readRefused && isAlike(a.Refusal) && (Check(which) != Ping || !a.hasNoPing()) {
			f.again = append(f.again, Check(which))
		}
	}
	switch {
	case readings[readGone] > 0:
		return finding{verdict: Dead}
	case got[List].read() == readKnown, !hasList && got[Ping].read() == readKnown:
		return finding{verdict: Alive}
	case !hasList && got[Ping].hasNoPing():
		f.again = []Check{Ping}
	}
	f.away = readings[readAway] > 0 && readings[readAway]+readings[readSilent] == len(got)
	return f
}

// judgeAttach is judge for a session that is to be resumed. The answer that there is no ping is enough.
func (got Answers) judgeAttach(hasList bool) finding {
	f := got.judge(func(*mcpbridge.Error) bool { return true }, hasList)
	if got[Ping].hasNoPing() || got[Ping].isKnown() && got[List].read() != readRefused { // some servers answer a ping on any session
		f.verdict = Alive
	}
	return f
}

// judgeControl returns what follows when the checks that the first session has refused are repeated on the second
// session, and then on the first. The silence of a session shows nothing: the first is alive if it answers now, or if
// the second is refused like it, by one check at least. But if a front seems to answer only the first session, it is
// the server itself.
func (got Answers) judgeControl(again []Check, second, first Answers) Verdict {
	alike, silent := 0, 0
	for _, which := range again {
		one, other, before := first[which], second[which], got[which]
		isSame := other.read() != readSilent && before.read() != readSilent && wire.Alike(other.Refusal, before.Refusal)
		switch {
		case one.read() == readKnown:
			return Alive
		case other.isAnswer() && !isSame && (one.read() == readGone || before.isRefusal() && one.isRefusal() && wire.Alike(one.Refusal, before.Refusal)) && haveSameCredentials(one, other):
			return Dead
		case isSame && other.read() == readRefused:
			alike++
		case before.read() == readSilent:
			silent++
		}
	}
	switch {
	case alike > 0 && alike+silent == len(again):
		return Alive
	case got.meetsFront(), second.meetsFront(), first.meetsFront():
		return Away
	}
	return Unsettled
}

// judgePlain judges without a control. The session is dead if the list is refused, but not with an error that says
// that there is no such list. If only lists were refused before, and ping is answered, the session is not dead.
func judgePlain(got Answers, again []Check, onlyLists bool) Verdict {
	if onlyLists && got[Ping].read() == readKnown {
		return Unsettled
	}
	for _, which := range again {
		a := got[which]
		if which != List || a == nil || a.isAnswer() && (a.Refusal.Code == rpc.CodeMethodNotFound || a.Refusal.Code == rpc.CodeInvalidParams) {
			continue
		}
		return Dead
	}
	return Unsettled
}

// judgeOpening returns what it means for the first session that a second one could not be opened. A server that
// refuses to open any session has not refused the first one in particular, so that this one is alive. If the server
// could not answer, its silence shows nothing.
func judgeOpening(e *mcpbridge.Error) Verdict {
	if e.Server == mcpbridge.Absent {
		return Away
	}
	if e.Status < 400 && e.Code == 0 || e.Status >= 500 || wire.IsMissing(e.Status) || isLimit(e.Status) {
		return Unsettled
	}
	return Alive
}

// haveSameCredentials reports whether two requests were sent with the same credentials.
func haveSameCredentials(a, b *Answer) bool {
	return a == nil || b == nil || reflect.DeepEqual(a.Credentials, b.Credentials)
}

// Kinds are the kinds of the refusals of calls.
type Kinds []Kind

// maxKinds bounds how many kinds of refusal are remembered.
const maxKinds = 256

// with returns the kinds and more kinds, without duplicates, and maxKinds of them at most.
func (all Kinds) with(more ...Kind) Kinds {
	for _, k := range more {
		if !slices.Contains(all, k) && len(all) < maxKinds {
			all = append(all, k)
		}
	}
	return all
}

// haveLike reports whether the refusal of a check has the status and code of one of the kinds, or one of them is not a call's.
func (all Kinds) haveLike(refusal *mcpbridge.Error) bool {
	return slices.ContainsFunc(all, func(k Kind) bool {
		return !k.isCall || k.status == refusal.Status && k.code == refusal.Code
	})
}

// haveStatus reports whether one of the kinds has a status.
func (all Kinds) haveStatus(status int) bool {
	return slices.ContainsFunc(all, func(k Kind) bool { return k.status == status })
}

// haveWordsOf reports whether the refusal of a check has the words of one of the kinds.
func (all Kinds) haveWordsOf(refusal *mcpbridge.Error) bool {
	digest := wire.EvidenceOf(refusal).Digest
	return slices.ContainsFunc(all, func(k Kind) bool { return k.digest == digest })
}

// areAboutLists reports whether only lists were refused.
func (all Kinds) areAboutLists() bool {
	return !slices.ContainsFunc(all, func(k Kind) bool { return !strings.HasSuffix(k.method, "/list") })
}
