package toolset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/messages"
)

// list is the last known list of one server's tools. The toolset's mutex guards all
// fields but the first three, which never change.
type list struct {
	key    messages.Key
	server Server // with the name and the scope of the key
	fetch  singleflight.Group

	tools []*Tool     // of the last list; read-only
	known []*Tool     // as tools, but kept while the supervisor does not know the server
	begun bool        // known was listed
	told  generations // the newest that [Toolset.Outcome] has seen

	// wanted counts the events that make the tools stale, seen those that the tools
	// reflect. A new session counts by its generation, because its event may come after
	// the list that was fetched on it.
	wanted, seen news
	evicted      session // the last one that was evicted
}

// news counts the events that have made a list stale.
type news struct {
	changes     uint64      // how often the tools may have changed
	generations generations // of the session; in wanted, the oldest that are new enough
}

// generations has a generation of the session for each supervisor. The members of a cluster may
// count apart.
type generations map[string]uint64

// raise makes a generation the newest of a supervisor, unless a newer one is known.
func (g *generations) raise(supervisor string, generation uint64) {
	if *g == nil {
		*g = generations{}
	}
	(*g)[supervisor] = max((*g)[supervisor], generation)
}

// session is one MCP session of a key.
type session struct {
	supervisor string
	generation uint64
}

// stale reports whether the tools must be listed again.
func (l *list) stale() bool {
	if l.seen.changes != l.wanted.changes {
		return true
	}
	for supervisor, generation := range l.wanted.generations {
		if l.seen.generations[supervisor] < generation {
			return true
		}
	}
	return false
}

// join returns a channel that gets the end of the fetch of a list that must be fetched,
// or nil. It begins a fetch unless one is under way. That one may have begun before the
// list became stale, and has the attributes and the trace of the caller that began it.
func (t *Toolset) join(ctx context.Context, l *list) <-chan singleflight.Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !l.stale() {
		return nil
	}
	ctx = messages.WithTrace(caller.Shared(t.ctx, ctx), traceOf(ctx))
	return l.fetch.DoChan("", func() (any, error) { return nil, t.fetch(ctx, l) })
}

// fetch fetches a list. No caller's context ends it.
func (t *Toolset) fetch(ctx context.Context, l *list) error {
	t.mu.Lock()
	seen := news{l.wanted.changes, maps.Clone(l.wanted.generations)} // the reply reflects all events so far
	t.mu.Unlock()
	reply, err := t.client.ListTools(ctx, l.key.Server, l.key.Scope)
	var tools []*Tool
	if err == nil {
		tools = newTools(l.server, reply.Result.Tools)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		if l.begun {
			for _, event := range t.changes(l, session{reply.Supervisor, reply.Generation}, l.known, tools) {
				t.changed.Put(event)
			}
		}
		l.tools, l.known, l.begun, l.seen = tools, tools, true, seen
		l.seen.generations.raise(reply.Supervisor, reply.Generation)
		t.all = nil
	case errors.Is(err, messages.CodeUnknownServer):
		l.tools, t.all = nil, nil
	}
	return err
}

// refresh waits until a list reflects all events before the call. The caller waits since began.
func (t *Toolset) refresh(ctx context.Context, l *list, fetch <-chan singleflight.Result, began time.Time) error {
	if err := t.wait(ctx, l, fetch, began); err != nil {
		return err
	}
	// That fetch may have begun before the list became stale. The next one has not.
	return t.wait(ctx, l, t.join(ctx, l), began)
}

// wait waits for the end of a fetch, or of ctx. It returns at once if fetch is nil.
func (t *Toolset) wait(ctx context.Context, l *list, fetch <-chan singleflight.Result, began time.Time) error {
	if fetch == nil {
		return nil
	}
	select {
	case result := <-fetch:
		return result.Err
	default:
	}
	select {
	case result := <-fetch:
		return result.Err
	case <-ctx.Done():
		return t.late(ctx, l, time.Since(began))
	}
}

// failure returns the error of a fetch as the failure of this list: an interceptor may have named
// another key.
func (l *list) failure(err error) *messages.Failure {
	f := messages.Failure{Op: "tools/list", Code: messages.CodeInternal, Detail: err.Error(), Cause: err}
	if known, is := errors.AsType[*messages.Failure](err); is && known != nil {
		f = *known
	}
	f.Key = l.key
	return &f
}

// inspectTimeout bounds how long the question takes whether a server is down.
const inspectTimeout = 500 * time.Millisecond

// late returns why a list did not come before ctx ended: its server is down, does not speak, or is slow.
func (t *Toolset) late(ctx context.Context, l *list, waited time.Duration) *messages.Failure {
	waited = waited.Round(100 * time.Millisecond)
	f := &messages.Failure{
		Key: l.key, Op: "tools/list", Code: messages.CodeDeadline, Cause: context.Cause(ctx),
		Detail: fmt.Sprintf("the list has not come within %v, and is still being fetched", waited),
	}
	asking, cancel := context.WithTimeout(t.ctx, inspectTimeout)
	defer cancel()
	reply, err := t.client.Do(asking, &messages.Inspect{Server: l.key.Server, Scope: l.key.Scope, Limit: 1})
	if err != nil {
		return f
	}
	found := reply.(*messages.Snapshot)
	for _, session := range found.Sessions {
		if session.Key == l.key && session.State == messages.StateConnecting {
			f.Detail = fmt.Sprintf("the server has not answered initialize within %v", waited)
		}
	}
	for _, srv := range found.Servers {
		if srv.Name == l.key.Server && srv.Health == messages.HealthDown {
			f.Code, f.Detail = messages.CodeUnavailable, strings.TrimPrefix(srv.Cause, string(messages.CodeUnavailable)+": ")
			f.RetryAfter = max(0, time.Until(srv.RetryAt))
		}
	}
	return f
}

// onEvent records events that make a list stale. A session that was closed does,
// because its server may have been reloaded. A session that was evicted does not:
// listing the tools again would only open another session.
func (t *Toolset) onEvent(event messages.Event) {
	switch e := event.(type) {
	case *messages.ToolsChanged:
		t.mark(e.Key, (*list).changed)
	case *messages.SessionRestarted: // also if it was resumed: notifications in between are lost
		t.mark(e.Key, (*list).changed)
	case *messages.SessionOpened:
		t.mark(e.Key, func(l *list) { l.opened(e.Supervisor, e.Generation) })
	case *messages.SessionEvicted:
		t.mark(e.Key, func(l *list) { l.evicted = session{e.Supervisor, e.Generation} })
	case *messages.SessionClosed:
		t.mark(e.Key, func(l *list) {
			if l.evicted != (session{e.Supervisor, e.Generation}) {
				l.wanted.generations.raise(e.Supervisor, e.Generation+1)
			}
		})
	}
}

// changed makes a list stale, whichever session it was fetched on.
func (l *list) changed() { l.wanted.changes++ }

// opened makes a list stale if it was fetched on another session: an older one, one of another
// supervisor, or one of a process that has started again and counts from 1.
func (l *list) opened(supervisor string, generation uint64) {
	if generation < l.seen.generations[supervisor] {
		l.changed()
		return
	}
	l.wanted.generations.raise(supervisor, generation)
}

// mark changes the list of a key, if the toolset has one.
func (t *Toolset) mark(key messages.Key, do func(*list)) {
	l := t.listOf(key)
	if l == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	do(l)
}

// listOf returns the list of a key, or nil.
func (t *Toolset) listOf(key messages.Key) *list {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lists {
		if l.key == key.Normal() {
			return l
		}
	}
	return nil
}
