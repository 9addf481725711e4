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

// persistence is how often a question is asked that a front answers now and then, and persistPause the
// time between.
const (
	persistence  = 3
	persistPause = 50 * time.Millisecond
)

// This file decides what answers mean for a session in doubt, and sends nothing.

const (
	// checkTimeout is how long a server has to answer a question, and halfTimeout how long the
	// other request has when one is refused. Each is judged alone: a server may refuse one of them to any session.
	checkTimeout = 5 * time.Second
	halfTimeout  = time.Second / 2
)

// kind is what refusals have in common: the operation, and the answer. The zero kind is like any
// refusal.
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
	verdictAway              // unsettled, and the server is not there, or not always
	verdictAlive             // the session is known: the refusal is about something else
	verdictDead              // it is not known; or it is of no use, over a transport without sessions
	verdictLate              // the session was opened just now, and the server did not know it yet
)

// inquiry is a question, with its control, for all who wait for the verdict.
type inquiry struct {
	kinds  kinds // of the refusals before the question; guarded by doubts.mu
	later  kinds // of those after it; guarded by doubts.mu
	fronts int   // as they were when it was asked
	mixed  int   // how often a front answered one request, and the server the other

	pace    time.Duration      // the least time between two questions
	done    chan struct{}      // closed with the verdict
	verdict verdict            // set before done is closed, as what follows
	refused []*mcpbridge.Error // the refusals that show that the session is dead
	hasID   bool               // the session has an id, so that a request can be made as one that was never issued
	unknown []*mcpbridge.Error // the refusals of such sessions
}

// request is one of the requests of a question.
type check uint8

const (
	checkPing check = iota
	checkList       // one page of a list that the server has declared
)

// answer is the answer to a request of a question.
type answer struct {
	refusal     *mcpbridge.Error // nil: a result
	credentials http.Header      // that the request was sent with
}

// question has the answers to its requests; nil is none.
type answers [2]*answer

// reading is what an answer says about the session that was asked.
type reading uint8

const (
	readSilent  reading = iota // there is no answer
	readUnclear                // an answer that says nothing, such as 429
	readAway                   // the server is not there: a front answers, or the connection breaks
	readKnown                  // a result
	readRefused                // refused in doubt
	readGone                   // refused for certain
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
	case a.refusal.Code != 0 && a.refusal.Status != http.StatusTooManyRequests: // such an error shows that the session is known
		return readKnown
	case a.refusal.Class == mcpbridge.Deadline, a.refusal.Class == mcpbridge.Cancelled:
		return readSilent
	}
	return readUnclear
}

// isAnswer reports whether a server that knows the session may answer like this, even with an error.
func (a *answer) isAnswer() bool {
	return a != nil && (a.refusal == nil || a.refusal.Status == http.StatusOK && a.refusal.Code != 0)
}

// isRefusal reports whether a server may refuse a session like this, even if it looks like a front.
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

// meetsLimit reports whether the server answers that it would answer later.
func (got answers) meetsLimit() bool {
	return slices.ContainsFunc(got[:], func(a *answer) bool { return a != nil && a.refusal != nil && isLimit(a.refusal.Status) })
}

// isLimit reports whether a server that answers with this status may answer later.
func isLimit(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

// finding is what follows from the answers to a question.
type finding struct {
	verdict verdict
	away    bool    // the server is not there
	again   []check // that a control has to be asked as well
}

// judge says what follows from the answers so far. isAlike compares a refusal with those
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

// judgeControl says what follows from the answers of a second session, and then of the first once
// more, to the requests that the first has refused. That the first does not answer at all shows nothing, as long
// as the server opens sessions. But a front that lets only the second through is the server itself.
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

// judgePlain judges without a control: only a list that is refused shows that the session is of no use, and not by
// errors that say that there is no such list. A list alone does not, as long as ping is answered.
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

// judgeOpening says what it means for the first session that a second one could not be opened: a server that
// refuses whoever asks has not refused the session, and one that cannot be asked has not refused.
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
// the operation has had an earlier request.
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
	settled.Detail, settled.Quote = "the server refuses the session", e.ForCaller() // which may quote arguments
	if !isResumable {
		settled.Session = mcpbridge.Broken
	}
	if notRun {
		settled.Class = mcpbridge.Expired
	}
	return settled
}

// provesNotRun reports whether a refusal by a session that is not known shows that the call did not run: whoever has
// run the call may have answered. It does if the question was refused alike, and a session that was never issued in the
// same words. Where sessions have no ids, a 4xx without the id of the call is believed, unless it is a page.
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

// certain returns an error without doubt.
func certain(e *mcpbridge.Error) *mcpbridge.Error {
	settled := *e
	settled.Doubt = false
	return &settled
}

// kinds are those of the refusals of calls.
type kinds []kind

// maxKinds bounds how many kinds of refusal are remembered.
const maxKinds = 256

// with returns the kinds and more of them, each of them once, and maxKinds of them at most.
func (all kinds) with(more ...kind) kinds {
	for _, k := range more {
		if !slices.Contains(all, k) && len(all) < maxKinds {
			all = append(all, k)
		}
	}
	return all
}

// haveLike reports whether a question was refused as one of the calls was.
func (all kinds) haveLike(refusal *mcpbridge.Error) bool {
	return slices.ContainsFunc(all, func(k kind) bool {
		return k == (kind{}) || k.status == refusal.Status && k.code == refusal.Code
	})
}

// haveWordsOf reports whether a question was refused in the words of one of the calls.
func (all kinds) haveWordsOf(refusal *mcpbridge.Error) bool {
	digest := wire.EvidenceOf(refusal).Digest
	return slices.ContainsFunc(all, func(k kind) bool { return k.digest == digest })
}

// areAboutLists reports whether nothing but lists was refused.
func (all kinds) areAboutLists() bool {
	return !slices.ContainsFunc(all, func(k kind) bool { return !strings.HasSuffix(k.method, "/list") })
}
