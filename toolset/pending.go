package toolset

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/messages"
)

// Pending is a call that waits for [Toolset.Answer], because its [Policy] has returned [Defer]. It is kept for 30 days, in the
// store of the supervisor, or else until that stops. It is the cause of the [*messages.Failure] of the call: use
// [errors.AsType] to find it. Read-only.
//
// A framework that can suspend its run does so with the ID and the Digest, and calls Answer when the run is resumed.
type Pending struct {
	// ID is that of the call. It is another one if the call has none, if an earlier call with this ID is over, or if the tool is
	// called on a session of another scope, see [Filter.Scope]. While the call is pending, its ID is refused for any other
	// call: another tool, definition or arguments.
	ID string `json:"id"`
	// Digest identifies what the decision is about: the server, the tool, its definition and the arguments. An answer names it.
	Digest string `json:"digest"`
	// Key is the session that the tool is called on.
	Key messages.Key `json:"key"`
	// Tool is the name that the server gives the tool, and Name the safe name.
	Tool string `json:"tool"`
	Name string `json:"name"`
	// Definition is the digest of the definition, see [Tool.Digest].
	Definition string `json:"definition"`
	// Arguments are the arguments, a JSON object as the model wrote it.
	Arguments json.RawMessage `json:"arguments"`
	// Since is when the call was proposed.
	Since time.Time `json:"since"`
	// Attributes and Trace are those of the call.
	Attributes messages.Attributes `json:"attributes,omitzero"`
	Trace      messages.Trace      `json:"trace,omitzero"`
}

// Error says that the call waits for an answer, and has no arguments.
func (p *Pending) Error() string {
	return fmt.Sprintf("tools/call %.100q on %s waits for an answer under the id %.100q", p.Tool, p.Key, p.ID)
}

// LogValue returns what Error does.
func (p *Pending) LogValue() slog.Value { return slog.StringValue(p.Error()) }

// kept is a Pending as its record has it.
type kept struct {
	Pending
	Scope string `json:"scope"` // of the toolset
}

// maxID bounds the ids that are kept, in bytes.
const maxID = 1 << 10

// isDurable reports whether a context makes calls durable.
func isDurable(ctx context.Context) bool {
	_, is := messages.DurableOf(ctx)
	return is
}

// pendingFor is how long a call waits for an answer.
const pendingFor = 30 * 24 * time.Hour

// propose returns a call as it waits for an answer. shown is that of suspend.
func (t *Toolset) propose(ctx context.Context, tool *Tool, call *messages.CallTool, shown *Pending) *Pending {
	raw, _ := call.Params.Arguments.(json.RawMessage)
	p := &Pending{
		ID: call.ID, Key: call.Key.Normal(), Tool: tool.Original, Name: tool.Name, Definition: tool.Digest,
		Arguments: raw, Since: time.Now(), Attributes: call.Attributes, Trace: call.Trace,
	}
	p.Digest = fmt.Sprintf("sha256:%x", sha256.Sum256(fmt.Appendf(nil, "%s %s", callbook.DigestOf(p.call(messages.Header{})), p.Definition)))
	switch {
	case shown != nil:
		p.ID = shown.ID
	case p.ID == "" || len(p.ID) > maxID || !utf8.ValidString(p.ID):
		p.ID = rand.Text()
	case !isDurable(ctx) && p.Key.Scope != t.scope():
		// Other toolsets may use the session, and the same id.
		p.ID = fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q %q", t.scope(), p.ID)))
	}
	return p
}

// call returns the message that calls the tool, with the fields of h.
func (p *Pending) call(h messages.Header) *messages.CallTool {
	h.ID, h.Key = p.ID, p.Key
	if h.Attributes.Len() == 0 {
		h.Attributes = p.Attributes
	}
	h.Trace = cmp.Or(h.Trace, p.Trace)
	return &messages.CallTool{Header: h, Params: &mcp.CallToolParams{Name: p.Tool, Arguments: p.Arguments}}
}

// recordKey returns the key of the record of the call.
func (p *Pending) recordKey() messages.Key { return callbook.KeyOf(p.Key.Scope, p.ID) }

// pendingOf returns the call of a record that waits for an answer, or nil if it is none of this toolset.
func (t *Toolset) pendingOf(r *callbook.Record) *Pending {
	var p kept
	if len(r.Proposal) == 0 || json.Unmarshal(r.Proposal, &p) != nil || p.Scope != t.scope() {
		return nil
	}
	p.Arguments = r.Arguments
	return &p.Pending
}

// suspend keeps a call until its answer, and returns the failure that says so. shown is the call as it was pending before, if
// its answer was for another definition, or nil.
func (t *Toolset) suspend(ctx context.Context, tool *Tool, call *messages.CallTool, shown *Pending) error {
	if ctx.Err() != nil {
		return unanswered(ctx, call)
	}
	p := t.propose(ctx, tool, call, shown)
	known, changed, err := t.keep(ctx, p, shown)
	if isFree := err == nil && !changed && shown == nil && !known.IsInUse(time.Now()); isFree && !isDurable(ctx) {
		p.ID = rand.Text() // an earlier call had its id
		known, changed, err = t.keep(ctx, p, nil)
	}
	if same := t.pendingOf(&known); !changed && err == nil && shown == nil && known.State == callbook.Proposed && same != nil && same.Digest == p.Digest {
		p, changed = same, true
	}
	f := waits(call, p)
	switch {
	case changed && isWithdrawn(ctx):
		return t.withdraw(ctx, p.call(call.Header))
	case changed:
		return f
	case err != nil && shown == nil:
		return broken(call, err)
	case err != nil: // it can be answered again
		return storeFailed(p.ID, err)
	case shown != nil:
		f.Code, f.Detail, f.Cause = messages.CodeCancelled, "the call was cancelled while it was answered", nil
	default:
		f.Code, f.Detail, f.Cause = messages.CodeInvalid, "id: another call has it: answer or cancel that one first, or use another id", nil
		f.MayHaveRun = isDurable(ctx) && known.State != callbook.Proposed // it may be the same call
	}
	return f
}

// waits returns the failure of a call that waits for an answer.
func waits(call *messages.CallTool, p *Pending) *messages.Failure {
	f := messages.NewFailure(call, messages.CodeRefused, "the call waits for an approval")
	f.MayHaveRun, f.Cause = false, p
	return f
}

// keep writes that a call waits for an answer, in place of shown, or if there is no other call with its id. It returns the record
// that there is then.
func (t *Toolset) keep(ctx context.Context, p, shown *Pending) (now callbook.Record, changed bool, err error) {
	own := kept{*p, t.scope()}
	own.Arguments = nil // the record has them until the call is over
	raw, err := json.Marshal(own)
	if err != nil {
		return now, false, err
	}
	return t.book.Propose(ctx, p.recordKey(), func(r callbook.Record) (callbook.Record, bool) {
		next := callbook.Propose(p.call(messages.Header{}), raw, p.Since, p.Since.Add(pendingFor))
		if r.State == callbook.None {
			return next, shown == nil
		}
		known := t.pendingOf(&r)
		return next, shown != nil && r.State == callbook.Proposed && known != nil && known.Digest == shown.Digest
	})
}

// storeFailed returns the failure of a call whose record was not read or written.
func storeFailed(id string, err error) *messages.Failure {
	f := unsettled(id, messages.CodeUnavailable, "the store with the call does not answer")
	f.Cause = err
	return f
}

// found is a call with its record.
type found struct {
	callbook.Record
	*Pending
}

// recordsOf returns the calls of the toolset with an id. Those on sessions of different scopes may have the same one. The error is a
// [*messages.Failure].
func (t *Toolset) recordsOf(ctx context.Context, id string) (all []found, err error) {
	for _, scope := range t.scopes() {
		r, err := t.book.Find(ctx, callbook.KeyOf(scope, id))
		if err != nil {
			return nil, storeFailed(id, err)
		}
		if r == nil {
			continue
		}
		if p := t.pendingOf(r); p != nil && p.ID == id {
			all = append(all, found{*r, p})
		}
	}
	if len(all) == 0 {
		return nil, unsettled(id, messages.CodeInvalid, fmt.Sprintf("no call waits for an answer under the id %.100q", id))
	}
	return all, nil
}

// scopes returns the scopes whose sessions the toolset uses.
func (t *Toolset) scopes() []string {
	scopes := []string{t.scope()}
	for _, f := range t.cfg.Servers {
		if scope := (messages.Key{Scope: f.Scope}).Normal().Scope; f.Scope != "" && !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// Pending returns the calls of the toolset that wait for an answer, the oldest first. The error is a [*messages.Failure]: the
// store does not answer, or the toolset was closed.
func (t *Toolset) Pending(ctx context.Context) ([]*Pending, error) {
	leave, f := t.enter(ctx)
	if f != nil {
		return nil, f
	}
	defer leave()
	var all []*Pending
	err := t.book.Waiting(ctx, func(r callbook.Record) {
		if p := t.pendingOf(&r); p != nil {
			all = append(all, p)
		}
	})
	if err != nil {
		return nil, &messages.Failure{Code: messages.CodeUnavailable, Detail: "the store with the calls does not answer", Cause: err}
	}
	slices.SortFunc(all, func(a, b *Pending) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}

// Answer answers whether the call that is [Pending] under an id may be sent. digest is that of the Pending that was shown: the
// answer is about nothing else. If the verdict is [Allow], the call is sent at once, and Answer returns its result as
// [Toolset.Call] does. With a store the call is durable, see [messages.CallTool.Durable]. If the definition of the tool has changed
// since, the policy decides anew. If it defers the decision, the error has a [Pending] with a new Digest. Any other verdict than
// [Allow] and [Deny] is an error, and the call stays pending. It also stays pending if its server could not be listed, if the
// store did not take the answer, or if ctx ended before: the cause of the failure is the [Pending] then.
//
// Who answers again, in this process or in another one, does not send the call again, but gets what became of it, or waits for
// that, whatever the verdict. So does who answers after a [Toolset.Cancel]. If that is not known, the code is
// [messages.CodeLost], and MayHaveRun is true. If the call was allowed and not sent, because its process has died, it is sent, or
// denied. The code is [messages.CodeInvalid] if no call has the id and the digest.
func (t *Toolset) Answer(ctx context.Context, id, digest string, answer Decision) (*messages.ToolResult, error) {
	return t.answer(ctx, messages.Header{}, id, digest, answer)
}

// answer is [Toolset.Answer] with a header for the message.
func (t *Toolset) answer(ctx context.Context, h messages.Header, id, digest string, answer Decision) (*messages.ToolResult, error) {
	leave, f := t.enter(ctx)
	if f != nil {
		f.MayHaveRun = true
		return nil, f
	}
	defer leave()
	if !answer.final() {
		return nil, unsettled(id, messages.CodeInvalid, fmt.Sprintf("the verdict is %.100q: answer with allow or deny", answer.Verdict))
	}
	c, err := t.shown(ctx, id, digest)
	if err != nil {
		return nil, err
	}
	h = headerOf(ctx, h)
	h.ID = id
	if c.State == callbook.Proposed || c.State == callbook.Allowed {
		settled, err := t.settle(ctx, h, c.Pending, answer)
		if !settled { // by this answer
			_, err = t.shown(ctx, id, digest)
		}
		if err != nil {
			return nil, err
		}
	}
	if answer.Verdict == Deny || c.IsOver() {
		return t.learn(ctx, c, h, answer)
	}
	return t.send(ctx, c.call(h))
}

// learn returns what became of a call, and sends nothing: a call that may be sent is denied.
func (t *Toolset) learn(ctx context.Context, c found, h messages.Header, answer Decision) (*messages.ToolResult, error) {
	call := c.call(h)
	result, err := t.book.DoAs(ctx, call, c.Call, func(_ context.Context, e *callbook.Entry) (messages.Result, error) {
		if e.Task() == "" {
			return nil, refusal(call, answer)
		}
		f := messages.NewFailure(call, messages.CodeLost, "it is too late: the call runs as a task of its server")
		f.MayHaveRun = true
		return nil, f
	})
	return toolResult(result, err)
}

// toolResult returns the result of a call.
func toolResult(result messages.Result, err error) (*messages.ToolResult, error) {
	if err != nil {
		return nil, err
	}
	return result.(*messages.ToolResult), nil
}

// unsettled returns the failure of a call of which it is not known whether it has run.
func unsettled(id string, code messages.Code, detail string) *messages.Failure {
	return &messages.Failure{ID: id, Op: "tools/call", Code: code, Detail: detail, MayHaveRun: true}
}

// shown returns the call that was shown with an id and a digest.
func (t *Toolset) shown(ctx context.Context, id, digest string) (found, error) {
	all, err := t.recordsOf(ctx, id)
	if err != nil {
		return found{}, err
	}
	f := unsettled(id, messages.CodeInvalid, fmt.Sprintf("digest: the call with the id %.100q is another one: answer with the digest of the call that was shown", id))
	f.MayHaveRun = false
	for _, c := range all {
		if c.Digest == digest {
			return c, nil
		}
		f.MayHaveRun = f.MayHaveRun || c.State != callbook.Proposed
	}
	return found{}, f
}

// headerOf returns a header with the attributes and the trace of a context, unless it has its own.
func headerOf(ctx context.Context, h messages.Header) messages.Header {
	if h.Attributes.Len() == 0 {
		h.Attributes = messages.AttributesOf(ctx)
	}
	h.Trace = cmp.Or(h.Trace, traceOf(ctx))
	return h
}

// settle answers a call that is pending, and writes the answer. Who denies also answers a call that was allowed and not sent: it is
// not sent for that. The call is not settled if somebody else has answered or cancelled it meanwhile.
func (t *Toolset) settle(ctx context.Context, h messages.Header, p *Pending, answer Decision) (settled bool, err error) {
	if t.cfg.Policy != nil {
		t.cfg.Policy.remember(definitionKey{p.Key.Server, p.Tool, p.Definition}, answer)
	}
	failed := t.check(ctx, h, p, answer)
	if isWithdrawn(ctx) {
		return true, t.withdraw(ctx, p.call(h))
	}
	if _, waits := errors.AsType[*Pending](failed); waits {
		return true, failed
	}
	is := func(r callbook.Record, state callbook.State) bool {
		known := t.pendingOf(&r)
		return r.State == state && known != nil && known.Digest == p.Digest
	}
	f, _ := errors.AsType[*messages.Failure](failed)
	now, changed, wrong := t.book.Change(ctx, p.recordKey(), func(r callbook.Record) (callbook.Record, bool) {
		switch {
		case failed == nil:
			return r.Allow(), is(r, callbook.Proposed) || is(r, callbook.Allowed)
		case f != nil && (f.Code == messages.CodeInvalid || f.Code == messages.CodeRefused):
			return r.Fail(f), is(r, callbook.Proposed) || is(r, callbook.Allowed) && answer.Verdict == Deny
		}
		return r, false // it still waits
	})
	if wrong != nil {
		f = storeFailed(p.ID, wrong)
	}
	switch {
	case changed:
		return true, failed
	case f != nil && is(now, callbook.Proposed):
		still := *f
		still.MayHaveRun, still.Cause = false, errors.Join(p, f.Cause)
		return true, &still
	case wrong != nil:
		return true, f
	case f != nil && is(now, callbook.Allowed): // it may not be sent now; who has allowed it before may send it
		still := *f
		still.MayHaveRun = true
		return true, &still
	}
	return false, nil
}

// check returns the failure of a call that may not be sent, although it was answered, or nil.
func (t *Toolset) check(ctx context.Context, h messages.Header, p *Pending, answer Decision) error {
	switch {
	case ctx.Err() != nil:
		return unanswered(ctx, p.call(h))
	case answer.Verdict == Deny:
		return refusal(p.call(h), answer)
	}
	_, err := t.approve(ctx, h, p.Name, p.Arguments, p)
	return err
}

// Cancel cancels the call that is [Pending] under an id, or has been. Without an error it has not run, and will not. It also cancels
// a durable call, and a [Use] that is under way, if this process has sent them. The error, a [*messages.Failure], says that the call may have run.
func (t *Toolset) Cancel(ctx context.Context, id string) error {
	leave, f := t.enter(ctx)
	if f != nil {
		f.MayHaveRun = true
		return f
	}
	defer leave()
	underWay := t.process.cancel(errWithdrawn, func(u *use) bool { return u.id == id })
	err := t.drop(ctx, id)
	if underWay && errors.Is(err, messages.CodeInvalid) {
		return unsettled(id, messages.CodeCancelled, "the reply to the use says what became of it")
	}
	return err
}

// errWithdrawn is why the context of a call ends that was cancelled by its id.
var errWithdrawn = fmt.Errorf("cancelled by its id: %w", context.Canceled)

// isWithdrawn reports whether a call was cancelled by its id.
func isWithdrawn(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errWithdrawn) }

// withdraw makes sure that a call which was cancelled by its id does not wait any more, and returns its failure.
func (t *Toolset) withdraw(ctx context.Context, call *messages.CallTool) error {
	if err := t.drop(ctx, call.ID); err != nil {
		return err
	}
	return unanswered(ctx, call)
}

// drop writes that the calls with an id will never run, and cancels those that were sent.
func (t *Toolset) drop(ctx context.Context, id string) error {
	all, err := t.recordsOf(ctx, id)
	if err != nil {
		return t.dropDurable(ctx, id, err)
	}
	var left error
	for _, c := range all {
		if f := t.dropOne(ctx, c.recordKey(), c.Record, id); f != nil {
			left = f
		}
	}
	return left
}

// dropDurable cancels a durable call of which nobody was asked. none is the error if there is none.
func (t *Toolset) dropDurable(ctx context.Context, id string, none error) error {
	for _, scope := range t.scopes() {
		key := callbook.KeyOf(scope, id)
		if r, err := t.book.Find(ctx, key); err == nil && r != nil && len(r.Proposal) == 0 && r.Key.Server != "" {
			if f := t.dropOne(ctx, key, *r, id); f != nil {
				return f
			}
			return nil
		}
	}
	return none
}

// dropOne returns the failure of a call that may have run, although it was cancelled, or nil.
func (t *Toolset) dropOne(ctx context.Context, key messages.Key, of callbook.Record, id string) *messages.Failure {
	cancelled := &messages.Failure{ID: id, Key: of.Key, Op: "tools/call", Target: of.Tool, Code: messages.CodeCancelled}
	now, _, err := t.book.Change(ctx, key, func(r callbook.Record) (callbook.Record, bool) {
		return r.Cancel(cancelled), r.Call == of.Call && !r.IsOver() && !r.Cancelled
	})
	left := unsettled(id, messages.CodeCancelled, "the call was sent before")
	switch {
	case err != nil:
		left = storeFailed(id, err)
	case now.State == callbook.Failed:
		return nil
	case now.State == callbook.Done:
		left.Detail = "it is too late: the call has run"
	default:
		t.client.Cancel(of.Key, id)
	}
	left.Key, left.Target = of.Key, of.Tool
	return left
}
