package bridge

import (
	"bytes"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
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

// kind is a kind of refusal: all refusals of the same operation with the same answer. Every refusal is
// like the zero kind.
type kind struct {
	method, tool string
	status       int
	code         int64
	digest       [16]byte
}

// kindOf returns the kind of a refusal.
func kindOf(op messages.Operation, e *mcpbridge.Error) kind {
	k := kind{op.Method(), "", e.Status, e.Code, wire.EvidenceOf(e).Digest}
	if call, ok := op.(*messages.CallTool); ok {
		k.tool = call.Params.Name
	}
	return k
}

// verdict is the result of an inquiry.
type verdict uint8

const (
	verdictUnsettled verdict = iota
	verdictAway              // unsettled, because the server cannot be reached, or not always
	verdictAlive             // the server knows the session: the refusal is about something else
	verdictDead              // the server does not know the session; over a transport without sessions: it refuses even the list
	verdictLate              // the server had just opened the session, and knows it only now
)

// inquiry settles doubt for all callers that wait for its verdict, by checks and a control.
type inquiry struct {
	kinds  kinds // of the refusals before the last checks; guarded by doubts.mu
	later  kinds // of the refusals since then; guarded by doubts.mu
	fronts int   // doubts.fronts when the last checks began
	mixed  int   // how often a front answered one check, and the server the other

	pace    time.Duration      // the least time between two rounds of checks
	hasID   bool               // the session has an id: a check can be sent with an id that was never issued
	done    chan struct{}      // closed when there is a verdict
	verdict verdict            // set before done is closed, as are the fields below
	refused []*mcpbridge.Error // the refusals of checks that show that the session is dead
	unknown []*mcpbridge.Error // the refusals of checks with an id that was never issued
}

// check is a request that changes nothing, and shows whether the server knows the session.
type check uint8

const (
	checkPing check = iota
	checkList       // one page of a list that the server has declared
)

// answer is the answer to a check.
type answer struct {
	refusal     *mcpbridge.Error // nil: a result
	credentials http.Header      // of the check
}

// answers are the answers to both checks; nil is none.
type answers [2]*answer

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

func (a *answer) read() reading {
	switch {
	case a == nil:
		return readSilent
	case a.refusal == nil:
		return readKnown
	case a.refusal.Session == mcpbridge.Gone:
		return readGone
	case wire.EvidenceOf(a.refusal).Front, a.refusal.Session == mcpbridge.Broken:
		return readAway
	case a.refusal.Doubt:
		return readRefused
	case a.refusal.Code != 0 && a.refusal.Status != http.StatusTooManyRequests: // an error without doubt: only a server that knows the session gives it
		return readKnown
	case a.refusal.Class == mcpbridge.Deadline, a.refusal.Class == mcpbridge.Cancelled:
		return readSilent
	}
	return readUnclear
}

// isAnswer reports whether an answer is a result, or a JSON-RPC error on 200.
func (a *answer) isAnswer() bool {
	return a != nil && (a.refusal == nil || a.refusal.Status == http.StatusOK && a.refusal.Code != 0)
}

// isRefusal reports whether a server may refuse a session with this answer. It may look like the answer of a front.
func (a *answer) isRefusal() bool {
	return a.read() == readRefused || a.read() == readAway && wire.EvidenceOf(a.refusal).Front
}

// hasNoPing reports whether a server answers that it has no ping.
func (a *answer) hasNoPing() bool {
	return a.isAnswer() && a.refusal != nil && a.refusal.Code == rpc.CodeMethodNotFound
}

// meetsFront reports whether something other than the server has answered.
func (got answers) meetsFront() bool {
	return slices.ContainsFunc(got[:], func(a *answer) bool { return a.read() == readAway })
}

// meetsLimit reports whether the server asks to try again later.
func (got answers) meetsLimit() bool {
	return slices.ContainsFunc(got[:], func(a *answer) bool { return a != nil && a.refusal != nil && isLimit(a.refusal.Status) })
}

// isLimit reports whether a status asks the client to try again later.
func isLimit(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

// finding is what follows from the answers to the checks.
type finding struct {
	verdict verdict
	away    bool    // the server cannot be reached
	again   []check // to be repeated on a control
}

// judge returns what follows from the answers so far. isAlike compares a refusal with those
// that caused the doubt. hasList is true if the server has declared a list.
func (got answers) judge(isAlike func(*mcpbridge.Error) bool, hasList bool) (f finding) {
	readings := map[reading]int{}
	for which, a := range got {
		reading := a.read()
		readings[reading]++
		if reading == readRefused && isAlike(a.refusal) && (check(which) != checkPing || !a.hasNoPing()) {
			f.again = append(f.again, check(which))
		}
	}
	switch {
	case readings[readGone] > 0:
		return finding{verdict: verdictDead}
	case got[checkList].read() == readKnown, !hasList && got[checkPing].read() == readKnown:
		return finding{verdict: verdictAlive}
	case !hasList && got[checkPing].hasNoPing():
		f.again = []check{checkPing}
	}
	f.away = readings[readAway] > 0 && readings[readAway]+readings[readSilent] == len(got)
	return f
}

// judgeControl returns what follows when the checks that the first session has refused are repeated on the second
// session, and then on the first. Silence of the first session shows nothing while the server opens
// sessions. But if a front seems to answer only the first session, it is the server itself.
func (got answers) judgeControl(again []check, second, first answers) verdict {
	alike := 0
	for _, which := range again {
		one, other, before := first[which], second[which], got[which]
		if before.read() == readSilent {
			alike++
			continue
		}
		isSame := other.read() != readSilent && wire.Alike(other.refusal, before.refusal)
		switch {
		case one.read() == readKnown:
			return verdictAlive
		case other.isAnswer() && !isSame && (one.read() == readGone || before.isRefusal() && one.isRefusal() && wire.Alike(one.refusal, before.refusal)) && haveSameCredentials(one, other):
			return verdictDead
		case isSame && other.read() == readRefused:
			alike++
		}
	}
	switch {
	case alike == len(again):
		return verdictAlive
	case got.meetsFront(), second.meetsFront(), first.meetsFront():
		return verdictAway
	}
	return verdictUnsettled
}

// judgePlain judges without a control. The session is dead if the list is refused, but not with an error that says
// that there is no such list. If only lists were refused before, and ping is answered, the session is not dead.
func judgePlain(got answers, again []check, onlyLists bool) verdict {
	if onlyLists && got[checkPing].read() == readKnown {
		return verdictUnsettled
	}
	for _, which := range again {
		a := got[which]
		if which != checkList || a == nil || a.isAnswer() && (a.refusal.Code == rpc.CodeMethodNotFound || a.refusal.Code == rpc.CodeInvalidParams) {
			continue
		}
		return verdictDead
	}
	return verdictUnsettled
}

// judgeOpening returns what it means for the first session that a second one could not be opened. A server that
// refuses to open any session has not refused the first one in particular, so that this one is alive. If the server
// could not answer, its silence shows nothing.
func judgeOpening(e *mcpbridge.Error) verdict {
	if e.Server == mcpbridge.Absent {
		return verdictAway
	}
	if e.Status < 400 && e.Code == 0 || e.Status >= 500 || wire.IsMissing(e.Status) || isLimit(e.Status) {
		return verdictUnsettled
	}
	return verdictAlive
}

// haveSameCredentials reports whether two requests were sent with the same credentials.
func haveSameCredentials(a, b *answer) bool {
	return a == nil || b == nil || reflect.DeepEqual(a.credentials, b.credentials)
}

// outcome returns what a refusal in doubt means after a verdict other than alive. earlier is true if
// the server has accepted an earlier request of the operation.
func (i *inquiry) outcome(e *mcpbridge.Error, earlier, isResumable bool) *mcpbridge.Error {
	settled, notRun := certain(e), !earlier && i.provesNotRun(e)
	switch {
	case i.verdict == verdictLate && notRun:
		settled.Class = mcpbridge.NotSent
		return settled
	case i.verdict != verdictDead:
		return e
	}
	settled.Class, settled.Session = mcpbridge.Lost, mcpbridge.Gone
	settled.Detail, settled.Quote = "the server refuses the session", e.ForCaller() // the words of the server may quote arguments
	if !isResumable {
		settled.Session = mcpbridge.Broken
	}
	if notRun {
		settled.Class = mcpbridge.Expired
	}
	return settled
}

// provesNotRun reports whether a refusal of a call on a dead session shows that the call did not run. It does so if a
// check was refused alike, and a check with an id that was never issued was refused in the same words: such a server
// refuses a session before it looks at a request. Without session ids, a 4xx without the id of the call is
// believed, unless it is a page.
func (i *inquiry) provesNotRun(e *mcpbridge.Error) bool {
	isAlike := func(refusal *mcpbridge.Error) bool { return wire.Alike(e, refusal) }
	switch {
	case !slices.ContainsFunc(i.refused, isAlike), e.Class == mcpbridge.Lost, e.Status >= 500,
		e.Status == http.StatusFound, e.Status == http.StatusSeeOther, e.Status == http.StatusRequestTimeout:
		return false
	case !i.hasID && e.Status >= 300 && !e.Own && !wire.EvidenceOf(e).Front:
		return true
	}
	digest := wire.EvidenceOf(e).Digest
	return digest != wire.Evidence{}.Digest && slices.ContainsFunc(i.unknown, func(unknown *mcpbridge.Error) bool {
		return isAlike(unknown) && unknown.Own == e.Own && wire.EvidenceOf(unknown).Digest == digest
	})
}

// isAboutResource reports whether a refusal repeats the URI of the resource that was read.
func isAboutResource(op messages.Operation, e *mcpbridge.Error) bool {
	read, ok := op.(*messages.ReadResource)
	var said *jsonrpc.Error
	return ok && e.Code == rpc.CodeInvalidParams && errors.As(e.Err, &said) &&
		(strings.Contains(said.Message, read.Params.URI) || bytes.Contains(said.Data, []byte(read.Params.URI)))
}

// certain returns a copy of an error without doubt.
func certain(e *mcpbridge.Error) *mcpbridge.Error {
	settled := *e
	settled.Doubt = false
	return &settled
}

// kinds are the kinds of the refusals of calls.
type kinds []kind

// maxKinds bounds how many kinds of refusal are remembered.
const maxKinds = 256

// with returns the kinds and more kinds, without duplicates, and maxKinds of them at most.
func (all kinds) with(more ...kind) kinds {
	for _, k := range more {
		if !slices.Contains(all, k) && len(all) < maxKinds {
			all = append(all, k)
		}
	}
	return all
}

// haveLike reports whether the refusal of a check has the status and code of one of the kinds.
func (all kinds) haveLike(refusal *mcpbridge.Error) bool {
	return slices.ContainsFunc(all, func(k kind) bool {
		return k == (kind{}) || k.status == refusal.Status && k.code == refusal.Code
	})
}

// haveWordsOf reports whether the refusal of a check has the words of one of the kinds.
func (all kinds) haveWordsOf(refusal *mcpbridge.Error) bool {
	digest := wire.EvidenceOf(refusal).Digest
	return slices.ContainsFunc(all, func(k kind) bool { return k.digest == digest })
}

// areAboutLists reports whether only lists were refused.
func (all kinds) areAboutLists() bool {
	return !slices.ContainsFunc(all, func(k kind) bool { return !strings.HasSuffix(k.method, "/list") })
}
