package toolset

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/recordkey"
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
	// ID is that of the call, or a random one if the call has none, or waits for an answer about another definition of its
	// tool: see [Toolset.Answer]. While the call is pending, its ID is refused for any other call: another tool, definition
	// or arguments.
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
// before, if its answer was for another definition, or nil. Then the call gets a new id, so that a second answer under the
// old one cannot be for a definition that nobody was shown.
func (t *Toolset) suspend(ctx context.Context, tool *Tool, call *messages.CallTool, answered *Pending) error {
	raw, _ := call.Params.Arguments.(json.RawMessage)
	p := &Pending{
		ID: call.ID, Key: call.Key.Normal(), Tool: tool.Original, Name: tool.Name, Digest: tool.Digest,
		Arguments: raw, Attributes: call.Attributes, Trace: call.Trace,
	}
	var err error
	if answered == nil {
		err = t.pending.put(ctx, p)
	} else {
		p.ID = rand.Text()
		err = t.pending.replace(ctx, answered, p)
	}
	switch {
	case errors.Is(err, errInUse):
		return messages.NewFailure(call, messages.CodeInvalid, err.Error())
	case errors.Is(err, errNotTaken):
		return messages.NewFailure(call, messages.CodeCancelled, err.Error())
	case err != nil && answered != nil: // it can be answered again
		f := messages.NewFailure(call, messages.CodeUnavailable, storeFails)
		f.Cause = err
		return f
	case err != nil:
		return broken(call, err)
	case ctx.Err() != nil && answered == nil: // it was cancelled meanwhile
		t.pending.drop(p.ID)
		return unanswered(ctx, call)
	}
	f := messages.NewFailure(call, messages.CodeRefused, "the call waits for an approval")
	f.Cause = p
	return f
}

// Answer answers whether the call that is [Pending] under an id may be sent. If the verdict is
// [Allow], it is sent at once, and Answer returns its result as [Toolset.Call] does. If the definition
// of the tool has changed since, the policy decides anew. If it defers the decision, the error has a [Pending] with a new
// ID, and no call is pending under the old one. Any other verdict than [Allow] and [Deny] is an error, and the call stays
// pending. The call also stays pending if its server could not be listed, or if ctx ended before it was sent. A
// [messages.Cancel] drops it in any case.
//
// A call is removed before it is sent. The code of the error is [messages.CodeInvalid] if no call is pending under the id.
// An earlier answer may have sent it, even in a process that has since ended. So MayHaveRun is true in every failure that
// comes before the call is found.
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
	wrong := &messages.Failure{ID: id, Op: "tools/call", Code: messages.CodeInvalid, MayHaveRun: true}
	if !answer.final() {
		wrong.Detail = fmt.Sprintf("the verdict is %.100q: answer with allow or deny", answer.Verdict)
		return nil, wrong
	}
	p, err := t.pending.take(ctx, id)
	switch {
	case err != nil:
		wrong.Code, wrong.Detail, wrong.Cause = messages.CodeUnavailable, storeFails, err
		return nil, wrong
	case p == nil:
		wrong.Detail = fmt.Sprintf("no call waits for an answer under the id %.100q: an earlier answer may have sent it", id)
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
		t.cfg.Policy.remember(definitionKey{p.Key.Server, p.Tool, p.Digest}, answer)
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
		t.pending.back(context.WithoutCancel(ctx), p) // it may be answered again
	case !t.pending.release(p) && err == nil:
		err = messages.NewFailure(call, messages.CodeCancelled, errNotTaken.Error())
	}
	if err != nil {
		return nil, err
	}
	return t.send(ctx, call)
}

// storeFails is the detail of a failure whose call may be pending.
const storeFails = "the store with the call does not answer"

// pendingCalls has the calls of a toolset that are pending. Its methods may be called from any goroutine.
//
//	put ──▶ pending ──take──▶ taken ──release──▶ sent, or denied
//	           ▲  │              │
//	           └──┼─back,replace─┤
//	              └─────drop─────┴──▶ nobody wants it
type pendingCalls struct {
	scope string
	store mcpbridge.Store // nil if there is none

	turns sync.Map // of ids: a channel that is closed when the turn ends

	mu    sync.Mutex          // guards the fields below; never held while the store is asked
	calls map[string]*Pending // with a store: those that it did not take back
	taken map[string]*Pending // that are being answered, and are not sent yet
}

// maxPending bounds the calls that are pending in memory.
const maxPending = 1 << 10

func newPendingCalls(cfg Config) *pendingCalls {
	p := &pendingCalls{
		scope: messages.Key{Scope: cfg.Scope}.Normal().Scope,
		calls: map[string]*Pending{}, taken: map[string]*Pending{},
	}
	if cfg.Store != nil {
		p.store = storelimit.New(cfg.Store)
	}
	return p
}

var (
	// errInUse is the error of a call whose id belongs to another pending call.
	errInUse = errors.New("id: another call waits for an answer under it: answer or cancel that one first, or use another id")
	// errNotTaken is the error of a call that was dropped while it was answered.
	errNotTaken = errors.New("the call was cancelled while it was answered")
)

// turn waits until no other method works on an id, and lets others wait until done is called.
func (p *pendingCalls) turn(ctx context.Context, id string) (done func(), err error) {
	ended := make(chan struct{})
	for {
		other, busy := p.turns.LoadOrStore(id, ended)
		if !busy {
			return func() { p.turns.Delete(id); close(ended) }, nil
		}
		select {
		case <-other.(chan struct{}):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// put keeps a call, under a random id if it has none.
func (p *pendingCalls) put(ctx context.Context, call *Pending) error {
	if call.ID == "" {
		call.ID = rand.Text() // no other call has it
		return p.save(ctx, call, nil)
	}
	done, err := p.turn(ctx, call.ID)
	if err != nil {
		return err
	}
	defer done()
	if p.takenAs(call.ID) != nil {
		return errInUse // even if it is the same call: its answer is under way
	}
	known, err := p.load(ctx, call.ID)
	switch {
	case err != nil:
		return err
	case known != nil && !call.equals(known):
		return errInUse
	}
	return p.save(ctx, call, nil)
}

// equals reports whether two calls are the same.
func (p *Pending) equals(other *Pending) bool {
	one, _ := json.Marshal(p.Arguments) // without blanks, as a store returns them
	two, _ := json.Marshal(other.Arguments)
	return p.Key == other.Key && p.Tool == other.Tool && p.Digest == other.Digest && bytes.Equal(one, two)
}

// take removes a call and returns it, or nil if there is none. The call is taken until it is released or replaced.
func (p *pendingCalls) take(ctx context.Context, id string) (*Pending, error) {
	done, err := p.turn(ctx, id)
	if err != nil {
		return nil, err
	}
	defer done()
	call, err := p.load(ctx, id)
	if call == nil || err != nil {
		return nil, err
	}
	if err := p.remove(ctx, id); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[id] = call
	return call, nil
}

// takenAs returns the call that is taken under an id, or nil.
func (p *pendingCalls) takenAs(id string) *Pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[id]
}

// release marks a call as no longer taken, and reports whether it was.
func (p *pendingCalls) release(call *Pending) (was bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[call.ID] != call {
		return false
	}
	delete(p.taken, call.ID)
	return true
}

// replace keeps a call in place of one that is taken. Its id is that of taken, or a new one.
func (p *pendingCalls) replace(ctx context.Context, taken, call *Pending) error {
	done, err := p.turn(ctx, taken.ID)
	if err != nil {
		return err
	}
	defer done()
	if p.takenAs(taken.ID) != taken {
		return errNotTaken
	}
	if err := p.save(ctx, call, taken); err != nil {
		return err
	}
	p.release(taken)
	return nil
}

// back keeps a call that was taken, unless it was dropped. If the store fails, it keeps the call in memory.
func (p *pendingCalls) back(ctx context.Context, call *Pending) {
	if p.replace(ctx, call, call) == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[call.ID] == call {
		delete(p.taken, call.ID)
		p.calls[call.ID] = call
	}
}

// drop removes a call that was cancelled. If the store does not answer, its call stays.
func (p *pendingCalls) drop(id string) {
	done, _ := p.turn(context.Background(), id)
	defer done()
	if taken := p.takenAs(id); taken != nil {
		p.release(taken)
	}
	_ = p.remove(context.Background(), id)
}

// load returns the call that is pending under an id, or nil.
func (p *pendingCalls) load(ctx context.Context, id string) (*Pending, error) {
	p.mu.Lock()
	call := p.calls[id]
	p.mu.Unlock()
	if call != nil || p.store == nil {
		return call, nil
	}
	record, err := p.store.Load(ctx, recordkey.Call(p.scope, id))
	if err != nil || record == nil || len(record.Call) == 0 {
		return nil, err
	}
	call = new(Pending)
	return call, json.Unmarshal(record.Call, call)
}

// save keeps a call. taken is the call that it replaces, or nil.
func (p *pendingCalls) save(ctx context.Context, call, taken *Pending) error {
	if p.store != nil {
		data, err := json.Marshal(call)
		if err != nil {
			return err
		}
		return p.store.Save(ctx, recordkey.Call(p.scope, call.ID), &mcpbridge.Record{Call: data})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if taken == nil && p.calls[call.ID] == nil && len(p.calls)+len(p.taken) >= maxPending {
		return fmt.Errorf("%d calls wait for an answer already", maxPending)
	}
	p.calls[call.ID] = call
	return nil
}

// remove removes the call that is pending under an id.
func (p *pendingCalls) remove(ctx context.Context, id string) error {
	if p.store != nil {
		if err := p.store.Delete(ctx, recordkey.Call(p.scope, id)); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, id)
	return nil
}
