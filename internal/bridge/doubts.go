package bridge

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
	"github.com/mcpactor/mcpactor/internal/bridge/wire"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// verdictTimeout is how long a caller waits for a verdict, and how long a server has to answer
	// the question.
	verdictTimeout = 5 * time.Second
	// aliveFor is how long the verdict holds that a refusal is not about the session.
	aliveFor = 30 * time.Second
	// maxAlive bounds how many kinds of refusal such verdicts are remembered for.
	maxAlive = 256
	// pauseMin and pauseMax bound the time after an inquiry without a verdict in which
	// there is no other.
	pauseMin, pauseMax = time.Second, 30 * time.Second
)

// kind is what refusals have in common: the operation, and the answer.
type kind struct {
	method, tool string
	status       int
	code         int64
}

// verdict is the result of an inquiry.
type verdict uint8

const (
	verdictUnsettled verdict = iota
	verdictAlive             // the session is known: the refusal is about something else
	verdictDead              // it is not known; or it is of no use, over a transport without sessions
	verdictLate              // it was not known yet, soon after it was opened
)

// reply is the answer to a question.
type reply struct {
	refusal     *mcpbridge.Error // nil: a result
	credentials http.Header      // that the question was sent with
}

// subject is the session that doubts are about.
type subject interface {
	// mayRefuse reports whether the session can be what a server refuses.
	mayRefuse() bool
	// isResumable reports whether the server knows the session beyond its connection.
	isResumable() bool
	// mayBeAsked reports whether the server can be reached and the session was not cut.
	mayBeAsked() bool
	// isFresh reports whether the session has answered nothing since initialize.
	isFresh() bool
	// resultCount counts the operations that had a result.
	resultCount() uint64
	// untilCut returns a context that ends with the session.
	untilCut() context.Context
	// question asks whether the server knows the session.
	question(context.Context) reply
	// becomesKnown asks a fresh session again, and reports whether the session was known at last.
	becomesKnown(context.Context, reply) bool
	// control compares with a second session, given the answer of this one.
	control(context.Context, reply) verdict
	// expire notes that the session is dead.
	expire(*mcpbridge.Error)
}

// doubts settles whether the server knows a session after a refusal that may be about the
// session or about something else: once for all callers, by requests that change nothing.
//
//	refusal in doubt ──question──▶ result: alive
//	                          └──▶ refused alike ──control──▶ result: dead
//	                          └──▶ anything else: unsettled      └──▶ else: alive
//
// The question is a ping and one page of a list, on the session itself. The control asks
// a second session the same, and then the first once more, so that a passing refusal
// does not count. See the documentation of package mcpbridge.
type doubts struct {
	about subject

	mu      sync.Mutex
	running *inquiry           // nil while there is none
	dead    *inquiry           // the one that has found the session dead
	alive   map[kind]time.Time // until when
	next    time.Time          // no inquiry before that
	pause   time.Duration      // after the last inquiry
}

// inquiry is one question, with its control, for all who wait for the verdict.
type inquiry struct {
	kinds   []kind           // of those who wait; guarded by doubts.mu
	done    chan struct{}    // closed with the verdict
	verdict verdict          // set before done is closed
	refusal *mcpbridge.Error // of the question, or nil; set before done is closed
}

// settle returns what an error means when it is in doubt: the error as it is, or one
// that says that the session is gone. It waits for the verdict, within bounds.
func (d *doubts) settle(ctx context.Context, op messages.Operation, ex *wire.Exchange, e *mcpbridge.Error) *mcpbridge.Error {
	if !e.Doubt || !d.about.mayRefuse() || isAboutResource(op, e) {
		return e
	}
	k := kind{op.Method(), "", e.Status, e.Code}
	if call, ok := op.(*messages.CallTool); ok {
		k.tool = call.Params.Name
	}
	i := d.inquire(k)
	if i == nil {
		return e
	}
	limit := verdictTimeout
	if at, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(at)-verdictTimeout/50) // the answer takes its time, too
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-i.done:
	case <-timer.C:
		return e
	case <-ctx.Done():
		return e
	}
	// A 4xx, or an error that is the whole answer, refuses the session and not the
	// call, if the question is refused alike.
	notRun := !mayFollowRun(e) && wire.Alike(e, i.refusal) && !ex.HadEarlierRequests()
	settled := *e
	switch i.verdict {
	case verdictDead:
	case verdictLate:
		if notRun {
			settled.Class, settled.Doubt = mcpbridge.NotSent, false
		}
		return &settled
	default:
		return e
	}
	settled.Doubt, settled.Class, settled.Session = false, mcpbridge.Lost, mcpbridge.Gone
	settled.Detail, settled.Quote = "the server refuses the session", e.ForCaller() // which may quote arguments
	if !d.about.isResumable() {
		settled.Session = mcpbridge.Broken
		notRun = notRun && e.Status >= 400 // else the call was answered, by whomever
	}
	if notRun {
		settled.Class = mcpbridge.Expired
	}
	return &settled
}

// mayFollowRun reports whether a server may answer like this after a call has run: with a failure, with a
// redirect to the result, or with a stream that ends without one.
func mayFollowRun(e *mcpbridge.Error) bool {
	return e.Status >= 500 || e.Status == http.StatusFound || e.Status == http.StatusSeeOther || e.Class == mcpbridge.Lost
}

// isAboutResource reports whether a refusal repeats the URI of the resource that was read.
func isAboutResource(op messages.Operation, e *mcpbridge.Error) bool {
	read, ok := op.(*messages.ReadResource)
	var said *jsonrpc.Error
	return ok && e.Code == rpc.CodeInvalidParams && errors.As(e.Err, &said) &&
		(strings.Contains(said.Message, read.Params.URI) || bytes.Contains(said.Data, []byte(read.Params.URI)))
}

// inquire returns the inquiry that settles doubt of a kind, which it may have begun. It returns nil
// when there is none: the doubt is settled, or could not be settled lately.
func (d *doubts) inquire(k kind) *inquiry {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	switch {
	case d.dead != nil:
		return d.dead
	case now.Before(d.alive[k]):
		return nil
	case d.running != nil:
		d.running.kinds = append(d.running.kinds, k)
		return d.running
	case now.Before(d.next), !d.about.mayBeAsked():
		return nil
	}
	i := &inquiry{kinds: []kind{k}, done: make(chan struct{})}
	d.running = i
	go d.run(i)
	return i
}

// run asks, and wakes those who wait.
func (d *doubts) run(i *inquiry) {
	ctx, cancel := context.WithCancel(wire.WithoutRefresh(d.about.untilCut()))
	defer cancel()
	results := d.about.resultCount()
	asked := d.about.question(ctx)
	i.refusal = asked.refusal
	i.verdict = d.judge(ctx, i, asked, results)
	switch {
	case i.verdict != verdictDead:
	case i.refusal.Session == mcpbridge.Gone:
		d.about.expire(i.refusal)
	case d.about.isResumable():
		d.about.expire(&mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Sent: true, Detail: "the server refuses this session, and answers another"})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = nil
	now := time.Now()
	switch i.verdict {
	case verdictDead:
		d.dead = i
	case verdictUnsettled:
		d.pause = min(max(2*d.pause, pauseMin), pauseMax)
		d.next = now.Add(d.pause)
	case verdictLate:
	case verdictAlive:
		d.pause = 0
		if d.alive == nil || len(d.alive) > maxAlive {
			d.alive = map[kind]time.Time{}
		}
		for _, k := range i.kinds {
			d.alive[k] = now.Add(aliveFor)
		}
	}
	close(i.done)
}

// judge says what the answer to the question means, if need be by a control. results is the
// count before the question.
func (d *doubts) judge(ctx context.Context, i *inquiry, asked reply, results uint64) verdict {
	switch {
	case asked.refusal == nil || d.about.resultCount() != results:
		return verdictAlive
	case asked.refusal.Session == mcpbridge.Gone:
		return verdictDead
	case !asked.refusal.Doubt || !d.isRefusedAlike(i):
		return verdictUnsettled
	case !d.about.isResumable():
		return verdictDead
	case d.about.becomesKnown(ctx, asked):
		return verdictLate
	case !d.about.isFresh() && d.about.resultCount() != results:
		return verdictAlive
	}
	return d.about.control(ctx, asked)
}

// isRefusedAlike reports whether the question was refused as one of the calls was.
func (d *doubts) isRefusedAlike(i *inquiry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range i.kinds {
		if k.method == "" || wire.Alike(i.refusal, &mcpbridge.Error{Status: k.status, Code: k.code}) {
			return true
		}
	}
	return false
}
