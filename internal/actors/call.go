package actors

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/actors/internal/callctx"
	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// call is an operation that was accepted, and owes its caller one reply. It belongs to the
// registry until it is forwarded, and then to the session.
type call struct {
	op         messages.Operation
	key        messages.Key
	supervisor string
	caller     *actor.PID     // nil: the reply is dropped
	values     *caller.Values // of the context of a client or an interceptor, or nil
	accepted   time.Time      // when the command came
	deadline   time.Time
	serial     uint64 // counts the operations

	runs        int              // how often it was run
	unprocessed int              // runs that the server has said it did not process, without ending the session
	generation  uint64           // of the MCP session of the last run
	lost        *mcpbridge.Error // the error of the first run, if the operation may have run
	needsHint   bool             // it may be replayed only if its tool is annotated as safe
	replied     bool             // it has its reply; it may still run
	kept        bool             // its session was restarted: it counts as accepted
	passedOn    bool             // interceptors of this registry have passed it on
	intercepted bool             // it has passed the interceptors, of this member or of another one
	undecided   bool             // it was resent, and whether it may be replayed is not decided
	answered    callReplied      // sent with the reply

	node node[*call] // in a queue

	// These belong to the registry, also while the session has the call:
	at        *registration                // the session that has the call, or nil
	named     struct{ older, newer *call } // in callNames
	cancelled bool                         // its cancellation was queued or sent

	firstCtx callctx.Context // of the first run

	// While it runs:
	conn mcpbridge.Conn
	ctx  *callctx.Context // cancelled at the deadline, by the session
}

// parkedUntil returns when the call is answered if it still waits.
func (k *call) parkedUntil() time.Time {
	if at := k.op.Head().WaitUntil; !at.IsZero() && at.Before(k.deadline) && k.lost == nil {
		return at
	}
	return k.deadline
}

// failure returns the reply for a call that has failed.
func (k *call) failure(code messages.Code, detail string) *messages.Failure {
	f := messages.NewFailure(k.op, code, detail)
	f.Key, f.Generation, f.Replayed, f.MayHaveRun = k.key, k.generation, k.runs > 1, k.lost != nil
	f.Supervisor, f.Attempt = k.supervisor, k.runs
	return f
}

// failureOf returns the reply for an error of the bridge.
func (k *call) failureOf(e *mcpbridge.Error) *messages.Failure {
	f := k.failure(e.Class.Code(), e.ForCaller())
	f.MayHaveRun = f.MayHaveRun || e.MayHaveRun()
	f.Remedy, f.Cause = e.Remedy, e
	retryIn(f, e.RetryAfter)
	return f
}

// closedWhileParked returns the reply for a call that waits when its session is closed.
func (k *call) closedWhileParked() *messages.Failure {
	if k.lost != nil {
		return k.failure(messages.CodeClosed, "the call was lost, and its session was closed before it was repeated: "+k.lost.ForCaller())
	}
	return k.failure(messages.CodeClosed, "the session was closed before the call was sent")
}

// retryIn sets the time until another attempt makes sense, unless only a remedy helps.
func retryIn(f *messages.Failure, d time.Duration) {
	if f.Remedy == "" {
		f.RetryAfter = max(0, d)
	}
}

// unavailable returns the reply for a call that gets no connection because of an error.
func (k *call) unavailable(e *mcpbridge.Error) *messages.Failure {
	if k.lost != nil {
		return k.failureOf(k.lost)
	}
	f := k.failureOf(e)
	f.MayHaveRun = false
	switch e.Class {
	case mcpbridge.Lost, mcpbridge.Expired, mcpbridge.Internal: // the code is about another call
		f.Code, f.Detail = messages.CodeUnavailable, e.Detail
	}
	return f
}

// reopen is the operation of a [messages.Restart]: it opens the next session. Its reply is
// [messages.Done].
type reopen struct{ messages.Header }

// Method returns the name of the command.
func (*reopen) Method() string { return "Restart" }

// addReceipt fills in the receipt of a result.
func (k *call) addReceipt(result messages.Result) messages.Reply {
	if _, ok := k.op.(*reopen); ok {
		return &messages.Done{ID: k.op.RequestID()}
	}
	r := result.GetReceipt()
	r.Key, r.ID, r.Generation, r.Replayed = k.key, k.op.RequestID(), k.generation, k.runs > 1
	r.Target, r.Supervisor, r.Attempt = messages.TargetOf(k.op), k.supervisor, k.runs
	return result
}

// maxUnprocessed is how many runs of a call are not counted as a replay, because the server
// has certainly not processed them.
const maxUnprocessed = 6

// noteUnprocessed notes a run that the server has not processed: there was no connection, or an HTTP/2 server
// has said so, about requests that exceed its limit of streams, or that arrive just before it closes the
// connection. It may say the same on the next connection. A call that the bridge has withheld did not run.
func (k *call) noteUnprocessed(e *mcpbridge.Error) {
	switch {
	case wasWithheld(e):
		k.runs--
	case e.Class == mcpbridge.NotSent && k.unprocessed < maxUnprocessed:
		k.unprocessed++
	}
}

// wasWithheld reports whether a call was not sent because its session has ended, or is unheard.
func wasWithheld(e *mcpbridge.Error) bool {
	return e.Withheld && !e.MayHaveRun() && e.Session != mcpbridge.Alive
}

// pause returns how long to wait before the next run. The first replay runs at once, on
// another connection; a server at its limit of streams needs a moment.
func (k *call) pause() time.Duration {
	if k.unprocessed < 2 {
		return 0
	}
	longest := 10 * time.Millisecond << k.unprocessed
	return longest/2 + rand.N(longest/2)
}

// mayReplay reports whether a call that has failed may be run again on the next
// connection: at most once, and only if that is safe. needsHint is true if that depends on
// the annotations of the tool, which are not known.
func (k *call) mayReplay(e *mcpbridge.Error) (yes, needsHint bool) {
	replay := k.op.Head().Replay
	switch {
	case wasWithheld(e):
		return true, false
	case k.runs-k.unprocessed > 1 || replay == messages.ReplayNever:
		return false, false
	case e.Class == mcpbridge.Expired || e.Class == mcpbridge.NotSent:
		return true, false
	case e.Class != mcpbridge.Lost && e.Session != mcpbridge.Unheard:
		return false, false
	case !e.MayHaveRun() || replay == messages.ReplayAlways || k.op.Idempotent():
		return true, false
	case k.tool() == "":
		return false, false
	case k.conn == nil: // it ran on another member
		return true, true
	}
	safe, known := k.conn.Hint(k.tool())
	return safe || !known, !known
}

// matches reports whether a call is cancelled.
func (m *cancelCalls) matches(k *call) bool {
	return k == m.call || m.call == nil && k.serial <= m.upTo
}

// tool returns the name of the tool that is called, or "".
func (k *call) tool() string {
	if op, ok := k.op.(*messages.CallTool); ok {
		return op.Params.Name
	}
	return ""
}

// subscription returns the URI that the call subscribes to or unsubscribes from. Such
// calls for one URI run one after the other, so that the last one decides.
func (k *call) subscription() (uri string, is bool) {
	switch op := k.op.(type) {
	case *messages.Subscribe:
		return op.URI, true
	case *messages.Unsubscribe:
		return op.URI, true
	}
	return "", false
}

// performAfter performs the call after a pause, which ends with ctx.
func (k *call) performAfter(ctx context.Context, pause time.Duration, conn mcpbridge.Conn) (messages.Result, error) {
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return k.perform(ctx, conn)
}

// perform runs the call on conn. It may block.
func (k *call) perform(ctx context.Context, conn mcpbridge.Conn) (result messages.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicked(r)
		}
	}()
	switch k.op.(type) {
	case *messages.Open, *reopen:
		info := conn.Info()
		return &messages.SessionInfo{Server: info.Server, Stateless: info.Stateless}, nil
	}
	return conn.Do(ctx, k.op)
}

// codeOfWait returns the code of the failure of a call that has waited for too long.
func (k *call) codeOfWait(now time.Time) messages.Code {
	if now.Before(k.deadline) {
		return messages.CodeUnavailable
	}
	return messages.CodeDeadline
}
