package callbook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/messages"
)

// Send sends a call, and tells the entry what becomes of it: [Entry.Begin] comes before it is sent.
type Send func(ctx context.Context, e *Entry) (messages.Result, error)

// pause is how often a record is read that another process may change.
const pause = time.Second

// Do answers a call from its record, or has it sent. It may block until ctx ends. All errors are of type [*messages.Failure].
func (b *Book) Do(ctx context.Context, op *messages.CallTool, send Send) (messages.Result, error) {
	return b.DoAs(ctx, op, DigestOf(op), send)
}

// DoAs is Do for a call that is the same as what its caller has accepted: call is what DigestOf returned for that.
func (b *Book) DoAs(ctx context.Context, op *messages.CallTool, call string, send Send) (messages.Result, error) {
	e, err := b.enter(ctx, op, call)
	if err != nil {
		return nil, gaveUp(ctx, op, "the same call runs")
	}
	defer e.Release()
	b.sweepFromNowOn()
	var failure *messages.Failure // of what was sent here
	for resolves := b.cfg.Resolve != nil; ; {
		if err := e.loadOf(ctx, op); err != nil {
			return nil, unread(ctx, op, err)
		}
		r := e.known
		switch r.Next(e.call, b.process, resolves, time.Now()) {
		case Refuse:
			return nil, r.refusal(op, e.call)
		case Wait:
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return nil, gaveUp(ctx, op, "another process has sent the call")
			}
		case Learn:
			resolves = false // it is asked once
			result, err := e.learn(ctx, op)
			switch {
			case err != nil:
				return nil, unread(ctx, op, err)
			case result != nil:
				return result, nil
			}
		case Run:
			result, err := send(ctx, e)
			if e.hasMoved() {
				continue
			}
			if err == nil {
				return result, nil
			}
			failure = failureOf(op, err)
			switch e.settle(ctx, failure) {
			case Wait:
				failure = nil // it is about what this process has done
			case Learn:
				if !resolves || ctx.Err() != nil {
					return nil, failure
				}
			default:
				return nil, failure
			}
		default:
			if failure != nil && r.State == Unknown {
				return nil, failure
			}
			return r.tell(op)
		}
	}
}

// hasMoved reports whether the call was not sent, because somebody else has changed the record.
func (e *Entry) hasMoved() bool {
	e.turn.take()
	defer e.turn.end()
	return e.moved
}

// settle writes what a failure says of the call, and returns what is done next: Learn if nobody knows what became of the call, and
// nobody waits for its answer, Wait if somebody else has the call, and else Tell.
func (e *Entry) settle(ctx context.Context, f *messages.Failure) Step {
	if e.hasBegun() {
		f.MayHaveRun = true // it only could not be followed
	}
	switch {
	case e.Task() != "", e.Round() != nil: // whoever asks again follows it
		return Tell
	case !f.MayHaveRun:
		return e.giveUp(ctx, f)
	case e.isHeld(): // the run may still get the answer
		return Tell
	}
	e.note(ctx, func(r Record) (Record, bool) { return r.Lose(e.book.keptFailure(f)), e.sent(r) })
	return Learn
}

// giveUp writes that the call has not run, after it has read the record: another process may have sent the call meanwhile. If somebody
// was asked about it, it never will: whoever was told that it has not run may have proposed it anew.
func (e *Entry) giveUp(ctx context.Context, f *messages.Failure) Step {
	err, changed := e.load(ctx), false
	if err == nil {
		changed, err = e.change(ctx, func(r Record) (Record, bool) {
			if len(r.Proposal) > 0 {
				return r.Fail(e.book.keptFailure(f)), r.State == Allowed || e.sent(r)
			}
			return r.Allow(), e.sent(r)
		})
	}
	switch r := e.record(); {
	case err != nil:
		e.book.cfg.Warn(e.key.Scope, err)
		f.MayHaveRun = true
	case !changed && r.State != None && r.State != Allowed:
		return Wait
	}
	return Tell
}

// learn finds out what became of a call, and writes it. It returns the result of the call, if that is known.
func (e *Entry) learn(ctx context.Context, op *messages.CallTool) (*messages.ToolResult, error) {
	limited, cancel := context.WithTimeout(ctx, learnTime)
	defer cancel()
	ends, _ := limited.Deadline()
	mine, err := e.change(ctx, func(r Record) (Record, bool) {
		return r.Ask(e.me, ends), r.Next(e.call, e.book.process, true, time.Now()) == Learn
	})
	if err != nil || !mine {
		return nil, err
	}
	resolution, result, failed := e.book.resolve(limited, e.Mark(op))
	if failed != nil {
		e.book.cfg.Warn(e.key.Scope, fmt.Errorf("nobody knows what became of the call: %w", failed))
	}
	raw, until := e.book.kept(result)
	changed, err := e.change(ctx, func(r Record) (Record, bool) {
		asked := r.State == Asking && r.By == e.me
		switch {
		case failed != nil:
			return r.Lose(r.Failure), asked // the next one asks again
		case resolution == messages.ResolvedRan:
			return r.Finish(raw, until), asked
		case resolution == messages.ResolvedNotRun:
			return r.Allow(), asked
		}
		return r.Forget(), asked
	})
	if !changed || resolution != messages.ResolvedRan {
		return nil, err
	}
	return result, nil
}

// learnTime bounds how long it may take to find out what became of a call.
const learnTime = 30 * time.Second

// tell returns what became of a call, as the reply to whoever asks again.
func (r Record) tell(op *messages.CallTool) (messages.Result, error) {
	lost := messages.NewFailure(op, messages.CodeLost, "the call was sent before, and its answer is not known")
	switch {
	case r.State == Failed:
		return nil, readdressed(op, r.Failure)
	case r.State == Done && r.Result != nil && !time.Now().After(r.ResultUntil):
		result, err := r.result()
		if err == nil {
			return result, nil
		}
		lost.Detail, lost.Cause = "it ran; its result cannot be read", err
	case r.State == Done:
		lost.Detail = "it ran; its result is no longer kept"
	case r.State == Unknown && r.Failure != nil:
		lost.Detail += ": " + string(r.Failure.Code) + ": " + r.Failure.Detail
	}
	lost.MayHaveRun = true
	return nil, lost
}

// result returns a result that was kept.
func (r Record) result() (*messages.ToolResult, error) {
	decoded, _, err := results.Decode("tools/call", r.Result)
	if err != nil {
		return nil, err
	}
	result, is := decoded.(*mcp.CallToolResult)
	if !is {
		return nil, errUnreadable
	}
	return &messages.ToolResult{Result: result}, nil
}

// refusal returns the failure of a call that is not sent because of the record.
func (r Record) refusal(op *messages.CallTool, call string) *messages.Failure {
	f := messages.NewFailure(op, messages.CodeInvalid, "id: another call has had it")
	if r.Call == call {
		f.Code, f.Detail = messages.CodeRefused, "the call waits for an approval"
	}
	f.MayHaveRun = false
	return f
}

// unread returns the failure of a call whose record was not read or written.
func unread(ctx context.Context, op *messages.CallTool, err error) *messages.Failure {
	f := messages.NewFailure(op, messages.CodeUnavailable, "the store does not answer, and the call is durable")
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.Code = messages.CodeDeadline
	case ctx.Err() != nil:
		f.Code = messages.CodeCancelled
	case errors.Is(err, errUnreadable):
		f.Detail = err.Error()
	}
	f.Cause, f.MayHaveRun = err, true
	return f
}

// gaveUp returns the failure of a call whose context has ended before it was known what became of it.
func gaveUp(ctx context.Context, op *messages.CallTool, detail string) *messages.Failure {
	f := messages.NewFailure(op, messages.CodeLost, detail+", and its answer did not come in time")
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.Code = messages.CodeCancelled
	}
	f.MayHaveRun = true
	return f
}

// readdressed returns a failure that was kept as the reply to whoever asks again.
func readdressed(op *messages.CallTool, kept *messages.Failure) *messages.Failure {
	f := messages.NewFailure(op, messages.CodeRefused, "the call was given up before it was sent")
	if kept != nil {
		f.Code, f.Detail, f.Remedy = kept.Code, kept.Detail, kept.Remedy
	}
	f.MayHaveRun = false
	return f
}

// failureOf returns an error as a failure of a call.
func failureOf(op *messages.CallTool, err error) *messages.Failure {
	if f, is := errors.AsType[*messages.Failure](err); is && f != nil {
		own := *f
		return &own
	}
	f := messages.NewFailure(op, messages.CodeInternal, err.Error())
	f.Cause, f.MayHaveRun = err, true
	return f
}

// resolve asks the function of the configuration what became of a call.
func (b *Book) resolve(ctx context.Context, op *messages.CallTool) (resolution messages.Resolution, result *messages.ToolResult, err error) {
	raw, err := guard.Call(func() (raw *mcp.CallToolResult, err error) {
		resolution, raw, err = b.cfg.Resolve(context.WithValue(ctx, caller.DurableKey{}, nil), op)
		return raw, err
	})
	if raw != nil {
		result = &messages.ToolResult{Result: raw}
	}
	return resolution, result, err
}
