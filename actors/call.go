package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// call is an operation that was accepted, and owes its caller one reply. It
// belongs to the registry until it is forwarded, then to the session.
type call struct {
	op       messages.Operation
	key      messages.Key
	caller   *actor.PID // nil: nobody wants the reply
	deadline time.Time
	serial   uint64 // in the order in which operations came

	runs       int              // how often it was given to a connection
	generation uint64           // of the connection it was last given to
	lost       *mcpbridge.Error // what became of the first run, if it may have run
	lostIn     uint64           // the generation of that
	needsHint  bool             // it may run again only if its tool turns out to be safe
	replied    bool             // it got its reply, though it may run still

	in         *queue // that it stands in, or nil
	prev, next *call  // its neighbors there

	deadlineCtx deadlineContext // what it runs under, once it has run

	// While it runs:
	conn   mcpbridge.Conn
	cancel context.CancelFunc
}

// deadlineContext is a context that tells a deadline, and does not end by itself: at the
// deadline the session cancels what is derived from it, so that there is no timer for
// each call.
type deadlineContext struct {
	context.Context
	deadline time.Time
}

// Deadline returns the deadline.
func (u *deadlineContext) Deadline() (time.Time, bool) { return u.deadline, true }

// failure returns the reply for a call that did not go well.
func (k *call) failure(code messages.Code, detail string) *messages.Failure {
	f := messages.NewFailure(k.op, code, detail)
	f.Key, f.Generation, f.Replayed, f.MayHaveRun = k.key, k.generation, k.runs > 1, k.lost != nil
	return f
}

// failureOf returns the reply for what the bridge said.
func (k *call) failureOf(e *mcpbridge.Error) *messages.Failure {
	f := k.failure(e.Class.Code(), e.ForCaller())
	f.MayHaveRun = f.MayHaveRun || e.MayHaveRun()
	f.RetryAfter, f.Cause = e.RetryAfter, e
	return f
}

// unavailable returns the reply for a call that gets no connection, because of e.
func (k *call) unavailable(e *mcpbridge.Error) *messages.Failure {
	if k.lost != nil {
		return k.failureOf(k.lost)
	}
	f := k.failureOf(e)
	f.MayHaveRun = false
	switch e.Class {
	case mcpbridge.Lost, mcpbridge.Expired, mcpbridge.Internal: // that was another call, and what was said of it
		f.Code, f.Detail = messages.CodeUnavailable, e.Detail
	}
	return f
}

// addReceipt fills in what every result carries.
func (k *call) addReceipt(result messages.Result) messages.Result {
	r := result.GetReceipt()
	r.Key, r.ID, r.Generation, r.Replayed = k.key, k.op.RequestID(), k.generation, k.runs > 1
	return result
}

// mayReplay says whether a call that did not succeed may be given to the next
// connection: at most once, and only when that is safe. ask is true when it
// depends on the tool's annotations, which are not known.
func (k *call) mayReplay(e *mcpbridge.Error) (yes, ask bool) {
	replay := k.op.Head().Replay
	switch {
	case k.runs > 1 || replay == messages.ReplayNever:
		return false, false
	case e.Class == mcpbridge.Expired || e.Class == mcpbridge.NotSent:
		return true, false
	case e.Class != mcpbridge.Lost:
		return false, false
	case replay == messages.ReplayAlways || k.op.Idempotent():
		return true, false
	}
	safe, known := k.conn.Hint(k.tool())
	return safe || !known, !known
}

// matches reports whether a call is to be given up.
func (m *cancelCalls) matches(k *call) bool {
	return k == m.call || m.call == nil && k.op.RequestID() == m.id && k.serial <= m.upTo
}

// tool returns the name of the tool that is called, or "".
func (k *call) tool() string {
	if op, ok := k.op.(*messages.CallTool); ok {
		return op.Params.Name
	}
	return ""
}

// subscription returns the URI that the call subscribes to, or no more. Such calls
// for one URI run one after the other: the last one decides.
func (k *call) subscription() (uri string, is bool) {
	switch op := k.op.(type) {
	case *messages.Subscribe:
		return op.URI, true
	case *messages.Unsubscribe:
		return op.URI, true
	}
	return "", false
}

// perform runs the call on conn. It may block.
func (k *call) perform(ctx context.Context, conn mcpbridge.Conn) (result messages.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicked(r)
		}
	}()
	if _, ok := k.op.(*messages.Open); ok {
		info := conn.Info()
		return &messages.SessionInfo{Server: info.Server, Stateless: info.Stateless}, nil
	}
	return conn.Do(ctx, k.op)
}
