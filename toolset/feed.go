package toolset

import (
	"maps"
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
}

func newFeed() *feed {
	return &feed{changes: map[string]*atomic.Uint64{}, lists: map[messages.Key]map[*list]*Toolset{}}
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
	case *messages.ToolsChanged, *messages.SessionClosed: // of any scope
		f.mark(stamp.Key.Server)
	case *messages.CatalogueChanged:
		if e.Method == "tools/list" {
			f.mark(stamp.Key.Server)
		}
	case *messages.SessionOpened, *messages.SessionRestarted: // also if it was resumed: notifications in between are lost
		for l, t := range f.of(stamp.Key) {
			t.onOpened(l, stamp, event)
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
