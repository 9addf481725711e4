package toolset

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/storelimit"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Pending is a call that waits for [Toolset.Answer], because its [Policy] has returned [Defer]. It is
// kept in [Config.Store], or else in the toolset until that is closed. It is the cause of the
// [*messages.Failure] of the call: use [errors.AsType] to find it. Read-only.
//
// A framework that can suspend its run does so with the ID, and calls Answer when the run is resumed.
type Pending struct {
	// ID is that of the call, or else a random one. As long as the call is pending, another call with the same ID is
	// refused: one of another tool or definition, or with other arguments.
	ID string `json:"id"`
	// Key is the session that the tool is called on.
	Key messages.Key `json:"key"`
	// Tool is the name that the server gives the tool, and Name the safe name.
	Tool string `json:"tool"`
	Name string `json:"name"`
	// Digest is that of the definition that the decision is about, see [Tool.Digest].
	Digest string `json:"digest"`
	// Arguments are the arguments, a JSON object as the model wrote it.
	Arguments json.RawMessage `json:"arguments"`
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

// suspend keeps a call until its answer, and returns the failure that says so. answered is the call as it was pending
// before, if its answer was for another definition, or nil.
func (t *Toolset) suspend(ctx context.Context, tool *Tool, call *messages.CallTool, answered *Pending) error {
	raw, _ := call.Params.Arguments.(json.RawMessage)
	p := &Pending{
		ID: call.ID, Key: call.Key.Normal(), Tool: tool.Original, Name: tool.Name, Digest: tool.Digest,
		Arguments: raw, Attributes: call.Attributes, Trace: call.Trace,
	}
	if p.ID == "" {
		p.ID = rand.Text()
	}
	if err := t.pending.put(ctx, p, answered); errors.Is(err, errInUse) {
		return messages.NewFailure(call, messages.CodeInvalid, err.Error())
	} else if err != nil {
		return broken(call, err)
	}
	if ctx.Err() != nil { // it was cancelled meanwhile
		t.pending.drop(p.ID)
		return unanswered(ctx, call)
	}
	f := messages.NewFailure(call, messages.CodeRefused, "the call waits for an approval")
	f.Cause = p
	return f
}

// Answer answers whether the call that is [Pending] under an id may be sent. If the verdict is
// [Allow], it is sent at once, and Answer returns its result as [Toolset.Call] does. If the definition
// of the tool has changed since, the policy decides anew, and the call may be pending again under
// the same id. Any other verdict than [Allow] and [Deny] is an error, and the call stays pending. It also does if
// the call could not be sent because its server could not be listed, or because ctx ended before, but not if it was
// cancelled meanwhile with a [messages.Cancel].
//
// A call is removed before it is sent. The code of the error is [messages.CodeInvalid] if no call is pending under the id.
// It may have been sent after an earlier answer, also by a process that has ended since: the failure says that the call
// may have run, as does every other failure before the call was found.
func (t *Toolset) Answer(ctx context.Context, id string, answer Decision) (*messages.ToolResult, error) {
	return t.answer(ctx, messages.Header{}, id, answer)
}

// answer is [Toolset.Answer] with a header for the message.
func (t *Toolset) answer(ctx context.Context, h messages.Header, id string, answer Decision) (*messages.ToolResult, error) {
	leave, f := t.enter(ctx)
	if f != nil {
		f.MayHaveRun = true
		return nil, f
	}
	defer leave()
	wrong := notFound(id, messages.CodeInvalid, "")
	if !answer.final() {
		wrong.Detail = fmt.Sprintf("the verdict is %.100q: answer with allow or deny", answer.Verdict)
		return nil, wrong
	}
	p, err := t.pending.take(ctx, id)
	switch {
	case err != nil:
		wrong.Code, wrong.Detail, wrong.Cause = messages.CodeUnavailable, "the store with the call does not answer", err
		return nil, wrong
	case p == nil:
		wrong.Detail = fmt.Sprintf("no call waits for an answer under the id %.100q: it may have been answered before", id)
		return nil, wrong
	}
	h.ID, h.Key = p.ID, p.Key
	if h.Attributes.Len() == 0 && messages.AttributesOf(ctx).Len() == 0 {
		h.Attributes = p.Attributes
	}
	if h.Trace == (messages.Trace{}) && traceOf(ctx) == (messages.Trace{}) {
		h.Trace = p.Trace
	}
	if t.cfg.Policy != nil {
		t.cfg.Policy.remember(subject{p.Key.Server, p.Tool, p.Digest}, answer)
	}
	if answer.Verdict == Deny {
		t.pending.release(p)
		return nil, refusal(&messages.CallTool{Header: h, Params: &mcp.CallToolParams{Name: p.Tool}}, answer)
	}
	call, err := t.approve(ctx, h, p.Name, p.Arguments, p)
	if err == nil && ctx.Err() != nil {
		err = unanswered(ctx, call)
	}
	switch {
	case err != nil && !errors.Is(err, messages.CodeInvalid) && !errors.Is(err, messages.CodeRefused):
		_ = t.pending.back(context.WithoutCancel(ctx), p) // it may be answered again, unless the store fails
	case !t.pending.release(p) && err == nil:
		err = messages.NewFailure(call, messages.CodeCancelled, "the call was cancelled while it was answered")
	}
	if err != nil {
		return nil, err
	}
	return t.send(ctx, call)
}

// notFound returns the failure of an answer whose call was not found: it may have run.
func notFound(id string, code messages.Code, detail string) *messages.Failure {
	return &messages.Failure{ID: id, Op: "tools/call", Code: code, Detail: detail, MayHaveRun: true}
}

// pendingCalls has the calls of a toolset that are pending. Its methods may be called from any goroutine.
//
//	put ──▶ pending ──take──▶ taken ──release──▶ sent, or denied
//	           ▲  │             │ │
//	           └──┼────back─────┘ │
//	              └──────drop─────┴──▶ nobody wants it
type pendingCalls struct {
	scope string
	store mcpbridge.Store // nil if there is none
	turn  chan struct{}   // has a value while a method runs
	calls map[string]*Pending
	taken map[string]*Pending // that are being answered, and are not sent yet
}

// maxPending bounds the calls that are pending in memory.
const maxPending = 1 << 10

func newPendingCalls(cfg Config) pendingCalls {
	p := pendingCalls{scope: messages.Key{Scope: cfg.Scope}.Normal().Scope, turn: make(chan struct{}, 1), calls: map[string]*Pending{}, taken: map[string]*Pending{}}
	if cfg.Store != nil {
		p.store = storelimit.New(cfg.Store)
	}
	return p
}

// errInUse is the error of a call whose id another one has that is pending.
var errInUse = errors.New("id: another call waits for an answer under it: answer or cancel that one first, or use another id")

// put keeps a call. answered is nil, or was taken and is replaced.
func (p *pendingCalls) put(ctx context.Context, call, answered *Pending) error {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if taken := p.taken[call.ID]; taken != nil && taken != answered {
		return call.sharesID(taken) // if it is the same call, its answer is for both
	}
	known, err := p.load(ctx, call.ID)
	if err != nil {
		return err
	}
	if err := call.sharesID(known); err != nil {
		return err
	}
	delete(p.taken, call.ID)
	return p.save(ctx, call)
}

// sharesID returns an error if another call, which may be nil, is not the same.
func (p *Pending) sharesID(other *Pending) error {
	if other == nil {
		return nil
	}
	one, _ := json.Marshal(p.Arguments) // without blanks, as a store returns them
	two, _ := json.Marshal(other.Arguments)
	if p.Key != other.Key || p.Tool != other.Tool || p.Digest != other.Digest || !bytes.Equal(one, two) {
		return errInUse
	}
	return nil
}

// take removes a call and returns it, or nil if there is none. The call is taken until it is released, put or put back.
func (p *pendingCalls) take(ctx context.Context, id string) (*Pending, error) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	call, err := p.load(ctx, id)
	if call == nil || err != nil {
		return nil, err
	}
	if err := p.remove(ctx, id); err != nil {
		return nil, err
	}
	p.taken[id] = call
	return call, nil
}

// release ends that a call is taken, and reports whether it still was.
func (p *pendingCalls) release(call *Pending) (was bool) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if p.taken[call.ID] != call {
		return false
	}
	delete(p.taken, call.ID)
	return true
}

// back keeps a call that was taken, unless nobody wants it any more.
func (p *pendingCalls) back(ctx context.Context, call *Pending) error {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if p.taken[call.ID] != call {
		return nil
	}
	delete(p.taken, call.ID)
	return p.save(ctx, call)
}

// drop removes a call that nobody wants any more. If the store does not answer, its call stays.
func (p *pendingCalls) drop(id string) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	delete(p.taken, id)
	_ = p.remove(context.Background(), id)
}

// load returns the call that is pending under an id, or nil.
func (p *pendingCalls) load(ctx context.Context, id string) (*Pending, error) {
	if p.store == nil {
		return p.calls[id], nil
	}
	record, err := p.store.Load(ctx, mcpbridge.CallKey(p.scope, id))
	if err != nil || record == nil || len(record.Call) == 0 {
		return nil, err
	}
	call := new(Pending)
	return call, json.Unmarshal(record.Call, call)
}

// save keeps a call.
func (p *pendingCalls) save(ctx context.Context, call *Pending) error {
	if p.store != nil {
		data, err := json.Marshal(call)
		if err != nil {
			return err
		}
		return p.store.Save(ctx, mcpbridge.CallKey(p.scope, call.ID), &mcpbridge.Record{Call: data})
	}
	if p.calls[call.ID] == nil && len(p.calls)+len(p.taken) >= maxPending {
		return fmt.Errorf("%d calls wait for an answer already", maxPending)
	}
	p.calls[call.ID] = call
	return nil
}

// remove removes the call that is pending under an id.
func (p *pendingCalls) remove(ctx context.Context, id string) error {
	if p.store != nil {
		return p.store.Delete(ctx, mcpbridge.CallKey(p.scope, id))
	}
	delete(p.calls, id)
	return nil
}
