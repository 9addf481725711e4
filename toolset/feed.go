package toolset

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcpactor/mcpactor/messages"
)

// feed tells toolsets of events after which the catalogue may have another list. A [Pool] has one feed for all its toolsets,
// so that the cost of an event does not grow with their number. Its methods may be called from any goroutine.
type feed struct {
	mu      sync.Mutex                          // never held while a toolset is told
	changes map[string]*atomic.Uint64           // by server: the number of events that may have changed its lists
	lists   map[messages.Key]map[*list]*Toolset // of the toolsets that are not closed
	watched map[*Toolset][]*func()              // see [Toolset.OnChange]
}

func newFeed() *feed {
	return &feed{changes: map[string]*atomic.Uint64{}, lists: map[messages.Key]map[*list]*Toolset{}, watched: map[*Toolset][]*func(){}}
}

// changesOf returns the counter of a server.
func (f *feed) changesOf(server string) *atomic.Uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changes[server] == nil {
		f.changes[server] = new(atomic.Uint64)
	}
	return f.changes[server]
}

// add begins to tell a toolset of the sessions of one of its lists.
func (f *feed) add(t *Toolset, l *list) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lists[l.key] == nil {
		f.lists[l.key] = map[*list]*Toolset{}
	}
	f.lists[l.key][l] = t
}

// remove ends what add has begun.
func (f *feed) remove(l *list) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.lists[l.key], l)
	if len(f.lists[l.key]) == 0 {
		delete(f.lists, l.key)
	}
}

// of returns the lists of a key, and their toolsets.
func (f *feed) of(key messages.Key) map[*list]*Toolset {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.lists[key.Normal()])
}

// onEvent handles an event.
func (f *feed) onEvent(event messages.Event) {
	stamp := event.GetStamp()
	switch e := event.(type) {
	case *messages.SessionClosed: // of any scope
		f.mark(stamp.Key.Server)
	case *messages.ToolsChanged:
		f.mark(stamp.Key.Server)
		f.tellAll(stamp.Key.Server)
	case *messages.CatalogueChanged:
		if e.Method == "tools/list" {
			f.mark(stamp.Key.Server)
			f.tellAll(stamp.Key.Server)
		}
	case *messages.SessionOpened, *messages.SessionRestarted: // also if it was resumed: notifications in between are lost
		for l, t := range f.of(stamp.Key) {
			t.onOpened(l, stamp, event)
			f.tell(t)
		}
	}
}

// mark notes that the lists of a server may have changed.
func (f *feed) mark(server string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if changes := f.changes[server]; changes != nil {
		changes.Add(1)
	}
}

// tellAll tells those who watch a toolset with a server that its tools may be others.
func (f *feed) tellAll(server string) {
	f.mu.Lock()
	all := slices.Collect(maps.Keys(f.watched))
	f.mu.Unlock()
	for _, t := range all {
		if t.has(server) {
			f.tell(t)
		}
	}
}

// tell tells those who watch a toolset.
func (f *feed) tell(t *Toolset) {
	f.mu.Lock()
	all := f.watched[t]
	f.mu.Unlock()
	for _, changed := range all {
		(*changed)()
	}
}

// watch begins to tell somebody of a toolset, until cancel is called.
func (f *feed) watch(t *Toolset, changed func()) (cancel func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watched[t] = append(slices.Clone(f.watched[t]), &changed)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		rest := slices.DeleteFunc(slices.Clone(f.watched[t]), func(other *func()) bool { return other == &changed })
		if f.watched[t] = rest; len(rest) == 0 {
			delete(f.watched, t)
		}
	}
}

// unwatch ends all that watch has begun for a toolset.
func (f *feed) unwatch(t *Toolset) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.watched, t)
}

// has reports whether a server is one of those that are wanted.
func (t *Toolset) has(server string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.lists, func(l *list) bool { return l.key.Server == server })
}
