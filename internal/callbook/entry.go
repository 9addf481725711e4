package callbook

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// TokenKey is the key of the id of a call in the _meta of its params.
const TokenKey = "io.github.mcpactor/call-id"

// Entry is the record of a call while somebody in this process works on the call: who asks for it, and the run that sends it.
// Its methods may be called from any goroutine.
//
//	Begin ──▶ Became ──▶ Ran
//	 ▲│         └──────▶ Lost
//	 │├───▶ NotRun, Ran
//	 └┴───▶ Asks
type Entry struct {
	book  *Book
	key   messages.Key
	call  string // what DigestOf returns
	op    *messages.CallTool
	token string // of the call, unless it has a record
	me    string // in the field By of records
	over  chan struct{}

	users   int    // guarded by the mutex of the book
	turn    turn   // of who uses what follows, also while the store is asked
	known   Record // as it was last read or written
	version uint64
	isStale bool // the record may be another one: it is read before it is changed
	isTask  bool // the call has become a task here, also if that could not be written
	moved   bool // somebody else has changed the record, so that the call was not sent
}

// Hold keeps the entry until Release, and reports whether it does: not if nobody in this process asks for the call any more.
func (e *Entry) Hold() bool {
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	if e.users == 0 {
		return false
	}
	e.users++
	return true
}

// Release ends the use of the entry. Then others ask for the call.
func (e *Entry) Release() {
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	if e.users--; e.users == 0 {
		delete(e.book.entries, e.key)
		close(e.over)
	}
}

// isHeld reports whether a run that was given up still has the entry.
func (e *Entry) isHeld() bool {
	e.book.mu.Lock()
	defer e.book.mu.Unlock()
	return e.users > 1
}

// Mark returns the call with the id that its server sees.
func (e *Entry) Mark(op *messages.CallTool) *messages.CallTool {
	e.turn.take()
	defer e.turn.end()
	marked, params := *op, *op.Params
	if params.Meta = maps.Clone(params.Meta); params.Meta == nil {
		params.Meta = map[string]any{}
	}
	params.Meta[TokenKey] = cmp.Or(e.known.Token, e.token)
	marked.Params = &params
	return &marked
}

// Task returns the id of the task that the call has become, or "".
func (e *Entry) Task() string {
	r := e.record()
	if r.State != Task || r.Call != e.call {
		return ""
	}
	return r.Task
}

// record returns the record as it was last read or written.
func (e *Entry) record() Record {
	e.turn.take()
	defer e.turn.end()
	return e.known
}

// Round returns what the server of the call has last asked for, if the next round may be sent, or nil.
func (e *Entry) Round() []byte {
	r := e.record()
	if r.State != Asked || r.Call != e.call {
		return nil
	}
	return r.Round
}

// maxRound is the size of the largest questions of a server that are kept, with its state. A call with larger ones is lost when its
// process ends.
const maxRound = 64 << 10

// Asks writes what the server of the call asks for.
func (e *Entry) Asks(ctx context.Context, round []byte) {
	e.note(ctx, func(r Record) (Record, bool) { return r.Asks(round), e.sent(r) && len(round) <= maxRound })
}

// RoundNotSent writes that the next round was certainly not sent.
func (e *Entry) RoundNotSent(ctx context.Context) {
	e.note(ctx, func(r Record) (Record, bool) { return r.Asks(r.Round), e.sent(r) && r.Round != nil })
}

// hasBegun reports whether the call has become a task, or its server has asked for input.
func (e *Entry) hasBegun() bool {
	e.turn.take()
	defer e.turn.end()
	return e.isTask || e.known.State == Task || e.known.State == Asked
}

// Begin writes that the call is about to be sent, and not after the deadline of ctx. Without an error it may be sent. An entry may
// begin again: the call is sent once more because that is safe.
func (e *Entry) Begin(ctx context.Context) error {
	ends, limited := ctx.Deadline()
	if !limited {
		ends = time.Now().Add(keptAfter)
	}
	ends = ends.Add(e.book.cfg.Grace)
	began, err := e.change(ctx, func(r Record) (Record, bool) {
		if r.State == None {
			r = Record{State: Allowed, Call: e.call, Token: e.token, Key: e.op.Key.Normal(), Tool: e.op.Params.Name, Since: time.Now()}
		}
		return r.Send(e.me, ends), (r.State == Allowed || r.State == Asked) && r.Call == e.call
	})
	switch {
	case err != nil:
		return err
	case !began && !e.isMine():
		e.turn.take()
		defer e.turn.end()
		e.moved = true
		return errMoved
	}
	e.turn.take()
	defer e.turn.end()
	e.moved = false // an earlier attempt may have found another one
	return nil
}

// isMine reports whether the call was sent by this entry.
func (e *Entry) isMine() bool { return e.sent(e.record()) }

// Became writes that the call is a task of its server.
func (e *Entry) Became(ctx context.Context, task string) {
	e.note(ctx, func(r Record) (Record, bool) {
		e.isTask = true
		return r.Become(task), e.sent(r)
	})
}

// NotRun writes that the call has certainly not run. It does nothing if the call has become a task: then only a question about that
// was not sent.
func (e *Entry) NotRun(ctx context.Context) {
	e.note(ctx, func(r Record) (Record, bool) { return r.Allow(), e.sent(r) && !e.isTask })
}

// Lost writes that the call will not be answered any more. It may have run.
func (e *Entry) Lost(ctx context.Context, f *messages.Failure) {
	e.note(ctx, func(r Record) (Record, bool) { return r.Lose(e.book.keptFailure(f)), e.sent(r) || r.State == Task })
}

// Ran writes that the call has run, with its result if that is kept.
func (e *Entry) Ran(ctx context.Context, result messages.Result) {
	tool, _ := result.(*messages.ToolResult)
	raw, until := e.book.kept(tool)
	e.note(ctx, func(r Record) (Record, bool) {
		return r.Finish(raw, until), e.sent(r) || r.State == Task || r.State == Unknown || r.State == Asking
	})
}

// sent reports whether a record says that this entry has sent the call.
func (e *Entry) sent(r Record) bool { return r.State == Sent && r.By == e.me }

// note changes the record, and logs why if that is not possible.
func (e *Entry) note(ctx context.Context, next func(Record) (Record, bool)) {
	if _, err := e.change(ctx, next); err != nil {
		e.book.cfg.Warn(e.key.Scope, err)
	}
}

// load reads the record.
func (e *Entry) load(ctx context.Context) error {
	e.turn.take()
	defer e.turn.end()
	e.moved = false
	return e.read(ctx)
}

// loadOf reads the record of a call, also that of version 0.2.
func (e *Entry) loadOf(ctx context.Context, op *messages.CallTool) error {
	if err := e.load(ctx); err != nil || e.known.State != None || !e.book.IsKept() {
		return err
	}
	r, err := e.book.legacy.find(ctx, e.book, op, e.call)
	if err == nil && r.State != None {
		e.known = r
	}
	return err
}

// read reads the record, in the turn of the caller. What is known stays known if that fails.
func (e *Entry) read(ctx context.Context) error {
	r, version, err := e.book.load(ctx, e.key)
	if e.isStale = err != nil; e.isStale {
		return err
	}
	e.known, e.version = r, version
	return nil
}

// maxTries is how often a change is tried while others change the record.
const maxTries = 8

// change changes the record, as next says about the one that there is, and reports whether next wanted it.
func (e *Entry) change(ctx context.Context, next func(Record) (Record, bool)) (changed bool, err error) {
	e.turn.take()
	defer e.turn.end()
	for range maxTries {
		if e.isStale {
			if err := e.read(ctx); err != nil {
				return false, err
			}
		}
		to, wanted := next(e.known)
		if !wanted {
			return false, nil
		}
		if done, err := e.swap(ctx, to); done || err != nil {
			return done, err
		}
	}
	return false, errContended
}

// swap saves the next record, and reports whether it did: not if somebody else has changed the record.
func (e *Entry) swap(ctx context.Context, to Record) (done bool, err error) {
	record, err := to.encode(e.version + 1)
	if err != nil {
		return false, err
	}
	done, err = e.book.store.Swap(context.WithoutCancel(ctx), e.key, e.version, record)
	if err != nil { // it may have been saved
		if e.read(ctx) != nil {
			return false, err
		}
		now, wrong := e.known.encode(e.version)
		if done = wrong == nil && bytes.Equal(now.Call, record.Call); !done {
			return false, err
		}
	}
	if e.isStale = !done; done {
		if to.State != e.known.State && (to.State == Sent || to.State == Failed) {
			e.book.noteSent(ctx, e.key)
		}
		e.known, e.version = to, record.Version
		e.book.note(e.key, to.State == Proposed)
	}
	return done, nil
}
