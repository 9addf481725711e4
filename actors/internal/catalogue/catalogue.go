// Package catalogue decides on which session the list of a server is fetched, and which scopes it serves.
package catalogue

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// maxAge is how long a list is served as current after the last session that has listed the same was closed.
	maxAge = 5 * time.Minute
	// retryAfter is how long a list is served as it is after it could not be fetched again.
	retryAfter = 5 * time.Second
	// maxTries is how many sessions list in a row until the shared list is settled.
	maxTries = 3
	// maxTried is how many open sessions are asked at most to find one that is idle.
	maxTried = 8
	// maxLists bounds the lists that are remembered.
	maxLists = 1 << 12
	// maxScopes bounds the scopes that are counted, over all lists.
	maxScopes = 1 << 16
)

// Catalogue keeps what servers list: tools, prompts, resources and templates. Scopes of one class see the same, so
// that one list serves them all. The catalogue sends nothing: who wants a list asks, and is told what the list is, to fetch it, or
// to wait until another has fetched it.
//
//	unknown ──Ask: Run──▶ being fetched ──Fetched──▶ known ──Ask──▶ Answer
//	   ▲                        │                      │ change, end of ttl: Ask: Run on an open session
//	   └───── Fetched: failure ─┘                      └─ maxAge without an open session: stale
//
// A session that is open has its own list, which is compared with the shared one. The shared list is replaced when
// two open sessions list the same other one, or when it is stale. For a scope without a session, an open session of its
// class fetches the list. Only if there is none, a session is opened for that.
//
// Its owner reports facts with Opened, Lost, Closed, Changed and Fetched. All methods take constant time, but Forget and
// Snapshot, whose time grows with the lists, of which there is a bounded number.
type Catalogue struct {
	lists   map[listName]*classList
	recent  ring.Ring[*classList] // the least recently asked for first
	counted int                   // the scopes that are counted, over all lists
	open    ring.Map[audience, *Session]
	changes map[listName]*uint64 // announced by sessions whose class is not known; by server and method
	running map[string][]*Fetch  // by the scope of the session
}

// listName names a list.
type listName struct {
	audience
	method string
}

// List is what a server has listed. It is read-only.
type List struct {
	Result       messages.Result // lists that are the same share it
	Receipt      messages.Receipt
	Server       *mcp.InitializeResult // of the session, or nil
	Introduction json.RawMessage       // the same as it came, or nil
	Digest       string                // of what was listed: lists with the same digest are the same
	Items        int                   // how many things it has
	At           time.Time             // when it was fetched
	Until        time.Time             // until when the server says that it is current, or zero
	Private      bool                  // the server says that it is for this scope only
	Stored       bool                  // it is from the store
}

// expired reports whether the time that the server has given is over.
func (l *List) expired(now time.Time) bool { return !l.Until.IsZero() && !now.Before(l.Until) }

// Fetch is one fetch of a list under way. The one who was told to run it lists on the session On, and reports Fetched.
type Fetch struct {
	On       messages.Key
	Remember bool              // a list from the store will do
	Done     chan struct{}     // closed by Fetched
	Failure  *messages.Failure // why there is no list; set before Done is closed

	classList *classList
	held      *held    // of the session, if that was open
	of        *Session // nil if there was none when the listing began
	opened    uint64   // how often the session has been opened when it is listed on
	seen      uint64   // the changes that were announced before
	separated bool     // see [Catalogue.Separate]
}

// Method returns the method of the list.
func (l *Fetch) Method() string { return l.classList.method }

// ListKey returns the key of the list in a store, and of who has it in a cluster.
func (l *Fetch) ListKey() messages.Key {
	return ListKey(l.classList.server, l.classList.class, l.classList.method)
}

// ListKey returns the key of a list of a class, which does not tell the class.
func ListKey(server, class, method string) messages.Key {
	return mcpbridge.ListKey(server, fmt.Sprintf("%s %x", method, sha256.Sum256([]byte(class))))
}

// MayAsk reports whether other members of a cluster may have the list: scopes share it, and it is not to be fetched on
// a session that is open.
func (l *Fetch) MayAsk() bool { return l.held == nil && l.classList.isShared(l.On) }

// Question asks for a list.
type Question struct {
	Key    messages.Key
	Method string
	Class  string   // see [mcpbridge.Server.ClassOf]
	Of     *Session // of the key, or nil
	Down   bool     // the server is known to be down
	Fresh  bool     // a list that is stale, and that no open session lists, is fetched again

	// Idle reports whether the session of a key would list at once for another scope. nil: none would.
	Idle func(messages.Key) bool
}

// Answer has one field of List, Wait and Run set.
type Answer struct {
	List   *List
	Shared bool      // List is not that of the key's own open session
	Stale  bool      // the server may list something else by now
	Until  time.Time // when List may be stale, or zero

	Wait *Fetch // ask again when it is done
	Run  *Fetch // list, and report Fetched
}

// New returns a catalogue without lists.
func New() *Catalogue {
	return &Catalogue{
		lists: map[listName]*classList{}, open: ring.Map[audience, *Session]{}, changes: map[listName]*uint64{}, running: map[string][]*Fetch{},
	}
}

// Ask answers a question.
func (c *Catalogue) Ask(q Question, now time.Time) Answer {
	cl := c.classListOf(q.Key, q.Class, q.Method)
	c.count(cl, q.Key.Scope)
	own := q.Of.heldOf(q.Method, cl)
	open := q.Of != nil && q.Of.open
	switch {
	case own != nil && own.fetch != nil:
		return Answer{Wait: own.fetch}
	case cl.fetch != nil && (open && cl.fetch.On == q.Key || !open && (cl.shared == nil || cl.mustList(q, now))):
		return Answer{Wait: cl.fetch}
	case open && (own == nil || own.list == nil || own.seen < cl.changed() || own.list.expired(now)):
		return c.run(cl, q.Key, q.Of)
	case own != nil && own.list != nil && (open || !q.Fresh): // also while the session has lost its connection
		return Answer{List: own.list, Stale: !open, Until: own.list.Until}
	case cl.shared == nil, own != nil && own.list != nil, cl.mustList(q, now):
		return c.first(cl, q)
	}
	if by := cl.backers().First(); by != nil && cl.fetch == nil && by.fetch == nil && !now.Before(cl.retryAt) {
		switch due := by.seen < cl.changed() || cl.shared.expired(now); {
		case !due:
			cl.tries = 0
		case cl.tries < maxTries:
			cl.tries++
			return c.run(cl, by.of.key, by.of)
		default: // there is a change with each listing
			cl.tries, cl.retryAt = 0, now.Add(retryAfter)
		}
	}
	a := Answer{List: cl.shared, Shared: true, Stale: cl.stale(now), Until: cl.until()}
	if q.Down && cl.backers().Count == 0 {
		a.Stale, a.Until = true, now
	}
	cl.missed = cl.missed || a.Stale
	return a
}

// run begins a fetch on the session of a key. of is that session, or nil if there is none.
func (c *Catalogue) run(cl *classList, on messages.Key, of *Session) Answer {
	l := &Fetch{On: on, Done: make(chan struct{}), classList: cl, of: of, opened: 1, seen: cl.changed()}
	switch {
	case of == nil:
	case of.open:
		l.opened, l.held = of.opened, of.hold(cl)
		l.held.fetch = l
	default:
		l.opened = of.opened + 1
	}
	l.Remember = l.MayAsk()
	c.running[on.Scope] = append(c.running[on.Scope], l)
	if cl.fetch == nil {
		cl.fetch = l
	}
	return Answer{Run: l}
}

// Fetched notes the end of a fetch: a list, which nobody may change from then on, or a failure. of is the session that the list
// was fetched on. It is nil if that is not open any more, or if the list is from the store. Fetched reports whether others
// have got something else so far: another list, a stale one, or a failure. It also reports whether the list is to be saved in the
// store, which has the lists that scopes share.
func (c *Catalogue) Fetched(l *Fetch, of *Session, list *List, failure *messages.Failure, now time.Time) (replaced, unsaved bool) {
	defer close(l.Done)
	c.ended(l)
	cl := l.classList
	if cl.fetch == l {
		cl.fetch = nil
	}
	if l.held != nil && l.held.fetch == l {
		l.held.fetch = nil
	}
	if l.Failure = failure; failure != nil {
		cl.missed = true
		if cl.shared != nil {
			cl.retryAt = now.Add(retryAfter)
		}
		return false, false
	}
	if l.separated {
		return false, false
	}
	if list.Private && cl.isShared(l.On) { // nobody else may have it
		replaced = cl.shared != nil
		cl.private, cl.shared = true, nil
		cl, of = c.classListOf(l.On, cl.class, cl.method), nil // it is not known which changes were announced meanwhile: the session lists again
	}
	if cl.shared != nil && cl.shared.Digest == list.Digest {
		list.Result = cl.shared.Result
	}
	if of != nil && of.open && (l.of == nil || l.of == of) && of.opened == l.opened {
		of.hold(cl).put(list, l.seen)
		if cl.isShared(l.On) {
			c.join(of, cl.audience)
		}
	}
	replaced = cl.take(list, now) || replaced
	if cl.missed && cl.shared == list && !list.Stored {
		replaced, cl.missed = true, false
	}
	cl.review(now)
	if unsaved = cl.shared == list && cl.isShared(l.On) && cl.saved != list.Digest; unsaved {
		cl.saved = list.Digest
	}
	return replaced, unsaved && !list.Stored
}

// ended forgets a listing.
func (c *Catalogue) ended(l *Fetch) {
	of := c.running[l.On.Scope]
	if of = slices.DeleteFunc(of, func(other *Fetch) bool { return other == l }); len(of) == 0 {
		delete(c.running, l.On.Scope)
		return
	}
	c.running[l.On.Scope] = of
}

// Changed notes that a session announces a change of what it lists. Other sessions of its class may not be told: they list
// again as well. class is that of the session, or "" if it is not known.
func (c *Catalogue) Changed(s *Session, class, method string) {
	cl := c.lists[c.nameOf(s.key, class, method)]
	if h := s.lists[method]; h != nil {
		cl = h.classList
	}
	switch {
	case cl != nil:
		cl.changes++
	case class == "":
		*c.changesOf(s.key.Server, method)++
	}
}

// changesOf returns how many changes of a server's list sessions have announced whose class is not known.
func (c *Catalogue) changesOf(server, method string) *uint64 {
	of := listName{audience{server: server}, method}
	if c.changes[of] == nil {
		c.changes[of] = new(uint64)
	}
	return c.changes[of]
}

// Forget forgets the lists of a server.
func (c *Catalogue) Forget(server string) {
	for cl := range c.recent.All() {
		if cl.server == server {
			c.remove(cl)
		}
	}
	maps.DeleteFunc(c.changes, func(of listName, _ *uint64) bool { return of.server == server })
}

// nameOf returns the name of the list that a key sees.
func (c *Catalogue) nameOf(key messages.Key, class, method string) listName {
	at := listName{audience{key.Server, class}, method}
	if cl := c.lists[at]; cl != nil && cl.private {
		at.class = mcpbridge.OwnListClass(key.Scope)
	}
	return at
}

// classListOf returns the list that a key sees, and makes it if there is none.
func (c *Catalogue) classListOf(key messages.Key, class, method string) *classList {
	at := c.nameOf(key, class, method)
	cl := c.lists[at]
	if cl == nil {
		cl = &classList{listName: at, others: c.changesOf(key.Server, method), byDigest: ring.Map[string, *held]{}, scopes: map[string]struct{}{}}
		c.lists[at] = cl
	}
	c.recent.Remove(&cl.node)
	c.recent.Push(&cl.node, cl)
	if c.recent.Count > maxLists {
		c.remove(c.recent.First())
	}
	return cl
}

// count counts a scope that asks for a list.
func (c *Catalogue) count(cl *classList, scope string) {
	if _, counted := cl.scopes[scope]; !counted && c.counted < maxScopes {
		cl.scopes[scope] = struct{}{}
		c.counted++
	}
}

// remove forgets a list. A fetch of it continues, for those who wait.
func (c *Catalogue) remove(cl *classList) {
	c.counted -= len(cl.scopes)
	c.recent.Remove(&cl.node)
	delete(c.lists, cl.listName)
}

// Snapshot returns what is known of each server, in no order.
func (c *Catalogue) Snapshot(now time.Time) map[string]map[string]messages.ListsSnapshot {
	all := map[string]map[string]messages.ListsSnapshot{}
	for cl := range c.recent.All() {
		if cl.shared == nil {
			continue
		}
		if all[cl.server] == nil {
			all[cl.server] = map[string]messages.ListsSnapshot{}
		}
		one := all[cl.server][cl.method]
		one.Lists++
		one.Scopes += len(cl.scopes)
		one.Items = max(one.Items, cl.shared.Items)
		if cl.stale(now) {
			one.Stale++
		}
		if one.Oldest.IsZero() || cl.shared.At.Before(one.Oldest) {
			one.Oldest = cl.shared.At
		}
		all[cl.server][cl.method] = one
	}
	return all
}
