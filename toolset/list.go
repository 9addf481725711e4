package toolset

import (
	"context"
	"errors"

	"github.com/mcpactor/mcpactor/messages"
)

// list is what is known of one server's tools. The toolset's mutex guards all fields
// but the first two, which never change.
type list struct {
	key    messages.Key
	server Server

	tools []*Tool // the last that were listed; read-only
	fetch *fetch  // the one under way, or nil

	// What makes the tools stale, and how much of it they have seen. Changes are
	// counted: who lists after one has seen it. A new session is known by its
	// generation: its event may come after its list, and must not make that stale.
	wanted, seen news
	evicted      uint64 // the newest generation that was evicted
}

// news is how much has happened to a list.
type news struct {
	changes    uint64 // how often the tools may have changed
	generation uint64 // of the session; the oldest that will do, if it is wanted
}

// stale reports whether the tools must be listed again.
func (l *list) stale() bool {
	return l.seen.changes != l.wanted.changes || l.seen.generation < l.wanted.generation
}

// fetch is one attempt to list the tools of a server, for all who wait for it.
type fetch struct {
	key  messages.Key
	seen news // what was wanted when it began: it sees no less
	done chan struct{}
	err  error // written before done is closed
}

// wait waits for the end of a fetch, or of ctx. There is nothing to wait for if the
// fetch is nil.
func (f *fetch) wait(ctx context.Context) error {
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
		return f.err
	default:
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return &messages.Failure{
			Key: f.key, Op: "tools/list", Code: messages.CodeDeadline, Cause: context.Cause(ctx),
			Detail: "the list takes longer: it is used when it has come",
		}
	}
}

// join returns the fetch of a list that must be fetched, or nil. It begins one unless
// one is under way.
func (t *Toolset) join(l *list) *fetch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.fetch == nil && l.stale() {
		l.fetch = &fetch{key: l.key, seen: l.wanted, done: make(chan struct{})}
		go t.run(l, l.fetch)
	}
	return l.fetch
}

// run fetches a list. No caller's context ends it.
func (t *Toolset) run(l *list, f *fetch) {
	defer close(f.done)
	reply, err := t.client.ListTools(t.ctx, l.key.Server, l.key.Scope)
	var tools []*Tool
	if err == nil {
		tools = newTools(l.server, reply.Result.Tools)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l.fetch, f.err = nil, err
	switch {
	case err == nil:
		l.tools, l.seen = tools, f.seen
		l.seen.generation = max(l.seen.generation, reply.Generation)
	case errors.Is(err, messages.ErrUnknownServer):
		l.tools = nil
	}
}

// onEvent notes what makes a list stale. Sessions are closed when their server is
// reloaded. One that was evicted says nothing of the server, and to list its tools
// would only open it again.
func (t *Toolset) onEvent(event any) {
	switch e := event.(type) {
	case *messages.ToolsChanged:
		t.mark(e.Key, (*list).changed)
	case *messages.SessionRestarted: // also if attached: what was said meanwhile is lost
		t.mark(e.Key, (*list).changed)
	case *messages.SessionOpened:
		t.mark(e.Key, func(l *list) { l.want(e.Generation) })
	case *messages.SessionEvicted:
		t.mark(e.Key, func(l *list) { l.evicted = max(l.evicted, e.Generation) })
	case *messages.SessionClosed:
		t.mark(e.Key, func(l *list) {
			if e.Generation > l.evicted {
				l.want(e.Generation + 1)
			}
		})
	}
}

// changed makes a list stale, whichever session it is of.
func (l *list) changed() { l.wanted.changes++ }

// want makes a list stale that is of a session before the given generation.
func (l *list) want(generation uint64) { l.wanted.generation = max(l.wanted.generation, generation) }

// mark does something to the list of a key, if there is one.
func (t *Toolset) mark(key messages.Key, do func(*list)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lists {
		if l.key == key.Normal() {
			do(l)
		}
	}
}
