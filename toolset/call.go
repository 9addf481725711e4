package toolset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/internal/tracecontext"
	"github.com/mcpactor/mcpactor/messages"
)

// Call calls the tool of a safe name, and waits for the result: see [Toolset.Approve] for the
// arguments and for what comes before, and [supervisor.Client] for ctx. All errors are of type
// [*messages.Failure]: [Toolset.Outcome] converts them and the result for the model. The cause of
// the error is a [*Pending] if the call waits for [Toolset.Answer].
//
// The toolset itself answers calls of [FindTool] and [ReadTool].
func (t *Toolset) Call(ctx context.Context, name string, arguments any) (*messages.ToolResult, error) {
	var h messages.Header
	if ctx != nil {
		h.ID, _ = ctx.Value(caller.IDKey{}).(string)
	}
	return t.use(ctx, h, name, arguments)
}

// use is [Toolset.Call] with a header for the message.
func (t *Toolset) use(ctx context.Context, h messages.Header, name string, arguments any) (*messages.ToolResult, error) {
	leave, f := t.enter(ctx)
	if f != nil {
		return nil, f
	}
	defer leave()
	arguments, err := marshaled(ctx, name, arguments)
	if err != nil {
		return nil, err
	}
	switch name {
	case FindTool:
		return t.find(arguments)
	case ReadTool:
		return t.read(arguments)
	}
	call, err := t.approve(ctx, h, name, arguments, nil)
	if err != nil {
		return nil, err
	}
	if err := t.repeated(call); err != nil {
		return nil, err
	}
	return t.do(ctx, call)
}

// send sends the message of a call that was answered, and waits for the reply. The record of the call says whether it is sent.
func (t *Toolset) send(ctx context.Context, call *messages.CallTool) (*messages.ToolResult, error) {
	if t.book.IsKept() { // the supervisor finds the record
		call.Durable = true
		result, err := t.do(ctx, call)
		t.noteRefused(ctx, call, err)
		return result, err
	}
	result, err := t.book.Do(ctx, call, func(ctx context.Context, e *callbook.Entry) (messages.Result, error) {
		if err := e.Begin(ctx); err != nil {
			return nil, messages.NewFailure(call, messages.CodeCancelled, err.Error())
		}
		result, err := t.do(ctx, e.Mark(call))
		if err != nil {
			return nil, err
		}
		e.Ran(ctx, result)
		return result, nil
	})
	return toolResult(result, err)
}

// noteRefused writes that an answered call will never run, if somebody in front of its record has refused it, such as an interceptor.
func (t *Toolset) noteRefused(ctx context.Context, call *messages.CallTool, err error) {
	f, is := errors.AsType[*messages.Failure](err)
	if !is || f.MayHaveRun {
		return
	}
	_, _, wrong := t.book.Change(ctx, callbook.KeyOf(call.Key.Scope, call.ID), func(r callbook.Record) (callbook.Record, bool) {
		return r.Fail(f), r.State == callbook.Allowed && len(r.Proposal) > 0
	})
	f.MayHaveRun = wrong != nil // who answers again may send it
}

// do sends a call, and waits for the reply. If definitions have to be accepted, the call is for the session that has listed its tools. If that
// is gone, the call is sent once more, when the next one has listed the same definition.
func (t *Toolset) do(ctx context.Context, call *messages.CallTool) (*messages.ToolResult, error) {
	if !t.cfg.Policy.accepts() {
		return t.sendOnce(ctx, call)
	}
	call.Replay = messages.ReplayNever
	l := t.listOf(call.Key)
	before := t.definitionOf(l, call)
	result, err := t.sendOnce(ctx, call)
	f, is := errors.AsType[*messages.Failure](err)
	if isUnsent := is && !f.MayHaveRun && (f.Code == messages.CodeExpired || f.Code == messages.CodeLost); !isUnsent || call.Durable || before == "" {
		return result, err
	}
	if t.prove(ctx, l) != nil || t.definitionOf(l, call) != before {
		return nil, err
	}
	again := *call
	return t.sendOnce(ctx, &again)
}

// definitionOf returns the digest of the tool of a call in its list, or "" if it is not offered there.
func (t *Toolset) definitionOf(l *list, call *messages.CallTool) string {
	if l == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tool := range l.offered() {
		if tool.Original == call.Params.Name {
			return tool.Digest
		}
	}
	return ""
}

func (t *Toolset) sendOnce(ctx context.Context, call *messages.CallTool) (*messages.ToolResult, error) {
	reply, err := t.client.Do(ctx, call)
	if errors.Is(err, messages.CodeUnknownServer) {
		t.feed.mark(call.Key.Server)
	}
	t.noteReply(call, reply, err)
	if err != nil {
		return nil, err
	}
	return reply.(*messages.ToolResult), nil
}

// noteReply notes what the server has answered to a call, which the next one may repeat.
func (t *Toolset) noteReply(call *messages.CallTool, reply messages.Reply, err error) {
	if t.cfg.MaxRepeats < 0 {
		return
	}
	digest := callbook.DigestOf(call)
	t.mu.Lock()
	defer t.mu.Unlock()
	result, is := reply.(*messages.ToolResult)
	f, failed := errors.AsType[*messages.Failure](err)
	switch {
	case is && result.Attempt > 0: // else it was sent before
		t.repeats.End(digest, result.Result, time.Now())
	case failed && f.Attempt > 0:
		t.repeats.Fail(digest, f, time.Now())
	}
}

// repeated returns the failure of a call that is one more of a row, see [Config.MaxRepeats].
func (t *Toolset) repeated(call *messages.CallTool) error {
	if t.cfg.MaxRepeats < 0 {
		return nil
	}
	digest := callbook.DigestOf(call)
	t.mu.Lock()
	defer t.mu.Unlock()
	why, retryAfter := t.repeats.Begin(digest, t.cfg.MaxRepeats, time.Now())
	if why == "" {
		return nil
	}
	f := messages.NewFailure(call, messages.CodeRateLimited, why)
	f.RetryAfter = retryAfter
	return f
}

// Approve returns the message that calls the tool of a safe name, when [Config.Policy] allows it.
// Send it to the supervisor once. It is for programs that send their calls themselves: [Toolset.Call]
// and [Use] need no Approve.
//
// The arguments are a map or a struct that marshals to a JSON object, or the JSON text that a model
// has written: a [json.RawMessage], a []byte or a string. nil, null and an empty text stand for {}.
// The message has a copy of the arguments, and the attributes and the trace of ctx, see
// [messages.WithAttributes], or else the span of OpenTelemetry in ctx as its trace. Other fields of
// its header may be set, but for the key.
//
// Approve waits for the answer of [Policy.Ask], and no longer than ctx. If the name is unknown, it
// lists the tools of the servers that the name fits, and fails as the listing if such a server cannot
// be listed. With a policy, and with [Freeze], it also lists the tools of a server that may have changed them, so that
// the policy sees the current definition. If the definition has changed when the answer comes, it
// asks again, up to 8 times.
//
// All errors are of type [*messages.Failure]. The code is [messages.CodeInvalid] if there is no such
// tool, or the arguments are not a JSON object, and [messages.CodeRefused] if the policy denied the
// call, or has deferred the decision: the cause is a [*Pending] then.
func (t *Toolset) Approve(ctx context.Context, name string, arguments any) (*messages.CallTool, error) {
	leave, f := t.enter(ctx)
	if f != nil {
		return nil, f
	}
	defer leave()
	arguments, err := marshaled(ctx, name, arguments)
	if err != nil {
		return nil, err
	}
	return t.approve(ctx, messages.Header{}, name, arguments, nil)
}

// approve returns the message that calls a tool, with the fields of h. answered is the call as it was pending, if it has
// been answered that it may be sent, or nil.
func (t *Toolset) approve(ctx context.Context, h messages.Header, name string, arguments any, answered *Pending) (*messages.CallTool, error) {
	open, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	call, err := t.decide(open, h, name, arguments, answered)
	if err != nil && t.ctx.Err() != nil {
		return nil, errClosed()
	}
	return call, err
}

// maxRounds is how often a call is put to the policy because the definition of its tool changes.
const maxRounds = 8

func (t *Toolset) decide(ctx context.Context, h messages.Header, name string, arguments any, answered *Pending) (call *messages.CallTool, err error) {
	approved := "" // the digest of the definition that may be called
	if answered != nil {
		approved = answered.Definition
	}
	for range maxRounds {
		set, err := t.with(ctx, name)
		if err != nil {
			return nil, err
		}
		if call, err = set.prepare(ctx, h, name, arguments); err != nil {
			return nil, t.removed(set, name, err)
		}
		if id, is := messages.DurableOf(ctx); is && answered == nil {
			call.ID = id
			if known, err := t.again(ctx, call); known || err != nil {
				call.Durable = true
				return call, err
			}
		}
		tool := set.Tool(name)
		if t.cfg.Policy.accepts() {
			if f := t.cfg.Policy.refuses(tool); f != nil { // nobody accepts it any more
				f.Op = "tools/call"
				return nil, f
			}
			call.Replay = messages.ReplayNever // see do
		}
		if err := t.misfit(call, tool); err != nil {
			return nil, err
		}
		if t.cfg.Policy == nil || tool.Digest == approved {
			call.Durable = answered == nil && isDurable(ctx)
			return call, nil
		}
		decision, err := t.cfg.Policy.approve(context.WithValue(ctx, caller.DurableKey{}, nil), tool, call)
		switch {
		case err != nil:
			return nil, err
		case decision.Verdict == Defer:
			return nil, t.suspend(ctx, tool, call, answered)
		case decision.Verdict != Allow:
			return nil, refusal(call, decision)
		}
		approved = tool.Digest
	}
	return nil, messages.NewFailure(call, messages.CodeRefused, "the definition of the tool changes all the time")
}

// removed returns the failure of a call of a tool that the model was shown, and that its server has removed since, or else err.
func (t *Toolset) removed(set *Set, name string, err error) error {
	was := t.wasShown(name)
	if was == nil || set.Tool(name) != nil || !slices.Contains(set.catalog.servers, was.Server) {
		return err
	}
	mayHave := func(f *messages.Failure) bool {
		return f.Key.Server == was.Server && (f.Target == "" || f.Target == was.Original)
	}
	if slices.ContainsFunc(set.Missing, mayHave) || slices.ContainsFunc(set.LeftOut, mayHave) {
		return err
	}
	return &messages.Failure{
		Key: messages.Key{Server: was.Server, Scope: was.Scope}, Op: "tools/call", Target: was.Original, Code: messages.CodeInvalid,
		Detail: fmt.Sprintf("the server no longer has the tool %.100q", name),
	}
}

// again reports whether a durable call has a record, which says what became of it: nobody decides about it again, nor if there is no
// store, because the supervisor refuses it then. The error is that of a call that waits for an answer, or whose record cannot be read.
func (t *Toolset) again(ctx context.Context, call *messages.CallTool) (known bool, err error) {
	if !t.book.IsKept() || call.ID == "" {
		return true, nil
	}
	r, err := t.book.Find(ctx, callbook.KeyOf(call.Key.Scope, call.ID))
	switch {
	case err != nil:
		return false, storeFailed(call.ID, err)
	case r == nil, r.State == callbook.Allowed && len(r.Proposal) == 0: // it has not run
		return false, nil
	case r.State == callbook.Proposed && r.Call == callbook.DigestOf(call):
		if p := t.pendingOf(r); p != nil {
			return false, waits(call, p)
		}
	}
	return true, nil
}

// freezePatience bounds the wait of a call for the definition that it is compared with, see [Freeze].
const freezePatience = time.Second

// with returns a set that has the tool of a name, if there is one, in its current definition if
// there is a policy. The set says which servers could not be listed that may have the tool.
func (t *Toolset) with(ctx context.Context, name string) (*Set, error) {
	lists := t.current()
	set := t.known(nil)
	tool := set.Tool(name)
	if tool == nil {
		missing := t.refreshAll(ctx, slices.DeleteFunc(slices.Clone(lists), func(l *list) bool { return !fits(name, l.key.Server) }))
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, errGaveUp(ctx)
		}
		if set = t.known(missing); set.Tool(name) == nil || !t.cfg.Policy.accepts() {
			return set, nil
		}
		tool = set.Tool(name)
	}
	l := t.listOf(messages.Key{Server: tool.Server, Scope: tool.Scope})
	switch {
	case l == nil || t.cfg.Policy == nil && t.cfg.Stability != Freeze:
		return set, nil
	case t.cfg.Policy == nil:
		limited, cancel := context.WithTimeout(ctx, freezePatience)
		defer cancel()
		t.refresh(limited, l, t.join(ctx, l), time.Now()) //nolint:errcheck // then the last list counts
		return t.known(nil), nil
	}
	err := t.refresh(ctx, l, t.join(ctx, l), time.Now())
	if err == nil && t.cfg.Policy.accepts() {
		err = t.prove(ctx, l)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, errGaveUp(ctx)
		}
		return nil, beforeCall(err)
	}
	return t.known(nil), nil
}

// traceOf returns the trace of a context, or else that of the span of OpenTelemetry in it.
func traceOf(ctx context.Context) messages.Trace {
	trace := messages.TraceOf(ctx)
	return cmp.Or(trace, tracecontext.Of(ctx))
}
