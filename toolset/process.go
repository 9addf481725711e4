package toolset

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/tracecontext"
	"github.com/mcpactor/mcpactor/messages"
)

// Use calls a tool for a model, as [Toolset.Call] does, and does not block the sender. Immutable once
// sent.
//
// Send to: [Toolset.PID], within the process. A [messages.Cancel] with the same id cancels it,
// also while it waits for an approval. If it is [Pending], use the ID of that.
// Replies: [Told].
type Use struct {
	// ID is chosen by the sender, such as the id that the model gave its call. The reply and the
	// progress have it.
	ID string
	// Name is the safe name of the tool.
	Name string
	// Arguments are those of [Toolset.Approve].
	Arguments any
	// Durable says that the ID names the intent of the call, see [messages.CallTool.Durable].
	Durable bool
	// Header is that of the message that calls the tool, with the deadline of the reply, the trace,
	// and the actors that get progress and questions. The toolset sets its key and its id.
	// When its owner terminates, the use is cancelled, also while it waits for an approval.
	Header messages.Header
}

// String returns the id and the name of the tool, and no argument.
func (u *Use) String() string { return fmt.Sprintf("use %.100q of %.100q", u.ID, u.Name) }

// LogValue returns the id and the name of the tool, and no argument.
func (u *Use) LogValue() slog.Value { return slog.StringValue(u.String()) }

// AnswerPending answers whether a call that is [Pending] may be sent, as [Toolset.Answer] does.
// Immutable once sent.
//
// Send to: [Toolset.PID], within the process.
// Replies: [Told].
type AnswerPending struct {
	// ID and Digest are those of the [Pending] that was shown.
	ID       string
	Digest   string
	Decision Decision
	// Header is that of [Use]. The attributes and the trace are those of the call by default.
	Header messages.Header
}

// ListPending asks for the calls that are [Pending], see [Toolset.Pending].
//
// Send to: [Toolset.PID], within the process.
// Replies: [PendingList].
type ListPending struct {
	// ID is chosen by the sender. The reply has it.
	ID string
	// Deadline is when the reply comes at the latest. Zero means 10 s from now.
	Deadline time.Time
}

// PendingList is the reply to [ListPending]. Read-only.
type PendingList struct {
	// ID is that of the message.
	ID string
	// Pending are the calls that wait for an answer, the oldest first.
	Pending []*Pending
	// Failure says why they are not known.
	Failure *messages.Failure
}

// IgnoreDeadLetterLogging keeps replies to an actor that has stopped out of Proto.Actor's
// dead letter log.
func (*PendingList) IgnoreDeadLetterLogging() {}

// Told is the reply to [Use] and [AnswerPending]: what the model is told. Exactly one of Result, Failure and
// Pending is set. Read-only.
type Told struct {
	// ID is that of the message.
	ID string
	// Output is for the model, see [Toolset.Outcome].
	Output Output
	// Result is the whole result.
	Result *messages.ToolResult
	// Failure says why there is no result.
	Failure *messages.Failure
	// Pending is a call that waits for an answer. In the reply to an [AnswerPending] it has the same ID, and a new Digest if the
	// definition of the tool has changed.
	Pending *Pending
}

// String returns the id, and nothing of the result.
func (t *Told) String() string { return fmt.Sprintf("told %.100q", t.ID) }

// LogValue returns the id, and nothing of the result.
func (t *Told) LogValue() slog.Value { return slog.StringValue(t.String()) }

// IgnoreDeadLetterLogging keeps replies to an actor that has stopped out of Proto.Actor's
// dead letter log.
func (*Told) IgnoreDeadLetterLogging() {}

// PID returns the PID that takes [Use], [AnswerPending], [ListPending] and [messages.Cancel], whose key is ignored. It
// is that of a process and not of an actor: it cannot be watched or stopped, and messages from
// other machines do not reach it. After [Toolset.Close], this PID and those
// returned later answer with [messages.CodeClosed]. A copy of a PID does not.
func (t *Toolset) PID() *actor.PID {
	if t == nil || t.process == nil {
		return nil
	}
	return t.process.register()
}

// maxUses bounds the uses of a toolset that are under way.
const maxUses = 1 << 10

// process runs the uses that are sent to a toolset, each in a goroutine. It is not an actor, because
// Proto.Actor drops the messages in the mailbox of an actor that stops: each use gets its reply.
type process struct {
	tools  *Toolset
	owners owners

	mu     sync.Mutex
	pid    *actor.PID // nil until it is asked for
	closed bool
	uses   map[*use]bool
}

// use is a use that is under way.
type use struct {
	id, owner string
	cancel    context.CancelCauseFunc
}

func newProcess(t *Toolset) *process {
	p := &process{tools: t, uses: map[*use]bool{}}
	p.owners = owners{system: t.system, ended: func(owner string) { p.cancel(nil, func(u *use) bool { return u.owner == owner }) }}
	return p
}

// register returns the PID of the process.
func (p *process) register() *actor.PID {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == nil {
		system := p.tools.system
		p.pid, _ = system.ProcessRegistry.Add(p, system.ProcessRegistry.NextId())
		actor.NewRootContext(system, nil).Send(p.pid, greeting{})
		if p.closed {
			system.ProcessRegistry.Remove(p.pid)
		}
	}
	return p.pid
}

// greeting is the first message to a process: from then on, the PID leads to it without the actor system.
type greeting struct{}

// close removes the process from the actor system. Its uses end by themselves.
func (p *process) close() {
	p.mu.Lock()
	p.closed = true
	pid := p.pid
	p.mu.Unlock()
	if pid != nil {
		p.tools.system.ProcessRegistry.Remove(pid)
	}
	p.owners.close()
}

// SendUserMessage implements [actor.Process]. It does not block.
func (p *process) SendUserMessage(_ *actor.PID, message any) {
	_, message, sender := actor.UnwrapEnvelope(message)
	of := message
	if v := reflect.ValueOf(message); v.Kind() == reflect.Pointer && v.IsNil() {
		message = nil
	}
	switch m := message.(type) {
	case greeting:
	case *Use:
		p.begin(sender, m.ID, m.Header, false, func(ctx context.Context, h messages.Header) (*messages.ToolResult, error) {
			if m.Durable {
				ctx = messages.WithDurable(ctx, m.ID)
			}
			return p.tools.use(ctx, h, m.Name, m.Arguments)
		})
	case *AnswerPending:
		p.begin(sender, m.ID, m.Header, true, func(ctx context.Context, h messages.Header) (*messages.ToolResult, error) {
			return p.tools.answer(ctx, h, m.ID, m.Digest, m.Decision)
		})
	case *ListPending:
		p.list(sender, m)
	case *messages.Cancel:
		p.cancel(errWithdrawn, func(u *use) bool { return u.id == m.ID })
		p.drop(m.ID)
	default:
		go p.reply(sender, messages.NewFailure(nil, messages.CodeInvalid, fmt.Sprintf("a toolset takes Use, AnswerPending, ListPending and Cancel, and not %T", of)))
	}
}

// begin runs a use in a goroutine, and sends the reply. begun is true if the call may have run before.
func (p *process) begin(sender *actor.PID, id string, h messages.Header, begun bool, run func(context.Context, messages.Header) (*messages.ToolResult, error)) {
	h.ID = id
	ctx, cancel := contextOf(h)
	u := &use{id, nameOf(h.Owner), cancel}
	if !p.add(u) {
		run = func(context.Context, messages.Header) (*messages.ToolResult, error) {
			return nil, &messages.Failure{ID: id, Op: "tools/call", Code: messages.CodeBusy, MayHaveRun: begun, Detail: fmt.Sprintf("the toolset has %d calls under way", maxUses)}
		}
	}
	go func() {
		told, err := guard.Call(func() (*Told, error) {
			p.owners.watch(h.Owner)
			result, err := run(ctx, h)
			return p.tools.reply(id, result, err), nil
		})
		if err != nil {
			told = p.tools.reply(id, nil, &messages.Failure{ID: id, Op: "tools/call", Code: messages.CodeInternal, MayHaveRun: true, Detail: "the call panicked", Cause: err})
		}
		p.remove(u)
		p.reply(sender, told)
	}()
}

// list replies with the calls that wait for an answer, in a goroutine, because a store may take its time.
func (p *process) list(sender *actor.PID, m *ListPending) {
	deadline := m.Deadline
	if deadline.IsZero() {
		deadline = time.Now().Add(10 * time.Second)
	}
	ctx, cancel := contextOf(messages.Header{Deadline: deadline})
	u := &use{cancel: cancel}
	if !p.add(u) {
		cancel(nil)
		go p.reply(sender, &PendingList{ID: m.ID, Failure: &messages.Failure{ID: m.ID, Op: "ListPending", Code: messages.CodeBusy, Detail: fmt.Sprintf("the toolset has %d calls under way", maxUses)}})
		return
	}
	go func() {
		defer p.remove(u)
		pending, err := p.tools.Pending(ctx)
		list := &PendingList{ID: m.ID, Pending: pending}
		list.Failure, _ = errors.AsType[*messages.Failure](err)
		p.reply(sender, list)
	}()
}

// drop forgets a pending call in a goroutine, because a store may take its time.
func (p *process) drop(id string) {
	u := &use{cancel: func(error) {}}
	if !p.add(u) {
		return
	}
	go func() {
		defer p.remove(u)
		_ = p.tools.drop(context.Background(), id) // the replies to uses and answers say what became of it
	}()
}

// contextOf returns a context with what a header says.
func contextOf(h messages.Header) (context.Context, context.CancelCauseFunc) {
	ctx := messages.WithAttributes(context.Background(), h.Attributes)
	ctx = messages.WithTrace(tracecontext.Extract(ctx, h.Trace), h.Trace)
	ctx, cancel := context.WithCancelCause(ctx)
	if h.Deadline.IsZero() {
		return ctx, cancel
	}
	ctx, stop := context.WithDeadline(ctx, h.Deadline)
	return ctx, func(cause error) {
		cancel(cause)
		stop()
	}
}

// reply returns the reply to a use.
func (t *Toolset) reply(id string, result *messages.ToolResult, err error) *Told {
	told := &Told{ID: id, Output: t.Outcome(result, err), Result: result}
	if pending, is := errors.AsType[*Pending](err); is {
		told.Pending = pending
	} else if err != nil {
		told.Failure, _ = errors.AsType[*messages.Failure](err)
	}
	return told
}

// reply sends a reply. The process of the sender may run code of others.
func (p *process) reply(to *actor.PID, message any) {
	if to == nil {
		return
	}
	_, _ = guard.Call(func() (none struct{}, _ error) {
		p.tools.system.Root.Send(to, message)
		return none, nil
	})
}

// add notes a use, unless there are too many.
func (p *process) add(u *use) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.uses) >= maxUses {
		return false
	}
	p.uses[u] = true
	return true
}

// remove ends a use.
func (p *process) remove(u *use) {
	u.cancel(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.uses, u)
}

// cancel cancels the uses that are meant, for a cause. It reports whether there was one.
func (p *process) cancel(cause error, meant func(*use) bool) (any bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for u := range p.uses {
		if meant(u) {
			u.cancel(cause)
			any = true
		}
	}
	return any
}

// SendSystemMessage does nothing.
func (*process) SendSystemMessage(*actor.PID, any) {}

// Stop does nothing.
func (*process) Stop(*actor.PID) {}
