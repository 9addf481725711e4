package toolset

import (
	"context"
	"errors"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
	"golang.org/x/sync/singleflight"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Toolset provides the tools of several servers to the agent of one scope. Close it:
// until then it is subscribed to the actor system's EventStream.
type Toolset struct {
	cfg    Config
	client *supervisor.Client
	stream *eventstream.EventStream
	events *eventstream.Subscription
	ctx    context.Context // of all fetches
	cancel context.CancelFunc

	lists   []*list            // of the servers that are not disabled; never changes
	fetches singleflight.Group // by the server's name

	mu sync.Mutex // guards what is in the lists; never held while waiting
}

// New returns a toolset for servers of a supervisor that runs in the given actor
// system. It fetches nothing before it is needed. The error names the fields of cfg
// that are wrong, or says that the supervisor is not started or runs in another system.
// A server that the supervisor does not know is in [Set.Missing].
func New(system *actor.ActorSystem, sup *supervisor.Supervisor, cfg Config) (*Toolset, error) {
	cfg = cfg.withDefaults()
	if err := errors.Join(fits(system, sup), cfg.validate()); err != nil {
		return nil, err
	}
	t := &Toolset{cfg: cfg, client: sup.Client(), stream: system.EventStream}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	for _, srv := range cfg.Servers {
		if !srv.Disabled {
			key := messages.Key{Server: srv.Name, Scope: cfg.Scope}.Normal()
			t.lists = append(t.lists, &list{key: key, server: srv, wanted: news{changes: 1}})
		}
	}
	t.events = t.stream.Subscribe(t.onEvent)
	return t, nil
}

// fits returns an error if the supervisor was not started, or runs in another system.
func fits(system *actor.ActorSystem, sup *supervisor.Supervisor) error {
	switch {
	case sup.System() == nil:
		return errors.New("toolset: supervisor: is nil, or was not started: use the one that supervisor.Start returns")
	case sup.System() != system:
		return errors.New("toolset: system: is not that of the supervisor: use Supervisor.System")
	}
	return nil
}

// Close ends the subscription to events, and the fetches under way. It closes no
// session. Further calls do nothing.
func (t *Toolset) Close() {
	if t == nil || t.ctx == nil {
		return
	}
	t.cancel()
	t.stream.Unsubscribe(t.events)
}

// Tools returns the current tools of all servers. It fetches the lists that are missing
// or stale, from all servers at once; concurrent callers share a fetch. It waits up to
// [Config.ListTimeout]. A server whose list cannot be fetched is in [Set.Missing], and
// keeps the tools that it had before unless the supervisor no longer knows it.
//
// The error is a [*messages.Failure]: ctx ended before all lists were fetched, or the
// toolset was closed. The end of ctx ends no fetch.
func (t *Toolset) Tools(ctx context.Context) (*Set, error) {
	if f := t.check(ctx); f != nil {
		return nil, f
	}
	limited, cancel := context.WithTimeout(ctx, t.cfg.ListTimeout)
	defer cancel()
	fetches := make([]<-chan singleflight.Result, len(t.lists))
	for i, l := range t.lists {
		fetches[i] = t.join(l)
	}
	var missing []Missing
	for i, l := range t.lists {
		err := l.wait(limited, fetches[i])
		if err == nil {
			// That fetch may have begun before the list became stale. The next one has not.
			err = l.wait(limited, t.join(l))
		}
		if err != nil {
			missing = append(missing, Missing{Server: l.server.Name, Err: err})
		}
	}
	switch {
	case t.ctx.Err() != nil:
		return nil, errClosed()
	case ctx.Err() != nil && len(missing) > 0:
		return nil, errGaveUp(ctx)
	}
	return t.known(missing), nil
}

// known returns the tools that were listed so far.
func (t *Toolset) known(missing []Missing) *Set {
	var tools []*Tool
	t.mu.Lock()
	for _, l := range t.lists {
		tools = append(tools, l.tools...)
	}
	t.mu.Unlock()
	return newSet(t.cfg.Scope, tools, missing)
}

// Call calls the tool of a safe name, and waits for the result: see [Set.Call] for the
// arguments, [Convert] for the result, and [supervisor.Client] for ctx. It lists tools
// only if the name is unknown. All errors are of type [*messages.Failure].
func (t *Toolset) Call(ctx context.Context, name string, arguments any) (*messages.ToolResult, error) {
	if f := t.check(ctx); f != nil {
		return nil, f
	}
	set := t.known(nil)
	if set.Tool(name) == nil {
		var err error
		if set, err = t.Tools(ctx); err != nil {
			return nil, err
		}
	}
	call, err := set.Call(name, arguments)
	if err != nil {
		return nil, err
	}
	result, err := t.client.CallTool(ctx, call.Key.Server, call.Key.Scope, call.Params)
	if errors.Is(err, messages.ErrUnknownServer) {
		t.mark(call.Key, (*list).changed)
	}
	return result, err
}

// check returns the failure of a toolset that cannot be used, or nil.
func (t *Toolset) check(ctx context.Context) *messages.Failure {
	switch {
	case t == nil || t.ctx == nil:
		return messages.NewFailure(nil, messages.CodeInvalid, "the toolset is nil, or was not made by toolset.New")
	case ctx == nil:
		return messages.NewFailure(nil, messages.CodeInvalid, "the context is nil: use context.Background")
	case t.ctx.Err() != nil:
		return errClosed()
	}
	return nil
}

func errClosed() *messages.Failure {
	return &messages.Failure{Code: messages.CodeClosed, Detail: "the toolset was closed"}
}

// errGaveUp is the failure of a caller whose context has ended.
func errGaveUp(ctx context.Context) error {
	code := messages.CodeCancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = messages.CodeDeadline
	}
	return &messages.Failure{Op: "tools/list", Code: code, Cause: context.Cause(ctx)}
}
