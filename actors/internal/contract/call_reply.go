package contract

import (
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Failure returns the reply for a call that has failed.
func (k *Call) Failure(code messages.Code, detail string) *messages.Failure {
	f := messages.NewFailure(k.Op, code, detail)
	f.Key, f.Generation, f.Replayed, f.MayHaveRun = k.Key, k.Run.Generation, k.Run.Attempts > 1, k.MayHaveRun()
	f.Supervisor, f.Attempt = k.Supervisor, k.Run.Attempts
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
	if k.Run.Lost != nil {
		return k.Failure(messages.CodeClosed, "the call was lost, and its session was closed before it was repeated: "+k.Run.Lost.ForCaller())
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
	if k.Run.Lost != nil {
		return k.FailureOf(k.Run.Lost)
	}
	f := k.FailureOf(e)
	f.MayHaveRun = k.MayHaveRun() // and not what the error says of another call
	switch e.Class {
	case mcpbridge.Lost, mcpbridge.Expired, mcpbridge.Internal: // the code is about another call
		f.Code, f.Detail = messages.CodeUnavailable, e.Detail
	}
	return f
}

// CodeOfWait returns the code of the failure of a call that has waited for too long.
func (k *Call) CodeOfWait(now time.Time) messages.Code {
	if now.Before(k.Deadline) {
		return messages.CodeUnavailable
	}
	return messages.CodeDeadline
}

// AddReceipt fills in the receipt of a result.
func (k *Call) AddReceipt(result messages.Result) messages.Reply {
	if _, ok := k.Op.(*Reopen); ok {
		return &messages.Done{ID: k.Op.RequestID()}
	}
	r := result.GetReceipt()
	r.Key, r.ID, r.Generation, r.Replayed = k.Key, k.Op.RequestID(), k.Run.Generation, k.Run.Attempts > 1
	r.Target, r.Supervisor, r.Attempt = messages.TargetOf(k.Op), k.Supervisor, k.Run.Attempts
	return result
}
