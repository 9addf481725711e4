package contract

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/callctx"
	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Call is an operation that was accepted, and owes its caller one reply. It belongs to the
// registry until it is forwarded, and then to the session.
type Call struct {
	Op         messages.Operation
	Key        messages.Key
	Supervisor string
	Caller     *actor.PID     // nil: the reply is dropped
	Values     *caller.Values // of the context of a client or an interceptor, or nil
	Accepted   time.Time      // when the command came
	Deadline   time.Time
	Serial     uint64 // counts the operations

	Runs        int              // how often it was run
	unprocessed int              // runs that the server has said it did not process, without ending the session
	Generation  uint64           // of the MCP session of the last run
	Lost        *mcpbridge.Error // the error of the first run, if the operation may have run
	NeedsHint   bool             // it may be replayed only if its tool is annotated as safe
	Replied     bool             // it has its reply; it may still run
	Kept        bool             // its session was restarted: it counts as accepted
	PassedOn    bool             // interceptors of this registry have passed it on
	Intercepted bool             // it has passed the interceptors, of this member or of another one
	Undecided   bool             // it was resent, and whether it may be replayed is not decided
	List        messages.Key     // whose owner answers from its catalogue, see [protocol.HandedBack], or zero
	Answered    CallReplied      // sent with the reply

	node ring.Node[*Call] // in a queue

	// These belong to the registry, also while the session has the call:
	At        Registration                 // the session that has the call, or nil
	Named     struct{ Older, Newer *Call } // in table.Calls
	Cancelled bool                         // its cancellation was queued or sent

	FirstCtx callctx.Context // of the first run

	recordRead bool // of a durable call: see NoteRecord; belongs to the session

	Task     *tasks.Task     // that the server has turned it into, or nil; belongs to the session
	answered map[string]bool // the questions of the task, by their keys; belongs to the goroutine that follows the task

	// While it runs:
	quietAt time.Time // when it ends unless something is heard of it, or zero
	Conn    mcpbridge.Conn
	Ctx     *callctx.Context // cancelled at the deadline, by the session
}

// Hear notes that something was heard of the call while it runs, or that it begins to run. While a task is not asked
// for, nothing can be heard of it.
func (k *Call) Hear(now time.Time) {
	quiet := k.Op.Head().Quiet
	if quiet <= 0 {
		return
	}
	if k.quietAt = now.Add(quiet); k.Task != nil {
		k.quietAt = k.quietAt.Add(k.Task.Pause(0))
	}
}

// EndsAt returns when the call is cut off while it runs. quiet is true if it has been quiet for too long then.
func (k *Call) EndsAt() (at time.Time, quiet bool) {
	if !k.Replied && !k.quietAt.IsZero() && k.quietAt.Before(k.Deadline) {
		return k.quietAt, true
	}
	return k.Deadline, false
}

// ParkedUntil returns when the call is answered if it still waits.
func (k *Call) ParkedUntil() time.Time {
	if at := k.Op.Head().WaitUntil; !at.IsZero() && at.Before(k.Deadline) && k.Lost == nil {
		return at
	}
	return k.Deadline
}

// MayHaveRun reports whether the call may have run before: until its record was read, a durable call may have.
func (k *Call) MayHaveRun() bool { return k.Lost != nil || k.IsDurable() && !k.recordRead }

// Failure returns the reply for a call that has failed.
func (k *Call) Failure(code messages.Code, detail string) *messages.Failure {
	f := messages.NewFailure(k.Op, code, detail)
	f.Key, f.Generation, f.Replayed, f.MayHaveRun = k.Key, k.Generation, k.Runs > 1, k.MayHaveRun()
	f.Supervisor, f.Attempt = k.Supervisor, k.Runs
	return f
}

// FailureOf returns the reply for an error of the bridge.
func (k *Call) FailureOf(e *mcpbridge.Error) *messages.Failure {
	f := k.Failure(e.Class.Code(), e.ForCaller())
	f.MayHaveRun = f.MayHaveRun || e.MayHaveRun()
	f.Remedy, f.Cause = e.Remedy, e
	RetryIn(f, e.RetryAfter)
	return f
}

// ClosedWhileParked returns the reply for a call that waits when its session is closed.
func (k *Call) ClosedWhileParked() *messages.Failure {
	if k.Lost != nil {
		return k.Failure(messages.CodeClosed, "the call was lost, and its session was closed before it was repeated: "+k.Lost.ForCaller())
	}
	return k.Failure(messages.CodeClosed, "the session was closed before the call was sent")
}

// RetryIn sets the time until another attempt makes sense, unless only a remedy helps.
func RetryIn(f *messages.Failure, d time.Duration) {
	if f.Remedy == "" {
		f.RetryAfter = max(0, d)
	}
}

// Unavailable returns the reply for a call that gets no connection because of an error.
func (k *Call) Unavailable(e *mcpbridge.Error) *messages.Failure {
	if k.Lost != nil {
		return k.FailureOf(k.Lost)
	}
	f := k.FailureOf(e)
	f.MayHaveRun = k.MayHaveRun() // and not what the error says of another call
	switch e.Class {
	case mcpbridge.Lost, mcpbridge.Expired, mcpbridge.Internal: // the code is about another call
		f.Code, f.Detail = messages.CodeUnavailable, e.Detail
	}
	return f
}

// Reopen is the operation of a [messages.Restart]: it opens the next session. Its reply is
// [messages.Done].
type Reopen struct{ messages.Header }

// Method returns the name of the command.
func (*Reopen) Method() string { return "Restart" }

// AddReceipt fills in the receipt of a result.
func (k *Call) AddReceipt(result messages.Result) messages.Reply {
	if _, ok := k.Op.(*Reopen); ok {
		return &messages.Done{ID: k.Op.RequestID()}
	}
	r := result.GetReceipt()
	r.Key, r.ID, r.Generation, r.Replayed = k.Key, k.Op.RequestID(), k.Generation, k.Runs > 1
	r.Target, r.Supervisor, r.Attempt = messages.TargetOf(k.Op), k.Supervisor, k.Runs
	return result
}

// maxUnprocessed is how many runs of a call are not counted as a replay, because the server
// has certainly not processed them.
const maxUnprocessed = 6

// NoteUnprocessed notes a run that the server has not processed: there was no connection, or an HTTP/2 server
// has said so, about requests that exceed its limit of streams, or that arrive just before it closes the
// connection. It may say the same on the next connection. A call that the bridge has withheld did not run.
func (k *Call) NoteUnprocessed(e *mcpbridge.Error) {
	switch {
	case k.Task != nil: // it has run
	case WasWithheld(e):
		k.Runs--
	case e.Class == mcpbridge.NotSent && k.unprocessed < maxUnprocessed:
		k.unprocessed++
	}
}

// WasWithheld reports whether a call was not sent because its session has ended, or is unheard.
func WasWithheld(e *mcpbridge.Error) bool {
	return e.Withheld && !e.MayHaveRun() && e.Session != mcpbridge.Alive
}

// Pause returns how long to wait before the next run. The first replay runs at once, on
// another connection; a server at its limit of streams needs a moment. random returns numbers in [0, 1).
func (k *Call) Pause(random func() float64) time.Duration {
	if k.unprocessed < 2 {
		return 0
	}
	longest := 10 * time.Millisecond << k.unprocessed
	return longest/2 + time.Duration(random()*float64(longest/2))
}

// MayReplay reports whether a call that has failed may be run again on the next
// connection: at most once, and only if that is safe. needsHint is true if that depends on
// the annotations of the tool, which are not known.
func (k *Call) MayReplay(e *mcpbridge.Error) (yes, needsHint bool) {
	replay := k.Op.Head().Replay
	switch {
	case k.Task != nil: // the next connection follows the task, and runs nothing
		return e.Session != mcpbridge.Alive || e.Class == mcpbridge.Expired || e.Class == mcpbridge.NotSent || WasWithheld(e), false
	case WasWithheld(e):
		return true, false
	case k.Runs-k.unprocessed > 1 || replay == messages.ReplayNever:
		return false, false
	case e.Class == mcpbridge.Expired || e.Class == mcpbridge.NotSent:
		return true, false
	case e.Class != mcpbridge.Lost && e.Session != mcpbridge.Unheard:
		return false, false
	case !e.MayHaveRun() || replay == messages.ReplayAlways || k.Op.Idempotent():
		return true, false
	case k.Tool() == "":
		return false, false
	case k.Conn == nil: // it ran on another member
		return true, true
	}
	safe, known := k.Conn.Hint(k.Tool())
	return safe || !known, !known
}

// Matches reports whether a call is cancelled.
func (m *CancelCalls) Matches(k *Call) bool {
	return k == m.Call || m.Call == nil && k.Serial <= m.UpTo
}

// Tool returns the name of the tool that is called, or "".
func (k *Call) Tool() string {
	if op, ok := k.Op.(*messages.CallTool); ok {
		return op.Params.Name
	}
	return ""
}

// Subscription returns the URI that the call subscribes to or unsubscribes from. Such
// calls for one URI run one after the other, so that the last one decides.
func (k *Call) Subscription() (uri string, is bool) {
	switch op := k.Op.(type) {
	case *messages.Subscribe:
		return op.URI, true
	case *messages.Unsubscribe:
		return op.URI, true
	}
	return "", false
}

// PerformAfter performs the call after a pause, which ends with ctx.
func (k *Call) PerformAfter(ctx context.Context, pause time.Duration, conn mcpbridge.Conn) (messages.Result, error) {
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return k.Perform(ctx, conn)
}

// Perform runs the call on conn. It may block.
func (k *Call) Perform(ctx context.Context, conn mcpbridge.Conn) (result messages.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = Panicked(r)
		}
	}()
	switch k.Op.(type) {
	case *messages.Open, *Reopen:
		info := conn.Info()
		return &messages.SessionInfo{Server: info.Server, Stateless: info.Stateless}, nil
	}
	result, err = conn.Do(ctx, k.Op)
	if asks, _ := AsksCatalogue(k.Op); asks && err == nil {
		*ListingOf(result) = &messages.Listing{Server: conn.Info().Server, Verbatim: conn.Info().Verbatim, At: time.Now()}
	}
	return result, err
}

// CodeOfWait returns the code of the failure of a call that has waited for too long.
func (k *Call) CodeOfWait(now time.Time) messages.Code {
	if now.Before(k.Deadline) {
		return messages.CodeUnavailable
	}
	return messages.CodeDeadline
}
