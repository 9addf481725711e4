package catalogue

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/internal/listclass"
	"github.com/mcpactor/mcpactor/messages"
)

// shelf has one list of a server for the scopes of one class.
type shelf struct {
	place
	node ring.Node[*shelf] // in Catalogue.recent

	shared  *List    // nil while it is not known
	saved   string   // the digest of the list in the store
	private bool     // each scope of the class has a shelf of its own
	listing *Listing // that those without a session wait for, or nil
	changes uint64   // that sessions of the class have announced
	others  *uint64  // that sessions have announced whose class is not known
	voices  map[string]*ring.Ring[*held]
	alone   time.Time           // since when no open session lists the same, or zero if one does
	retryAt time.Time           // the shared list is not fetched again before
	tries   int                 // how often it was fetched again in vain
	missed  bool                // somebody has got a stale list, or none, since it was fetched
	scopes  map[string]struct{} // that have asked and are counted, see [Catalogue.count]
}

// isShared reports whether the shelf is that of a class, and not of the scope of a key alone.
func (sh *shelf) isShared(key messages.Key) bool {
	return sh.class != listclass.Own(key.Scope)
}

// changed returns how many changes were announced that may concern the list.
func (sh *shelf) changed() uint64 { return sh.changes + *sh.others }

// backers returns the open sessions that list the same as the shared list, the one that listed first first.
func (sh *shelf) backers() *ring.Ring[*held] {
	if sh.shared == nil || sh.voices[sh.shared.Digest] == nil {
		return &ring.Ring[*held]{}
	}
	return sh.voices[sh.shared.Digest]
}

// until returns when the shared list is stale, or zero if a session that lists the same will say.
func (sh *shelf) until() time.Time {
	end := sh.shared.Until
	if alone := sh.alone.Add(maxAge); sh.backers().Count == 0 && (end.IsZero() || alone.Before(end)) {
		end = alone
	}
	return end
}

// stale reports whether the server may list something else than the shared list.
func (sh *shelf) stale(now time.Time) bool {
	if by := sh.backers().First(); by != nil && by.seen < sh.changed() {
		return true
	}
	end := sh.until()
	return !end.IsZero() && !now.Before(end)
}

// mustList reports whether the shared list is stale, no open session can list it again, and the one who asks wants it
// fresh.
func (sh *shelf) mustList(q Question, now time.Time) bool {
	return q.Fresh && sh.shared != nil && sh.backers().Count == 0 && (q.Down || sh.stale(now))
}

// take makes a list the shared one if it may be that. It reports whether it differs from the one before.
func (sh *shelf) take(list *List, now time.Time) (replaced bool) {
	switch same := sh.voices[list.Digest]; {
	case sh.shared == nil:
	case sh.shared.Digest == list.Digest:
		sh.shared = list
		return false
	case sh.backers().Count == 0 && sh.stale(now), same != nil && same.Count > 1:
		replaced = true
	default:
		return false
	}
	sh.shared, sh.alone = list, list.At
	return replaced
}

// review notes since when no open session lists the same.
func (sh *shelf) review(now time.Time) {
	switch backed := sh.backers().Count > 0; {
	case backed:
		sh.alone = time.Time{}
	case sh.alone.IsZero():
		sh.alone = now
	}
}

// Session is what the catalogue knows of a session. The zero value is a session without a connection.
type Session struct {
	key    messages.Key
	open   bool
	opened uint64           // how often it was opened
	lists  map[string]*held // by method

	of   audience // for which it may list
	node ring.Node[*Session]
}

// held is the list of one session.
type held struct {
	of      *Session
	shelf   *shelf
	list    *List    // the last one of this connection, or of the one that was lost; may be nil
	seen    uint64   // the changes that the list reflects
	listing *Listing // on this session, or nil
	node    ring.Node[*held]
}

// heldOf returns the list of a session for a shelf, or nil.
func (s *Session) heldOf(method string, sh *shelf) *held {
	if s == nil || s.lists[method] == nil || s.lists[method].shelf != sh {
		return nil
	}
	return s.lists[method]
}

// hold returns the list of a session for a shelf, and makes it if there is none.
func (s *Session) hold(sh *shelf) *held {
	h := s.heldOf(sh.method, sh)
	if h != nil {
		return h
	}
	if before := s.lists[sh.method]; before != nil { // of another class
		before.leave()
	}
	if s.lists == nil {
		s.lists = map[string]*held{}
	}
	h = &held{of: s, shelf: sh}
	s.lists[sh.method] = h
	return h
}

// put notes what an open session lists.
func (h *held) put(list *List, seen uint64) {
	h.leave()
	h.list, h.seen = list, seen
	voices := h.shelf.voices[list.Digest]
	if voices == nil {
		voices = &ring.Ring[*held]{}
		h.shelf.voices[list.Digest] = voices
	}
	voices.Push(&h.node, h)
}

// leave takes a list out of those of the open sessions.
func (h *held) leave() {
	voices := h.node.In
	if voices == nil {
		return
	}
	if voices.Remove(&h.node); voices.Count == 0 {
		delete(h.shelf.voices, h.list.Digest)
	}
}

// lost notes that the lists of a session are those of the past.
func (s *Session) lost(now time.Time) {
	s.open = false
	for _, h := range s.lists {
		h.leave()
		h.shelf.review(now)
	}
}
