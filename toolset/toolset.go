package toolset

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/internal/limits"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/internal/repeats"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Backend runs the calls of a toolset: a *[supervisor.Supervisor], or a Member of package
// cluster. The sessions and the events of a Member are those of all members.
type Backend interface {
	// System returns the actor system of the backend.
	System() *actor.ActorSystem
	// Client returns a client that lists and calls tools.
	Client() *supervisor.Client
	// Servers returns the names of the configured servers.
	Servers() []string
	// Subscribe calls handle with each event, until cancel is called.
	Subscribe(handle func(messages.Event)) (cancel func())
	// CallBook returns the records of calls.
	CallBook() *callbook.Book
}

// Toolset provides the tools of several servers to one agent. Close it: until then it is
// subscribed to events.
type Toolset struct {
	cfg         Config
	backend     Backend
	client      *supervisor.Client
	system      *actor.ActorSystem
	feed        *feed
	unsubscribe func()                           // the feed, if it is only that of the toolset
	changed     *relay.Relay[*DefinitionChanged] // to the EventStream
	ctx         context.Context                  // of all fetches
	cancel      context.CancelFunc
	book        *callbook.Book
	process     *process // behind [Toolset.PID]

	mu           sync.Mutex // guards the fields below and what is in the lists; never held while waiting
	users        int        // calls of methods and uses that are under way
	used         time.Time  // when the last of them ended
	names        []string   // the servers of the supervisor that lists reflects
	lists        []*list    // of the servers that are not disabled, in the order of the configuration
	all          *catalog   // of the tools in the lists; nil if they have changed
	conversation conversation
	found        []string // the names that [FindTool] has found, the newest last
	rest         rest     // what [ReadTool] reads
	repeats      repeats.Row
	told         sessions // the sessions of earlier outcomes, see [Toolset.Outcome]
}

// New returns a toolset for servers of a supervisor, or of a member of a cluster, that runs in
// the given actor system; nil stands for that system. It fetches nothing before it is needed. The
// error names the fields of cfg that are wrong, or says that the backend is not started or runs in
// another system. A server that the backend does not know is in [Set.Missing].
func New(system *actor.ActorSystem, backend Backend, cfg Config) (*Toolset, error) {
	feed := newFeed()
	t, err := newToolset(system, backend, cfg, feed)
	if err != nil {
		return nil, err
	}
	t.unsubscribe = backend.Subscribe(feed.onEvent)
	return t, nil
}

// newToolset returns a toolset that gets the events of a feed.
func newToolset(system *actor.ActorSystem, backend Backend, cfg Config, feed *feed) (*Toolset, error) {
	cfg = cfg.withDefaults()
	if err := errors.Join(isUsable(system, backend), cfg.validate()); err != nil {
		return nil, err
	}
	system = backend.System()
	t := &Toolset{cfg: cfg, backend: backend, client: backend.Client(), system: system, feed: feed, book: backend.CallBook(), used: time.Now(), told: sessions{}}
	t.process = newProcess(t)
	t.changed = relay.New(maxEvents, func(e *DefinitionChanged) { system.EventStream.Publish(e) }, func(n uint64) {
		system.Logger().Warn("events of a toolset were dropped, because their handlers were too slow", slog.Uint64("events", n))
	}, func(_ *DefinitionChanged, reason any, stack []byte) {
		system.Logger().Error("event handler panicked", slog.Any("reason", reason), slog.String("stack", string(stack)))
	})
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.unsubscribe = func() {}
	t.arrange(backend.Servers())
	return t, nil
}

// maxEvents bounds the events that are queued for slow handlers.
const maxEvents = 1 << 12

// current returns the lists of the servers that are wanted now, in the order of the
// configuration.
func (t *Toolset) current() []*list {
	t.mu.Lock()
	defer t.mu.Unlock()
	if names := t.backend.Servers(); !slices.Equal(names, t.names) {
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
				filter := entry.of(name, t.cfg.Scope)
				l = &list{key: messages.Key{Server: name, Scope: filter.Scope}, filter: filter, changes: t.feed.changesOf(name), news: 1}
				if t.ctx.Err() == nil { // else nobody would remove it
					t.feed.add(t, l)
				}
			}
			t.lists = append(t.lists, l)
			delete(before, name)
		}
	}
	for _, l := range before {
		t.feed.remove(l)
	}
}

// isUsable returns an error if the backend was not started, or runs in another system.
func isUsable(system *actor.ActorSystem, backend Backend) error {
	switch {
	case backend == nil, backend.System() == nil:
		return errors.New("toolset: supervisor: is nil, or was not started: use the one that supervisor.Start returns")
	case system != nil && backend.System() != system:
		return errors.New("toolset: system: is not that of the supervisor: use its method System")
	}
	return nil
}

// Close ends the subscription to events, and the fetches and questions under way. Calls that were
// sent get their replies. It closes no session. Further calls do nothing.
func (t *Toolset) Close() {
	if t == nil || t.ctx == nil {
		return
	}
	t.cancel()
	t.unsubscribe()
	t.feed.unwatch(t)
	t.mu.Lock()
	for _, l := range t.lists {
		t.feed.remove(l)
	}
	t.mu.Unlock()
	t.process.close()
}

// endIdle ends a toolset that nobody has used for a time: it refuses further use, and is to be closed.
// It returns what the model was told and shown. If the toolset is not idle, endIdle returns how long it may still be unused.
func (t *Toolset) endIdle(after time.Duration) (wait time.Duration, told sessions, shown conversation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users > 0 {
		return after, nil, conversation{}
	}
	if wait = after - time.Since(t.used); wait > 0 {
		return wait, nil, conversation{}
	}
	t.cancel() // under the mutex, which enter and touch wait for
	told, t.told = t.told, sessions{}
	shown = t.conversation
	shown.of = nil // the next toolset has another one
	return 0, told, shown
}

// touch counts as a use, unless the toolset is closed.
func (t *Toolset) touch() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used = time.Now()
	return t.ctx.Err() == nil
}

// Tools returns the current tools of all servers. It fetches the lists that are missing
// or stale, from all servers at once; concurrent callers share a fetch. It waits up to
// [Config.ListTimeout]. It waits for a server that is down only once, and again after that is
// back. A server whose list cannot be fetched is in [Set.Missing], and keeps the tools that it
// had before unless the supervisor no longer knows it.
//
// The error is a [*messages.Failure]: ctx ended before all lists were fetched, or the
// toolset was closed. The end of ctx ends no fetch. A fetch has the attributes and the trace of
// the ctx that it began with, as in [Toolset.Approve], and no other values.
func (t *Toolset) Tools(ctx context.Context) (*Set, error) {
	set, err := t.listed(ctx)
	if err != nil {
		return nil, err
	}
	return t.show(set), nil
}

// listed is Tools for a caller that shows them to nobody.
func (t *Toolset) listed(ctx context.Context) (*Set, error) {
	leave, f := t.enter(ctx)
	if f != nil {
		return nil, f
	}
	defer leave()
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
	limited, cancel := context.WithTimeout(ctx, limits.Of(t.cfg.ListTimeout))
	defer cancel()
	began := time.Now()
	var all sync.WaitGroup
	failures := make([]*messages.Failure, len(lists))
	for i, l := range lists {
		fetch := t.join(ctx, l)
		if fetch == nil {
			continue
		}
		all.Go(func() { // a server that is down delays the second fetch of no other
			if err := t.refresh(limited, l, fetch, began); err != nil {
				failures[i] = l.failure(err)
			}
		})
	}
	all.Wait()
	return slices.DeleteFunc(failures, func(f *messages.Failure) bool { return f == nil })
}

// known returns the tools that were listed so far.
func (t *Toolset) known(missing []*messages.Failure) *Set {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		var tools []*Tool
		for _, l := range t.lists {
			tools = append(tools, l.offered()...)
		}
		t.all = newCatalog(tools)
		for _, l := range t.lists {
			t.all.servers = append(t.all.servers, l.key.Server)
			t.all.leftOut = slices.Concat(t.all.leftOut, l.leftOut, l.refused)
		}
	}
	return &Set{Tools: t.all.tools, Missing: missing, LeftOut: t.all.leftOut, catalog: t.all}
}

// enter returns the failure of a toolset that cannot be used. Otherwise the toolset is in use until
// leave is called.
func (t *Toolset) enter(ctx context.Context) (leave func(), f *messages.Failure) {
	switch {
	case t == nil || t.ctx == nil:
		return nil, messages.NewFailure(nil, messages.CodeInvalid, "the toolset is nil, or was not made by toolset.New")
	case ctx == nil:
		return nil, messages.NewFailure(nil, messages.CodeInvalid, "the context is nil: use context.Background")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return nil, errClosed()
	}
	t.users++
	return t.leave, nil
}

// leave ends a use.
func (t *Toolset) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users--
	t.used = time.Now()
}

func errClosed() *messages.Failure {
	return &messages.Failure{Code: messages.CodeClosed, Detail: "the toolset was closed"}
}

// errGaveUp is the failure of a caller whose context has ended.
func errGaveUp(ctx context.Context) error {
	return ended(ctx, &messages.Failure{Op: "tools/list"}, "")
}
