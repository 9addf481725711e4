package catalogue

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/internal/listclass"
	"github.com/mcpactor/mcpactor/messages"
)

// entry keeps one list of a server for the scopes of one class.
type entry struct {
	entryKey
	node ring.Node[*entry] // in Catalogue.recent

	shared  *List   // nil while it is not known
	saved   string  // the digest of the list in the store
	private bool    // each scope of the class has an entry of its own
	fetch   *Fetch  // for which scopes without a session wait, or nil
	changes uint64  // the number that sessions of the class have announced
	others  *uint64 // see [Catalogue.changesOf]
	holders map[string]*ring.Ring[*held]
	alone   time.Time           // the time since which no open session lists the shared list, or zero if one does
	retryAt time.Time           // before this time, the shared list is not fetched again
	tries   int                 // the number of fetches in a row
	missed  bool                // since the last fetch, a scope has got a stale list, or none
	scopes  map[string]struct{} // those that are counted, see [Catalogue.count]
}

// isShared reports whether the entry is for a class of scopes, and not for the scope of a key alone.
func (e *entry) isShared(key messages.Key) bool {
	return e.class != listclass.Own(key.Scope)
}

// changed returns the number of announced changes that may concern the list.
func (e *entry) changed() uint64 { return e.changes + *e.others }

// backers returns the open sessions that list the shared list, in the order in which they listed it.
func (e *entry) backers() *ring.Ring[*held] {
	if e.shared == nil || e.holders[e.shared.Digest] == nil {
		return &ring.Ring[*held]{}
	}
	return e.holders[e.shared.Digest]
}

// until returns when the shared list will be stale, or zero if its sessions will announce that.
func (e *entry) until() time.Time {
	end := e.shared.Until
	if alone := e.alone.Add(maxAge); e.backers().Count == 0 && (end.IsZero() || alone.Before(end)) {
		end = alone
	}
	return end
}

// stale reports whether the server may list something else by now.
func (e *entry) stale(now time.Time) bool {
	if by := e.backers().First(); by != nil && by.seen < e.changed() {
		return true
	}
	end := e.until()
	return !end.IsZero() && !now.Before(end)
}

// mustList reports whether a question wants the shared list fresh, and it is stale, and no open session can list it again.
func (e *entry) mustList(q Question, now time.Time) bool {
	return q.Fresh && e.shared != nil && e.backers().Count == 0 && (q.Down || e.stale(now))
}

// take makes a list the shared one if it may be that. It reports whether that replaced another list.
func (e *entry) take(list *List, now time.Time) (replaced bool) {
	switch same := e.holders[list.Digest]; {
	case e.shared == nil:
	case e.shared.Digest == list.Digest:
		e.shared = list
		return false
	case e.backers().Count == 0 && e.stale(now), same != nil && same.Count > 1:
		replaced = true
	default:
		return false
	}
	e.shared, e.alone = list, list.At
	return replaced
}

// review notes whether an open session lists the shared list.
func (e *entry) review(now time.Time) {
	switch backed := e.backers().Count > 0; {
	case backed:
		e.alone = time.Time{}
	case e.alone.IsZero():
		e.alone = now
	}
}

// Session is what the catalogue knows of a session. The zero value is a session without a connection.
type Session struct {
	key    messages.Key
	open   bool
	opened uint64           // how often it was opened
	lists  map[string]*held // by method

	of   audience // the one for which it may list
	node ring.Node[*Session]
}

// held is the list of one session.
type held struct {
	of    *Session
	entry *entry
	list  *List  // the last one of this connection, or of the lost one; may be nil
	seen  uint64 // the number of changes that the list reflects
	fetch *Fetch // on this session, or nil
	node  ring.Node[*held]
}

// heldOf returns the list of a session for an entry, or nil.
func (s *Session) heldOf(method string, e *entry) *held {
	if s == nil || s.lists[method] == nil || s.lists[method].entry != e {
		return nil
	}
	return s.lists[method]
}

// hold returns the list of a session for an entry, and makes it if there is none.
func (s *Session) hold(e *entry) *held {
	h := s.heldOf(e.method, e)
	if h != nil {
		return h
	}
	if before := s.lists[e.method]; before != nil { // of another class
		before.leave()
	}
	if s.lists == nil {
		s.lists = map[string]*held{}
	}
	h = &held{of: s, entry: e}
	s.lists[e.method] = h
	return h
}

// put notes what an open session lists.
func (h *held) put(list *List, seen uint64) {
	h.leave()
	h.list, h.seen = list, seen
	holders := h.entry.holders[list.Digest]
	if holders == nil {
		holders = &ring.Ring[*held]{}
		h.entry.holders[list.Digest] = holders
	}
	holders.Push(&h.node, h)
}

// leave removes the list from those of open sessions.
func (h *held) leave() {
	holders := h.node.In
	if holders == nil {
		return
	}
	if holders.Remove(&h.node); holders.Count == 0 {
		delete(h.entry.holders, h.list.Digest)
	}
}

// leave notes that the lists of a session are those of the past.
func (s *Session) leave(now time.Time) {
	for _, h := range s.lists {
		h.leave()
		h.entry.review(now)
	}
}
