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
	"github.com/mcpactor/mcpactor/internal/listclass"
	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/messages"
)

const (
	// maxAge is how long a list is served as current after the last session that had listed the same has closed.
	maxAge = 5 * time.Minute
	// retryAfter is how long a list is served as it is after it could not be fetched again.
	retryAfter = 5 * time.Second
	// maxTries is how many sessions list in a row until the shared list is settled.
	maxTries = 3
	// maxLooks is how many open sessions are looked at to find one that is idle.
	maxLooks = 8
	// maxShelves bounds the lists that are remembered.
	maxShelves = 1 << 12
	// maxScopes bounds the scopes that are counted, over all lists.
	maxScopes = 1 << 16
)

// Catalogue keeps what servers list: tools, prompts, resources and templates. Scopes of one class see the same, so
// that one list serves them all. The catalogue sends nothing: who wants a list asks, and is told to wait for the
// listing of another, to list, or what the list is.
//
//	unknown ──Ask: Run──▶ being listed ──Listed──▶ known ──Ask──▶ Answer
//	   ▲                       │                     │ change, end of ttl: Ask: Run on an open session
//	   └──── Listed: failure ──┘                     └─ maxAge without an open session: stale
//
// A session that is open has its own list, which is compared with the shared one. The shared list is replaced when
// two open sessions list the same other one, or when it is stale. A scope without a session has an open one of its
// class list for it, if there is one: listing opens a session only if there is none.
//
// Its owner reports facts with Opened, Lost, Closed, Changed and Listed. All methods take constant time, but Forget and
// Snapshot, whose time grows with the lists, of which there is a bounded number.
type Catalogue struct {
	shelves map[place]*shelf
	recent  ring.Ring[*shelf] // the least recently asked for first
	counted int               // the scopes that are counted, over all shelves
	open    map[audience]*ring.Ring[*Session]
	changes map[place]*uint64     // announced by sessions whose class is not known; by server and method
	running map[string][]*Listing // by the scope of the session
}

// place is where a list belongs.
type place struct {
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

// Listing is one listing under way. The one who was told to run it lists on the session On, and reports Listed.
type Listing struct {
	On       messages.Key
	Remember bool              // a list from the store will do
	Done     chan struct{}     // closed by Listed
	Failure  *messages.Failure // why there is no list; set before Done is closed

	shelf     *shelf
	held      *held    // of the session, if that was open
	of        *Session // nil if there was none when the listing began
	opened    uint64   // how often the session has been opened when it is listed on
	seen      uint64   // the changes that were announced before
	separated bool     // see [Catalogue.Separate]
}

// Method returns the method of the list.
func (l *Listing) Method() string { return l.shelf.method }

// ListKey returns the key of the list in a store, and of who has it in a cluster.
func (l *Listing) ListKey() messages.Key {
	return ListKey(l.shelf.server, l.shelf.class, l.shelf.method)
}

// ListKey returns the key of a list of a class, which does not tell the class.
func ListKey(server, class, method string) messages.Key {
	return recordkey.List(server, fmt.Sprintf("%s %x", method, sha256.Sum256([]byte(class))))
}

// MayAsk reports whether other members of a cluster may have the list: scopes share it, and it is not to be fetched on
// a session that is open.
func (l *Listing) MayAsk() bool { return l.held == nil && l.shelf.isShared(l.On) }

// Question asks for a list.
type Question struct {
	Key    messages.Key
	Method string
	Class  string   // see [listclass.Of]
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

	Wait *Listing // ask again when it is done
	Run  *Listing // list, and report Listed
}

// New returns a catalogue without lists.
func New() *Catalogue {
	return &Catalogue{
		shelves: map[place]*shelf{}, open: map[audience]*ring.Ring[*Session]{}, changes: map[place]*uint64{}, running: map[string][]*Listing{},
	}
}

// Ask answers a question.
func (c *Catalogue) Ask(q Question, now time.Time) Answer {
	sh := c.shelfOf(q.Key, q.Class, q.Method)
	c.count(sh, q.Key.Scope)
	own := q.Of.heldOf(q.Method, sh)
	open := q.Of != nil && q.Of.open
	switch {
	case own != nil && own.listing != nil:
		return Answer{Wait: own.listing}
	case sh.listing != nil && (open && sh.listing.On == q.Key || !open && (sh.shared == nil || sh.mustList(q, now))):
		return Answer{Wait: sh.listing}
	case open && (own == nil || own.list == nil || own.seen < sh.changed() || own.list.expired(now)):
		return c.run(sh, q.Key, q.Of)
	case own != nil && own.list != nil && (open || !q.Fresh): // also while the session has lost its connection
		return Answer{List: own.list, Stale: !open, Until: own.list.Until}
	case sh.shared == nil, own != nil && own.list != nil, sh.mustList(q, now):
		return c.first(sh, q)
	}
	if by := sh.backers().First(); by != nil && sh.listing == nil && by.listing == nil && !now.Before(sh.retryAt) {
		switch due := by.seen < sh.changed() || sh.shared.expired(now); {
		case !due:
			sh.tries = 0
		case sh.tries < maxTries:
			sh.tries++
			return c.run(sh, by.of.key, by.of)
		default: // there is a change with each listing
			sh.tries, sh.retryAt = 0, now.Add(retryAfter)
		}
	}
	a := Answer{List: sh.shared, Shared: true, Stale: sh.stale(now), Until: sh.until()}
	if q.Down && sh.backers().Count == 0 {
		a.Stale, a.Until = true, now
	}
	sh.missed = sh.missed || a.Stale
	return a
}

// run begins a listing on the session of a key. of is that session, or nil if there is none.
func (c *Catalogue) run(sh *shelf, on messages.Key, of *Session) Answer {
	l := &Listing{On: on, Done: make(chan struct{}), shelf: sh, of: of, opened: 1, seen: sh.changed()}
	switch {
	case of == nil:
	case of.open:
		l.opened, l.held = of.opened, of.hold(sh)
		l.held.listing = l
	default:
		l.opened = of.opened + 1
	}
	l.Remember = l.MayAsk()
	c.running[on.Scope] = append(c.running[on.Scope], l)
	if sh.listing == nil {
		sh.listing = l
	}
	return Answer{Run: l}
}

// Listed notes the end of a listing: a list, which the catalogue owns from then on, or a failure. of is the session that it was fetched on, or nil if that
// is not open any more, or if it is from the store. Listed reports whether what others got before was replaced: another list, a stale one, or a failure; and whether
// the list belongs into the store, which keeps what scopes share.
func (c *Catalogue) Listed(l *Listing, of *Session, list *List, failure *messages.Failure, now time.Time) (replaced, unsaved bool) {
	defer close(l.Done)
	c.ended(l)
	sh := l.shelf
	if sh.listing == l {
		sh.listing = nil
	}
	if l.held != nil && l.held.listing == l {
		l.held.listing = nil
	}
	if l.Failure = failure; failure != nil {
		sh.missed = true
		if sh.shared != nil {
			sh.retryAt = now.Add(retryAfter)
		}
		return false, false
	}
	if l.separated {
		return false, false
	}
	if list.Private && sh.isShared(l.On) { // nobody else may have it
		replaced = sh.shared != nil
		sh.private, sh.shared = true, nil
		sh, of = c.shelfOf(l.On, sh.class, sh.method), nil // which changes were announced meanwhile is not known: the session lists again
	}
	if sh.shared != nil && sh.shared.Digest == list.Digest {
		list.Result = sh.shared.Result
	}
	if of != nil && of.open && (l.of == nil || l.of == of) && of.opened == l.opened {
		of.hold(sh).put(list, l.seen)
		if sh.isShared(l.On) {
			c.join(of, sh.audience)
		}
	}
	replaced = sh.take(list, now) || replaced
	if sh.missed && sh.shared == list && !list.Stored {
		replaced, sh.missed = true, false
	}
	sh.review(now)
	if unsaved = sh.shared == list && sh.isShared(l.On) && sh.saved != list.Digest; unsaved {
		sh.saved = list.Digest
	}
	return replaced, unsaved && !list.Stored
}

// ended forgets a listing.
func (c *Catalogue) ended(l *Listing) {
	of := c.running[l.On.Scope]
	if of = slices.DeleteFunc(of, func(other *Listing) bool { return other == l }); len(of) == 0 {
		delete(c.running, l.On.Scope)
		return
	}
	c.running[l.On.Scope] = of
}

// Changed notes that a session announces a change of what it lists. Other sessions of its class may not be told: they list
// again as well. class is that of the session, or "" if it is not known.
func (c *Catalogue) Changed(s *Session, class, method string) {
	sh := c.shelves[c.placeOf(s.key, class, method)]
	if h := s.lists[method]; h != nil {
		sh = h.shelf
	}
	switch {
	case sh != nil:
		sh.changes++
	case class == "":
		*c.changesOf(s.key.Server, method)++
	}
}

// changesOf returns how many changes of a server's list sessions have announced whose class is not known.
func (c *Catalogue) changesOf(server, method string) *uint64 {
	of := place{audience{server: server}, method}
	if c.changes[of] == nil {
		c.changes[of] = new(uint64)
	}
	return c.changes[of]
}

// Forget forgets the lists of a server.
func (c *Catalogue) Forget(server string) {
	for sh := range c.recent.All() {
		if sh.server == server {
			c.remove(sh)
		}
	}
	maps.DeleteFunc(c.changes, func(of place, _ *uint64) bool { return of.server == server })
}

// placeOf returns where the list of a key belongs.
func (c *Catalogue) placeOf(key messages.Key, class, method string) place {
	at := place{audience{key.Server, class}, method}
	if sh := c.shelves[at]; sh != nil && sh.private {
		at.class = listclass.Own(key.Scope)
	}
	return at
}

// shelfOf returns the shelf for a key, and makes it if there is none.
func (c *Catalogue) shelfOf(key messages.Key, class, method string) *shelf {
	at := c.placeOf(key, class, method)
	sh := c.shelves[at]
	if sh == nil {
		sh = &shelf{place: at, others: c.changesOf(key.Server, method), voices: map[string]*ring.Ring[*held]{}, scopes: map[string]struct{}{}}
		c.shelves[at] = sh
	}
	c.recent.Remove(&sh.node)
	c.recent.Push(&sh.node, sh)
	if c.recent.Count > maxShelves {
		c.remove(c.recent.First())
	}
	return sh
}

// count counts a scope that asks for the list of a shelf.
func (c *Catalogue) count(sh *shelf, scope string) {
	if _, counted := sh.scopes[scope]; !counted && c.counted < maxScopes {
		sh.scopes[scope] = struct{}{}
		c.counted++
	}
}

// remove forgets a shelf. A listing for it goes on, for those who wait.
func (c *Catalogue) remove(sh *shelf) {
	c.counted -= len(sh.scopes)
	c.recent.Remove(&sh.node)
	delete(c.shelves, sh.place)
}

// Snapshot returns what is known of each server, in no order.
func (c *Catalogue) Snapshot(now time.Time) map[string]map[string]messages.ListsSnapshot {
	all := map[string]map[string]messages.ListsSnapshot{}
	for sh := range c.recent.All() {
		if sh.shared == nil {
			continue
		}
		if all[sh.server] == nil {
			all[sh.server] = map[string]messages.ListsSnapshot{}
		}
		one := all[sh.server][sh.method]
		one.Lists++
		one.Scopes += len(sh.scopes)
		one.Items = max(one.Items, sh.shared.Items)
		if sh.stale(now) {
			one.Stale++
		}
		if one.Oldest.IsZero() || sh.shared.At.Before(one.Oldest) {
			one.Oldest = sh.shared.At
		}
		all[sh.server][sh.method] = one
	}
	return all
}
