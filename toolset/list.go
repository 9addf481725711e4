package toolset

import (
	"context"

	"github.com/mcpactor/mcpactor/messages"
)

// list is what is known of one server's tools. The toolset's mutex guards all fields
// but the first two, which never change.
type list struct {
	key    messages.Key
	server Server

	tools      []*Tool // the last that were listed; read-only
	generation uint64  // of the session that listed them
	stale      bool    // they must be listed again; true at first
	fetch      *fetch  // the one under way, or nil
	session    uint64  // the newest generation that was told of during the fetch
}

// fetch is one attempt to list the tools of a server, for all who wait for it.
type fetch struct {
	key  messages.Key
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
	if l.fetch == nil && l.stale {
		l.fetch, l.stale, l.session = &fetch{key: l.key, done: make(chan struct{})}, false, 0
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
	l.fetch = nil
	if err != nil {
		f.err, l.stale = err, true
		return
	}
	l.tools, l.generation = tools, reply.Generation
	if l.session > l.generation {
		l.stale = true
	}
}

// onEvent notes what makes a list stale.
func (t *Toolset) onEvent(event any) {
	switch e := event.(type) {
	case *messages.ToolsChanged:
		t.mark(e.Key, func(l *list) { l.stale = true })
	case *messages.SessionOpened:
		if !e.Attached {
			t.onSession(e.Stamp)
		}
	case *messages.SessionRestarted:
		if !e.Attached {
			t.onSession(e.Stamp)
		}
	}
}

// onSession notes a new session, unless it is the one that was listed. While a fetch is
// under way that is not known: the fetch may have opened it.
func (t *Toolset) onSession(of messages.Stamp) {
	t.mark(of.Key, func(l *list) {
		if l.fetch != nil {
			l.session = max(l.session, of.Generation)
		} else if of.Generation > l.generation {
			l.stale = true
		}
	})
}

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
