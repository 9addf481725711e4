package toolset

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
	"golang.org/x/sync/singleflight"

	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/internal/tracecontext"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Source runs the calls of a toolset: a *[supervisor.Supervisor], or a Member of package
// cluster. The sessions and the events of a Member are those of all members.
type Source interface {
	// System returns the actor system of the source.
	System() *actor.ActorSystem
	// Client returns a client that lists and calls tools.
	Client() *supervisor.Client
	// Servers returns the names of the configured servers.
	Servers() []string
	// Subscribe has handle called with each event until cancel is called.
	Subscribe(handle func(messages.Event)) (cancel func())
}

// Toolset provides the tools of several servers to one agent. Close it: until then it is
// subscribed to events.
type Toolset struct {
	cfg         Config
	source      Source
	client      *supervisor.Client
	stream      *eventstream.EventStream
	unsubscribe func()
	changed     *relay.Relay[*DefinitionChanged] // to the EventStream
	ctx         context.Context                  // of all fetches
	cancel      context.CancelFunc

	mu    sync.Mutex // guards the fields below and what is in the lists; never held while waiting
	names []string   // the servers of the supervisor that lists reflects
	lists []*list    // of the servers that are not disabled, in the order of the configuration
	all   *catalog   // of the tools in the lists; nil if they have changed
	found []string   // the names that [Toolset.Find] has found, the newest last
}

// New returns a toolset for servers of a supervisor, or of a member of a cluster, that runs in
// the given actor system. It fetches nothing before it is needed. The error names the fields of
// cfg that are wrong, or says that the source is not started or runs in another system. A server
// that the source does not know is in [Set.Missing].
func New(system *actor.ActorSystem, source Source, cfg Config) (*Toolset, error) {
	cfg = cfg.withDefaults()
	if err := errors.Join(isUsable(system, source), cfg.validate()); err != nil {
		return nil, err
	}
	t := &Toolset{cfg: cfg, source: source, client: source.Client(), stream: system.EventStream}
	t.changed = relay.New(maxEvents, func(e *DefinitionChanged) { t.stream.Publish(e) }, func(n uint64) {
		system.Logger().Warn("events of a toolset were dropped, because their handlers were too slow", slog.Uint64("events", n))
	}, func(_ *DefinitionChanged, reason any, stack []byte) {
		system.Logger().Error("event handler panicked", slog.Any("reason", reason), slog.String("stack", string(stack)))
	})
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.arrange(source.Servers())
	t.unsubscribe = source.Subscribe(t.onEvent)
	return t, nil
}

// maxEvents bounds the events that are queued for slow handlers.
const maxEvents = 1 << 12

// current returns the lists of the servers that are wanted now, in the order of the
// configuration.
func (t *Toolset) current() []*list {
	t.mu.Lock()
	defer t.mu.Unlock()
	if names := t.source.Servers(); !slices.Equal(names, t.names) {
		t.arrange(names)
	}
	return t.lists
}

// arrange makes the lists for the servers of the supervisor. A server that an entry names has a
// list also while the supervisor does not know it, so that it is in [Set.Missing].
func (t *Toolset) arrange(names []string) {
	before := map[string]*list{}
	for _, l := range t.lists {
		before[l.key.Server] = l
	}
	t.names, t.lists, t.all = names, nil, nil
	for i := range t.cfg.Servers {
		entry := &t.cfg.Servers[i]
		for _, name := range t.cfg.serversOf(entry, names) {
			l := before[name]
			if l == nil {
				srv := entry.of(name, t.cfg.Scope)
				l = &list{key: messages.Key{Server: name, Scope: srv.Scope}, server: srv, wanted: 1}
			}
			t.lists = append(t.lists, l)
		}
	}
}

// isUsable returns an error if the source was not started, or runs in another system.
func isUsable(system *actor.ActorSystem, source Source) error {
	switch {
	case source == nil, source.System() == nil:
		return errors.New("toolset: supervisor: is nil, or was not started: use the one that supervisor.Start returns")
	case source.System() != system:
		return errors.New("toolset: system: is not that of the supervisor: use its method System")
	}
	return nil
}

// Close ends the subscription to events, and the fetches and questions under way. It closes no
// session. Further calls do nothing.
func (t *Toolset) Close() {
	if t == nil || t.ctx == nil {
		return
	}
	t.cancel()
	t.unsubscribe()
}

// Tools returns the current tools of all servers. It fetches the lists that are missing
// or stale, from all servers at once; concurrent callers share a fetch. It waits up to
// [Config.ListTimeout]. A server whose list cannot be fetched is in [Set.Missing], and
// keeps the tools that it had before unless the supervisor no longer knows it.
//
// The error is a [*messages.Failure]: ctx ended before all lists were fetched, or the
// toolset was closed. The end of ctx ends no fetch. A fetch has the attributes and the trace of
// the ctx that it began with, as in [Toolset.Approve], and no other values.
func (t *Toolset) Tools(ctx context.Context) (*Set, error) {
	if f := t.check(ctx); f != nil {
		return nil, f
	}
	missing := t.refreshAll(ctx, t.current())
	switch {
	case t.ctx.Err() != nil:
		return nil, errClosed()
	case ctx.Err() != nil && len(missing) > 0:
		return nil, errGaveUp(ctx)
	}
	return t.known(missing), nil
}

// refreshAll fetches lists that are missing or stale, all at once, and returns the servers that
// could not be listed.
func (t *Toolset) refreshAll(ctx context.Context, lists []*list) (missing []*messages.Failure) {
	limited, cancel := context.WithTimeout(ctx, t.cfg.ListTimeout)
	defer cancel()
	began := time.Now()
	fetches := make([]<-chan singleflight.Result, len(lists))
	for i, l := range lists {
		fetches[i] = t.join(ctx, l)
	}
	for i, l := range lists {
		if err := t.refresh(limited, l, fetches[i], began); err != nil {
			missing = append(missing, l.failure(err))
		}
	}
	return missing
}

// known returns the tools that were listed so far.
func (t *Toolset) known(missing []*messages.Failure) *Set {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		var tools []*Tool
		for _, l := range t.lists {
			tools = append(tools, l.tools...)
		}
		t.all = newCatalog(tools)
		for _, l := range t.lists {
			t.all.servers = append(t.all.servers, l.key.Server)
		}
	}
	return &Set{Tools: t.all.tools, Missing: missing, catalog: t.all, policy: t.cfg.Policy}
}

// Call calls the tool of a safe name, and waits for the result: see [Set.Call] for the
// arguments, [Toolset.Approve] for what comes before, [Convert] for the result, and
// [supervisor.Client] for ctx. All errors are of type [*messages.Failure]:
// [Toolset.Outcome] converts them for the model.
//
// [FindTool] is answered as by [Toolset.Find].
func (t *Toolset) Call(ctx context.Context, name string, arguments any) (*messages.ToolResult, error) {
	if f := t.check(ctx); f != nil {
		return nil, f
	}
	if name == FindTool {
		return t.Find(arguments)
	}
	call, err := t.Approve(ctx, name, arguments)
	if err != nil {
		return nil, err
	}
	result, err := t.client.CallTool(ctx, call.Key.Server, call.Key.Scope, call.Params)
	if errors.Is(err, messages.CodeUnknownServer) {
		t.mark(call.Key.Server)
	}
	return result, err
}

// Approve returns the message that calls the tool of a safe name, when [Config.Policy] allows it.
// The message has the attributes and the trace of ctx, see [messages.WithAttributes], or else the
// span of OpenTelemetry in ctx as its trace. Other fields
// of its header may be set, as in that of [Set.Call]. Send it to the supervisor once. Approve waits for the answer of
// [Policy.Ask], and no longer than ctx. If the name is unknown, it lists the tools of the servers
// that the name fits, and fails as the listing if such a server cannot be listed. With a policy it
// also lists the tools of a server that may have changed them, so that the policy sees the
// current definition. If the definition has changed when the answer comes, it asks again, up to 8
// times. For [FindTool] there is no message: use [Toolset.Find].
//
// All errors are of type [*messages.Failure]. The code is [messages.CodeRefused] if the policy
// denied the call. An actor runs Approve in a goroutine, as it does [Toolset.Tools].
func (t *Toolset) Approve(ctx context.Context, name string, arguments any) (*messages.CallTool, error) {
	if f := t.check(ctx); f != nil {
		return nil, f
	}
	open, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	call, err := t.approve(open, name, arguments)
	if t.ctx.Err() != nil {
		return nil, errClosed()
	}
	return call, err
}

// traceOf returns the trace of a context, or else that of the span of OpenTelemetry in it.
func traceOf(ctx context.Context) messages.Trace {
	if trace := messages.TraceOf(ctx); trace.Parent != "" {
		return trace
	}
	return tracecontext.Of(ctx)
}

// maxRounds is how often a call is put to the policy because the definition of its tool changes.
const maxRounds = 8

func (t *Toolset) approve(ctx context.Context, name string, arguments any) (call *messages.CallTool, err error) {
	approved := ""
	for range maxRounds {
		set, err := t.with(ctx, name)
		if err != nil {
			return nil, err
		}
		if call, err = set.prepare(name, arguments); err != nil {
			return nil, err
		}
		call.Attributes, call.Trace = messages.AttributesOf(ctx), traceOf(ctx)
		tool := set.Tool(name)
		if t.cfg.Policy == nil || tool.Digest == approved {
			return call, nil
		}
		if err := t.cfg.Policy.approve(ctx, tool, call); err != nil {
			return nil, err
		}
		approved = tool.Digest
	}
	return nil, messages.NewFailure(call, messages.CodeRefused, "the definition of the tool changes all the time")
}

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
		return t.known(missing), nil
	}
	l := t.listOf(messages.Key{Server: tool.Server, Scope: tool.Scope})
	if t.cfg.Policy == nil || l == nil {
		return set, nil
	}
	fetch := t.join(ctx, l)
	if fetch == nil {
		return set, nil
	}
	if err := t.refresh(ctx, l, fetch, time.Now()); err != nil {
		if ctx.Err() != nil {
			return nil, errGaveUp(ctx)
		}
		return nil, beforeCall(err)
	}
	return t.known(nil), nil
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
