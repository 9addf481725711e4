package toolset

import (
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
	// ID is that of the call, or else a random one. A later call with the same ID replaces it.
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

// suspend keeps a call until its answer, and returns the failure that says so.
func (t *Toolset) suspend(ctx context.Context, tool *Tool, call *messages.CallTool) error {
	raw, _ := call.Params.Arguments.(json.RawMessage)
	p := &Pending{
		ID: call.ID, Key: call.Key.Normal(), Tool: tool.Original, Name: tool.Name, Digest: tool.Digest,
		Arguments: raw, Attributes: call.Attributes, Trace: call.Trace,
	}
	if p.ID == "" {
		p.ID = rand.Text()
	}
	if err := t.pending.put(ctx, p); err != nil {
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
// the call could not be sent because its server could not be listed, or because ctx ended before.
//
// A call is sent once, whoever answers: it is removed before. If the process ends in between, it was
// not sent. The code of the error is [messages.CodeInvalid] if no call is pending under the id.
func (t *Toolset) Answer(ctx context.Context, id string, answer Decision) (*messages.ToolResult, error) {
	return t.answer(ctx, messages.Header{}, id, answer)
}

// answer is [Toolset.Answer] with a header for the message.
func (t *Toolset) answer(ctx context.Context, h messages.Header, id string, answer Decision) (*messages.ToolResult, error) {
	leave, f := t.enter(ctx)
	if f != nil {
		return nil, f
	}
	defer leave()
	wrong := &messages.Failure{ID: id, Op: "tools/call", Code: messages.CodeInvalid}
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
		wrong.Detail = fmt.Sprintf("no call waits for an answer under the id %.100q", id)
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
		return nil, refusal(&messages.CallTool{Header: h, Params: &mcp.CallToolParams{Name: p.Tool}}, answer)
	}
	call, err := t.approve(ctx, h, p.Name, p.Arguments, p.Digest)
	if err != nil {
		if !errors.Is(err, messages.CodeInvalid) && !errors.Is(err, messages.CodeRefused) {
			_ = t.pending.put(context.WithoutCancel(ctx), p) // it may be answered again, unless the store fails
		}
		return nil, err
	}
	return t.send(ctx, call)
}

// pendingCalls has the calls of a toolset that are pending. Its methods may be called from any goroutine.
type pendingCalls struct {
	scope string
	store mcpbridge.Store // nil if there is none
	turn  chan struct{}   // has a value while a method runs
	calls map[string]*Pending
}

// maxPending bounds the calls that are pending in memory.
const maxPending = 1 << 10

func newPendingCalls(cfg Config) pendingCalls {
	p := pendingCalls{scope: messages.Key{Scope: cfg.Scope}.Normal().Scope, turn: make(chan struct{}, 1), calls: map[string]*Pending{}}
	if cfg.Store != nil {
		p.store = storelimit.New(cfg.Store)
	}
	return p
}

// put keeps a call.
func (p *pendingCalls) put(ctx context.Context, call *Pending) error {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if p.store != nil {
		data, err := json.Marshal(call)
		if err != nil {
			return err
		}
		return p.store.Save(ctx, mcpbridge.CallKey(p.scope, call.ID), &mcpbridge.Record{Call: data})
	}
	if len(p.calls) >= maxPending {
		return fmt.Errorf("%d calls wait for an answer already", maxPending)
	}
	p.calls[call.ID] = call
	return nil
}

// take removes a call and returns it, or nil if there is none.
func (p *pendingCalls) take(ctx context.Context, id string) (*Pending, error) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if p.store == nil {
		call := p.calls[id]
		delete(p.calls, id)
		return call, nil
	}
	key := mcpbridge.CallKey(p.scope, id)
	record, err := p.store.Load(ctx, key)
	if err != nil || record == nil || len(record.Call) == 0 {
		return nil, err
	}
	call := new(Pending)
	if err := json.Unmarshal(record.Call, call); err != nil {
		return nil, err
	}
	return call, p.store.Delete(ctx, key)
}

// drop removes a call that nobody wants any more. If the store does not answer, its call stays.
func (p *pendingCalls) drop(id string) { _, _ = p.take(context.Background(), id) }
