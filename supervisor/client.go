package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// Client sends commands for Go code that is not an actor, and waits for the replies. Its
// methods may be called from any goroutine.
//
// When a context ends, its operation is cancelled with [messages.Cancel]. The deadline of
// a context becomes the deadline of its operation, unless the operation has one. A context
// may have other fields of the header as well, see [WithHeader]. The values of a context reach
// interceptors and the credentials of each request of the operation. They are not kept
// after the method has returned. All errors are of type [*messages.Failure].
type Client struct {
	target *target // nil for a client that belongs to nothing
}

// CallTool calls a tool on the session of a server and a scope. If the tool itself reports
// an error, IsError is set in the result.
func (c *Client) CallTool(ctx context.Context, server, scope string, params *mcp.CallToolParams) (*messages.ToolResult, error) {
	return ask[*messages.ToolResult](ctx, c, &messages.CallTool{Header: messages.To(server, scope), Params: params})
}

// ListTools returns the tools of a server, with all pages, from the catalogue: it opens no session while the list is
// known. See [messages.Listing], which has the instructions of the server as well. To list on the session of the scope
// itself, pass a [messages.ListTools] to Do.
func (c *Client) ListTools(ctx context.Context, server, scope string) (*messages.ToolList, error) {
	return ask[*messages.ToolList](ctx, c, &messages.ListTools{Header: messages.To(server, scope), Shared: true})
}

// ListResources returns the resources of a server, with all pages, as [Client.ListTools] does.
func (c *Client) ListResources(ctx context.Context, server, scope string) (*messages.ResourceList, error) {
	return ask[*messages.ResourceList](ctx, c, &messages.ListResources{Header: messages.To(server, scope), Shared: true})
}

// ListResourceTemplates returns the resource templates of a server, with all pages, as [Client.ListTools] does.
func (c *Client) ListResourceTemplates(ctx context.Context, server, scope string) (*messages.ResourceTemplateList, error) {
	return ask[*messages.ResourceTemplateList](ctx, c, &messages.ListResourceTemplates{Header: messages.To(server, scope), Shared: true})
}

// ReadResource reads a resource on the session of a server and a scope.
func (c *Client) ReadResource(ctx context.Context, server, scope, uri string) (*messages.ResourceContents, error) {
	return ask[*messages.ResourceContents](ctx, c, &messages.ReadResource{Header: messages.To(server, scope), Params: &mcp.ReadResourceParams{URI: uri}})
}

// ListPrompts returns the prompts of a server, with all pages, as [Client.ListTools] does.
func (c *Client) ListPrompts(ctx context.Context, server, scope string) (*messages.PromptList, error) {
	return ask[*messages.PromptList](ctx, c, &messages.ListPrompts{Header: messages.To(server, scope), Shared: true})
}

// GetPrompt gets a prompt with its arguments filled in.
func (c *Client) GetPrompt(ctx context.Context, server, scope string, params *mcp.GetPromptParams) (*messages.Prompt, error) {
	return ask[*messages.Prompt](ctx, c, &messages.GetPrompt{Header: messages.To(server, scope), Params: params})
}

// Complete gets completions for an argument.
func (c *Client) Complete(ctx context.Context, server, scope string, params *mcp.CompleteParams) (*messages.Completion, error) {
	return ask[*messages.Completion](ctx, c, &messages.Complete{Header: messages.To(server, scope), Params: params})
}

// Subscribe subscribes to the changes of a resource.
func (c *Client) Subscribe(ctx context.Context, server, scope, uri string) (*messages.Ack, error) {
	return ask[*messages.Ack](ctx, c, &messages.Subscribe{Header: messages.To(server, scope), URI: uri})
}

// Unsubscribe ends a subscription.
func (c *Client) Unsubscribe(ctx context.Context, server, scope, uri string) (*messages.Ack, error) {
	return ask[*messages.Ack](ctx, c, &messages.Unsubscribe{Header: messages.To(server, scope), URI: uri})
}

// SetLogLevel sets the level of the log messages that a server sends on the session of a
// scope.
func (c *Client) SetLogLevel(ctx context.Context, server, scope string, level string) (*messages.Ack, error) {
	return ask[*messages.Ack](ctx, c, &messages.SetLogLevel{Header: messages.To(server, scope), Level: level})
}

// SetRoots sets the roots that a server may work in, on the session of a scope.
func (c *Client) SetRoots(ctx context.Context, server, scope string, roots []*mcp.Root) (*messages.Ack, error) {
	return ask[*messages.Ack](ctx, c, &messages.SetRoots{Header: messages.To(server, scope), Roots: roots})
}

// Ping checks that a server answers on the session of a scope.
func (c *Client) Ping(ctx context.Context, server, scope string) (*messages.Ack, error) {
	return ask[*messages.Ack](ctx, c, &messages.Ping{Header: messages.To(server, scope)})
}

// Open opens the session of a server and a scope before the first call.
func (c *Client) Open(ctx context.Context, server, scope string) (*messages.SessionInfo, error) {
	return ask[*messages.SessionInfo](ctx, c, &messages.Open{Header: messages.To(server, scope)})
}

// Restart replaces the session of a server and a scope by a new one, see
// [messages.Restart].
func (c *Client) Restart(ctx context.Context, server, scope string) error {
	_, err := ask[*messages.Done](ctx, c, &messages.Restart{Key: messages.Key{Server: server, Scope: scope}})
	return err
}

// Forget resets what is known of a server, see [messages.Forget].
func (c *Client) Forget(ctx context.Context, server string) error {
	_, err := ask[*messages.Done](ctx, c, &messages.Forget{Server: server})
	return err
}

// CloseSession closes the session of a server and a scope. To close it without draining,
// pass a [messages.CloseSession] to Do.
func (c *Client) CloseSession(ctx context.Context, server, scope string) (*messages.Closed, error) {
	return ask[*messages.Closed](ctx, c, &messages.CloseSession{Key: messages.Key{Server: server, Scope: scope}})
}

// ReleaseHandles releases the handles that only this scope holds, see [messages.ReleaseHandles].
func (c *Client) ReleaseHandles(ctx context.Context, scope string) (*messages.HandlesReleased, error) {
	return ask[*messages.HandlesReleased](ctx, c, &messages.ReleaseHandles{Scope: scope})
}

// ListHandles returns the handles that a scope holds, see [messages.ListHandles].
func (c *Client) ListHandles(ctx context.Context, scope string) (*messages.HandleList, error) {
	return ask[*messages.HandleList](ctx, c, &messages.ListHandles{Scope: scope})
}

// CloseMatching closes the sessions whose scope matches a pattern of [path.Match], on all
// servers.
func (c *Client) CloseMatching(ctx context.Context, scopes string) (*messages.Closed, error) {
	return ask[*messages.Closed](ctx, c, &messages.CloseMatching{Scopes: scopes})
}

// CancelScope cancels all operations of a scope, on all servers.
func (c *Client) CancelScope(ctx context.Context, scope string) error {
	_, err := ask[*messages.Done](ctx, c, &messages.CancelScope{Scope: scope})
	return err
}

// CloseScope closes the sessions of a scope on all servers.
func (c *Client) CloseScope(ctx context.Context, scope string) (*messages.Closed, error) {
	return ask[*messages.Closed](ctx, c, &messages.CloseScope{Scope: scope})
}

// CloseServer closes the sessions of all scopes on a server.
func (c *Client) CloseServer(ctx context.Context, server string) (*messages.Closed, error) {
	return ask[*messages.Closed](ctx, c, &messages.CloseServer{Server: server})
}

// CloseAll closes all sessions. The supervisor does not stop.
func (c *Client) CloseAll(ctx context.Context) (*messages.Closed, error) {
	return ask[*messages.Closed](ctx, c, &messages.CloseAll{})
}

// Check returns the status of the session of a server and a scope. It opens nothing, see
// [messages.Check].
func (c *Client) Check(ctx context.Context, server, scope string) (*messages.Status, error) {
	return ask[*messages.Status](ctx, c, &messages.Check{Key: messages.Key{Server: server, Scope: scope}})
}

// Inspect returns a snapshot with the first [messages.DefaultInspectLimit] sessions. To
// select sessions or list more, pass a [messages.Inspect] to Do.
func (c *Client) Inspect(ctx context.Context) (*messages.Snapshot, error) {
	return ask[*messages.Snapshot](ctx, c, &messages.Inspect{})
}

// Cancel cancels the operations of a key that have an id. It does not wait.
func (c *Client) Cancel(key messages.Key, id string) {
	if c.check(context.Background(), nil) == nil {
		c.target.system.Root.Send(c.target.pid, &messages.Cancel{Key: key, ID: id})
	}
}

// ask sends a command and returns its reply as an R.
func ask[R messages.Reply](ctx context.Context, c *Client, cmd messages.Command) (R, error) {
	var none R
	reply, err := c.do(ctx, cmd)
	if err != nil {
		return none, err
	}
	result, ok := reply.(R)
	if !ok {
		return none, messages.NewFailure(cmd, messages.CodeInternal, "the reply has an unexpected type")
	}
	return result, nil
}

// progressKey is the key of the function in a context of [WithProgress].
type progressKey struct{}

// PrivateKey keeps the function from operations that this one causes.
func (progressKey) PrivateKey() {}

// headerKey is the key of the header in a context of [WithHeader].
type headerKey struct{}

// PrivateKey keeps the header from operations that this one causes.
func (headerKey) PrivateKey() {}

// WithHeader returns a context for operations of a [Client]. A field that is zero in the header of an operation is that of h, and
// a field that is zero in h is that of ctx. Key, ID, Subscriber, Owner and PassOn of h are ignored, because they belong to one
// operation. Deadline bounds only the operation. What comes before it, such as the list of [CallToolAs] or the approval of a
// toolset, ends at the deadline of ctx.
func WithHeader(ctx context.Context, h messages.Header) context.Context {
	complete(ctx, &h)
	ctx = messages.WithTrace(messages.WithAttributes(ctx, h.Attributes), h.Trace)
	return context.WithValue(ctx, headerKey{}, &h)
}

// complete sets the fields of a header that are zero, and belong to no single operation, to those of a context.
func complete(ctx context.Context, h *messages.Header) {
	if from, ok := ctx.Value(headerKey{}).(*messages.Header); ok {
		h.Deadline = cmp.Or(h.Deadline, from.Deadline)
		h.WaitUntil = cmp.Or(h.WaitUntil, from.WaitUntil)
		h.Quiet = cmp.Or(h.Quiet, from.Quiet)
		h.Replay = cmp.Or(h.Replay, from.Replay)
		h.Handler = cmp.Or(h.Handler, from.Handler)
	}
	if h.Attributes.Len() == 0 {
		h.Attributes = messages.AttributesOf(ctx)
	}
	h.Trace = cmp.Or(h.Trace, messages.TraceOf(ctx))
}

// maxNotes is how many notifications of progress wait for a slow function.
const maxNotes = 256

// WithProgress returns a context for one operation of a [Client]. The server is asked for
// progress, and tell is called with it, in the goroutine of the caller and before the
// operation returns. While 256 notifications wait for tell, further ones are dropped.
func WithProgress(ctx context.Context, tell func(*messages.Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

// progressOf returns the function for notifications and the channel that they come from,
// or nil if no progress is wanted.
func progressOf(ctx context.Context, cmd messages.Command) (tell func(messages.Notification), notes chan messages.Notification) {
	f, wanted := ctx.Value(progressKey{}).(func(*messages.Progress))
	op, ok := cmd.(messages.Operation)
	_, subscribes := cmd.(*messages.Subscribe) // its notifications come after the reply
	if !wanted || !ok || subscribes || op.Head().Subscriber != nil {
		return nil, nil
	}
	return func(n messages.Notification) {
		if p, ok := n.(*messages.Progress); ok {
			f(p)
		}
	}, make(chan messages.Notification, maxNotes)
}

// sequence numbers operations without an id, so that they can be cancelled. It starts at a random
// number: the members of a cluster have the operations of several processes.
var sequence = func() *atomic.Uint64 {
	n := new(atomic.Uint64)
	n.Store(rand.Uint64())
	return n
}()

// Do sends any command and waits for its reply. A [messages.Cancel] has no reply, and Do
// returns nil, nil.
func (c *Client) Do(ctx context.Context, cmd messages.Command) (messages.Reply, error) {
	if v := reflect.ValueOf(cmd); v.Kind() != reflect.Pointer || v.IsNil() {
		return nil, messages.NewFailure(nil, messages.CodeInvalid, fmt.Sprintf("the command, a %T, is nil or none of package messages", cmd))
	}
	if m, ok := cmd.(*messages.Cancel); ok {
		c.Cancel(m.Key, m.ID)
		return nil, nil
	}
	if op, ok := cmd.(messages.Operation); ok {
		cmd = messages.With(op, *op.Head())
	}
	return c.do(ctx, cmd)
}

// makeDurable makes a call of a tool durable if its context says so. It returns the failure of a durable call without an id, or with
// two.
func makeDurable(ctx context.Context, op messages.Operation) *messages.Failure {
	id, is := messages.DurableOf(ctx)
	call, isCall := op.(*messages.CallTool)
	switch {
	case !isCall || !is && !call.Durable:
		return nil
	case !is:
		id = call.ID
	}
	if id == "" {
		return messages.NewFailure(op, messages.CodeInvalid, "durable: the id is empty, by which the call is found again")
	}
	if call.ID != "" && call.ID != id {
		f := messages.NewFailure(op, messages.CodeInvalid, fmt.Sprintf("id: it is %.100q, but the context makes the call durable under %.100q", call.ID, id))
		f.MayHaveRun = true // the other id may have run
		return f
	}
	call.ID, call.Durable = id, true
	return nil
}

// check returns the failure of a command that cannot be sent, or nil.
func (c *Client) check(ctx context.Context, cmd messages.Command) *messages.Failure {
	switch {
	case c == nil || c.target == nil:
		return messages.NewFailure(cmd, messages.CodeInvalid, "the client belongs to no supervisor that was started: use Supervisor.Client, or NewClient with a PID")
	case ctx == nil:
		return c.failure(cmd, messages.CodeInvalid, "the context is nil: use context.Background")
	case ctx.Err() != nil:
		return c.contextFailure(ctx, cmd)
	}
	return nil
}

// do sends a command that the caller does not share, and waits for its reply. It fills in
// the header of an operation.
func (c *Client) do(ctx context.Context, cmd messages.Command) (reply messages.Reply, err error) {
	if f := c.check(ctx, cmd); f != nil {
		return nil, f
	}
	tell, notes := progressOf(ctx, cmd)
	box := c.target.future(notes)
	defer func() { c.target.release(box, reply != nil && notes == nil) }()
	msg := any(cmd)
	op, isOperation := cmd.(messages.Operation)
	timed := false // the operation ends with the deadline of ctx anyway
	if isOperation {
		h := op.Head()
		complete(ctx, h)
		if f := makeDurable(ctx, op); f != nil {
			return nil, f
		}
		if at, ok := ctx.Deadline(); ok {
			if h.Deadline.IsZero() {
				h.Deadline = at
			}
			timed = !h.Deadline.After(at)
		}
		if h.ID == "" {
			id := append(make([]byte, 0, 16), '~')
			h.ID = string(strconv.AppendUint(id, sequence.Add(1), 36))
		}
		if notes != nil {
			h.Subscriber = box.PID
		}
		called := &protocol.ClientCall{Op: op}
		called.Values.Hold(ctx)
		defer called.Values.Release()
		msg = called
	}
	c.target.system.Root.RequestWithCustomSender(c.target.pid, msg, box.PID)
	for waiting := true; waiting; {
		select {
		case note := <-notes:
			tell(note)
		case msg := <-box.Reply:
			for len(notes) > 0 {
				tell(<-notes)
			}
			return c.outcome(ctx, cmd, msg)
		case <-c.target.done:
			waiting = false
		case <-ctx.Done():
			if !isOperation {
				return nil, c.contextFailure(ctx, cmd)
			}
			// At the deadline the supervisor replies by itself, and knows what the operation
			// waited for: a cancellation would overtake that reply.
			if !timed || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				c.Cancel(op.Head().Key, op.RequestID())
			}
			waiting = false
		}
	}
	// The reply to a cancelled operation is on its way: it may be the result.
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case msg := <-box.Reply:
		return c.outcome(ctx, cmd, msg)
	case <-timer.C:
		if ctx.Err() == nil {
			return nil, c.failure(cmd, messages.CodeClosed, "the supervisor has stopped")
		}
		return nil, c.contextFailure(ctx, cmd)
	}
}

// outcome converts a reply to the result and the error for the caller.
func (c *Client) outcome(ctx context.Context, cmd messages.Command, msg any) (messages.Reply, error) {
	switch reply := msg.(type) {
	case *messages.Failure:
		if reply.Code == messages.CodeCancelled && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			f := *reply
			f.Code = messages.CodeDeadline
			return nil, &f
		}
		return nil, reply
	case messages.Reply:
		return reply, nil
	}
	return nil, c.failure(cmd, messages.CodeClosed, "the supervisor has stopped") // a dead letter
}

// failure returns a failure of a command of this client.
func (c *Client) failure(cmd messages.Command, code messages.Code, detail string) *messages.Failure {
	f := messages.NewFailure(cmd, code, detail)
	f.Supervisor = c.target.pid.Id
	return f
}

// contextFailure returns the failure of a command whose context has ended.
func (c *Client) contextFailure(ctx context.Context, cmd messages.Command) *messages.Failure {
	code := messages.CodeCancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = messages.CodeDeadline
	}
	f := c.failure(cmd, code, "")
	f.Cause = context.Cause(ctx)
	return f
}
