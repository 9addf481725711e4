package catalogue

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// classList has one list of a server for the scopes of one class.
type classList struct {
	listName
	node ring.Node[*classList] // in Catalogue.recent

	shared   *List                   // nil while it is not known
	saved    string                  // the digest of the list in the store
	private  bool                    // each scope of the class has a list of its own
	fetch    *Fetch                  // that those without a session wait for, or nil
	changes  uint64                  // that sessions of the class have announced
	others   *uint64                 // that sessions have announced whose class is not known
	byDigest ring.Map[string, *held] // the open sessions that list the same, by digest
	alone    time.Time               // since when no open session lists the same, or zero if one does
	retryAt  time.Time               // the shared list is not fetched again before
	tries    int                     // how often it was fetched again in vain
	missed   bool                    // somebody has got a stale list, or a failure, since it was fetched
	scopes   map[string]struct{}     // that have asked and are counted, see [Catalogue.count]
}

// isShared reports whether the list is that of a class, and not of the scope of a key alone.
func (cl *classList) isShared(key messages.Key) bool {
	return cl.class != mcpbridge.OwnListClass(key.Scope)
}

// changed returns how many changes were announced that may concern the list.
func (cl *classList) changed() uint64 { return cl.changes + *cl.others }

// backers returns the open sessions that list the same as the shared list, the one that listed first first.
func (cl *classList) backers() *ring.Ring[*held] {
	if cl.shared == nil {
		return &ring.Ring[*held]{}
	}
	return cl.byDigest.Of(cl.shared.Digest)
}

// until returns when the shared list is stale, or zero if a session that lists the same will say.
func (cl *classList) until() time.Time {
	end := cl.shared.Until
	if alone := cl.alone.Add(maxAge); cl.backers().Count == 0 && (end.IsZero() || alone.Before(end)) {
		end = alone
	}
	return end
}

// stale reports whether the server may list something else than the shared list.
func (cl *classList) stale(now time.Time) bool {
	if by := cl.backers().First(); by != nil && by.seen < cl.changed() {
		return true
	}
	end := cl.until()
	return !end.IsZero() && !now.Before(end)
}

// mustList reports whether the shared list is stale, no open session can list it again, and the one who asks wants it
// fresh.
func (cl *classList) mustList(q Question, now time.Time) bool {
	return q.Fresh && cl.shared != nil && cl.backers().Count == 0 && (q.Down || cl.stale(now))
}

// take makes a list the shared one if it may be that. It reports whether it differs from the one before.
func (cl *classList) take(list *List, now time.Time) (replaced bool) {
	switch {
	case cl.shared == nil:
	case cl.shared.Digest == list.Digest:
		cl.shared = list
		return false
	case cl.backers().Count == 0 && cl.stale(now), cl.byDigest.Of(list.Digest).Count > 1:
		replaced = true
	default:
		return false
	}
	cl.shared, cl.alone = list, list.At
	return replaced
}

// review notes since when no open session lists the same.
func (cl *classList) review(now time.Time) {
	switch backed := cl.backers().Count > 0; {
	case backed:
		cl.alone = time.Time{}
	case cl.alone.IsZero():
		cl.alone = now
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
	of        *Session
	classList *classList
	list      *List  // the last one of this connection, or of the one that was lost; may be nil
	seen      uint64 // the changes that the list reflects
	fetch     *Fetch // on this session, or nil
	node      ring.Node[*held]
}

// heldOf returns what a session has of a list, or nil.
func (s *Session) heldOf(method string, cl *classList) *held {
	if s == nil || s.lists[method] == nil || s.lists[method].classList != cl {
		return nil
	}
	return s.lists[method]
}

// hold returns what a session has of a list, and makes it if there is nothing.
func (s *Session) hold(cl *classList) *held {
	h := s.heldOf(cl.method, cl)
	if h != nil {
		return h
	}
	if before := s.lists[cl.method]; before != nil { // of another class
		before.leave()
	}
	if s.lists == nil {
		s.lists = map[string]*held{}
	}
	h = &held{of: s, classList: cl}
	s.lists[cl.method] = h
	return h
}

// put notes what an open session lists.
func (h *held) put(list *List, seen uint64) {
	h.leave()
	h.list, h.seen = list, seen
	h.classList.byDigest.Push(list.Digest, &h.node, h)
}

// leave takes a list out of those of the open sessions.
func (h *held) leave() {
	if h.node.In != nil {
		h.classList.byDigest.Remove(h.list.Digest, &h.node)
	}
}

// lost notes that the lists of a session are those of the past.
func (s *Session) lost(now time.Time) {
	s.open = false
	for _, h := range s.lists {
		h.leave()
		h.classList.review(now)
	}
}
