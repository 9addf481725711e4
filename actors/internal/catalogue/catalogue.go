// Package catalogue decides on which session the list of a server is fetched, and which scopes get it.
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
	// maxAge is how long a list is current after the last open session that listed the same.
	maxAge = 5 * time.Minute
	// retryAfter is the pause after a fetch has failed. Meanwhile the old list is served.
	retryAfter = 5 * time.Second
	// maxTries bounds the fetches in a row of a list that changes with each of them.
	maxTries = 3
	// maxTried bounds the open sessions among which an idle one is looked for.
	maxTried = 8
	// maxEntries bounds the lists that are remembered.
	maxEntries = 1 << 12
	// maxScopes bounds the scopes that are counted, over all lists.
	maxScopes = 1 << 16
)

// Catalogue keeps what servers list: tools, prompts, resources and templates. Scopes of one class see the same list, and
// share it. The catalogue sends nothing. It answers who asks for a list: with the list, with a fetch of another to wait
// for, or with a fetch to run.
//
//	unknown ──Ask: Run──▶ being fetched ──Fetched──▶ known ──Ask──▶ Answer
//	   ▲                       │                      │ change, end of ttl: Ask: Run on an open session
//	   └─── Fetched: failure ──┘                      └─ maxAge without an open session: stale
//
// An open session has a list of its own, which is compared with the shared one. Two open sessions that list the same
// other one replace the shared list. One session alone does so only if the shared list is out of date: its ttl has
// ended, or maxAge has passed since an open session listed it. The list of a scope without a session is fetched on an
// open session of its class. A session is opened for a fetch only if there is none.
//
// Opened, Lost, Closed, Changed and Fetched report facts. All methods take constant time, but for Forget and Snapshot,
// whose time grows with the number of lists, which is bounded.
type Catalogue struct {
	entries map[entryKey]*entry
	recent  ring.Ring[*entry] // the least recently asked for first
	counted int               // the scopes that are counted, in all entries
	open    map[audience]*ring.Ring[*Session]
	changes map[entryKey]*uint64 // announced by sessions whose class is not known; by server and method
	running map[string][]*Fetch  // by the scope of the session
}

// entryKey identifies an entry.
type entryKey struct {
	audience
	method string
}

// List is what a server has listed. Read-only.
type List struct {
	Result       messages.Result // lists that are the same share it
	Receipt      messages.Receipt
	Server       *mcp.InitializeResult // of the session, or nil
	Introduction json.RawMessage       // the same as it came, or nil
	Digest       string                // lists with the same digest are the same
	Items        int                   // the number of tools, or of what else is listed
	Bytes        int                   // see package toolsize; 0 if no tools are listed
	At           time.Time             // when it was fetched
	Until        time.Time             // the end of the time that the server gives it, or zero
	Private      bool                  // the server says that it is for this scope only
	Stored       bool                  // it comes from the store
}

// expired reports whether the time that the server has given is over.
func (l *List) expired(now time.Time) bool { return !l.Until.IsZero() && !now.Before(l.Until) }

// Fetch is a fetch of a list that is under way. Who is told to run it lists on the session On, and reports [Catalogue.Fetched].
type Fetch struct {
	On       messages.Key
	Remember bool              // a list from the store will do
	Done     chan struct{}     // closed by Fetched
	Failure  *messages.Failure // why there is no list; set before Done is closed

	entry     *entry
	held      *held    // of the session, if that was open
	of        *Session // nil if there was none when the fetch began
	opened    uint64   // how often the session was opened, with the opening for the fetch
	seen      uint64   // how many changes were announced before
	separated bool     // see [Catalogue.Separate]
}

// Method returns the method of the list.
func (f *Fetch) Method() string { return f.entry.method }

// ListKey returns the key under which a store keeps the list. The member of a cluster that owns the key has the list.
func (f *Fetch) ListKey() messages.Key {
	return ListKey(f.entry.server, f.entry.class, f.entry.method)
}

// ListKey returns the key of a list of a class. It does not reveal the class.
func ListKey(server, class, method string) messages.Key {
	return recordkey.List(server, fmt.Sprintf("%s %x", method, sha256.Sum256([]byte(class))))
}

// MayAsk reports whether another member of a cluster may have the list: scopes share it, and no open session is to list
// it again.
func (f *Fetch) MayAsk() bool { return f.held == nil && f.entry.isShared(f.On) }

// Question asks for a list.
type Question struct {
	Key    messages.Key
	Method string
	Class  string   // see package listclass
	Of     *Session // of the key, or nil
	Down   bool     // the server is known to be down
	Fresh  bool     // a stale list that no open session lists is fetched again first

	// Idle reports whether the session of a key can list for another scope at once. With nil, none can.
	Idle func(messages.Key) bool
}

// Answer has one field of List, Wait and Run set.
type Answer struct {
	List   *List
	Shared bool      // List is not that of the key's own open session
	Stale  bool      // the server may list something else by now
	Until  time.Time // when to ask again, because List may be stale then, or zero

	Wait *Fetch // ask again when it is done
	Run  *Fetch // list, and report Fetched
}

// New returns a catalogue without lists.
func New() *Catalogue {
	return &Catalogue{
		entries: map[entryKey]*entry{}, open: map[audience]*ring.Ring[*Session]{}, changes: map[entryKey]*uint64{}, running: map[string][]*Fetch{},
	}
}

// Ask answers a question.
func (c *Catalogue) Ask(q Question, now time.Time) Answer {
	e := c.entryOf(q.Key, q.Class, q.Method)
	c.count(e, q.Key.Scope)
	own := q.Of.heldOf(q.Method, e)
	open := q.Of != nil && q.Of.open
	switch {
	case own != nil && own.fetch != nil:
		return Answer{Wait: own.fetch}
	case e.fetch != nil && (open && e.fetch.On == q.Key || !open && (e.shared == nil || e.mustList(q, now))):
		return Answer{Wait: e.fetch}
	case open && (own == nil || own.list == nil || own.seen < e.changed() || own.list.expired(now)):
		return c.run(e, q.Key, q.Of)
	case own != nil && own.list != nil && (open || !q.Fresh): // also while the session has lost its connection
		return Answer{List: own.list, Stale: !open, Until: own.list.Until}
	case e.shared == nil, own != nil && own.list != nil, e.mustList(q, now):
		return c.first(e, q)
	}
	if by := e.backers().First(); by != nil && e.fetch == nil && by.fetch == nil && !now.Before(e.retryAt) {
		switch due := by.seen < e.changed() || e.shared.expired(now); {
		case !due:
			e.tries = 0
		case e.tries < maxTries:
			e.tries++
			return c.run(e, by.of.key, by.of)
		default: // it changes with each fetch
			e.tries, e.retryAt = 0, now.Add(retryAfter)
		}
	}
	a := Answer{List: e.shared, Shared: true, Until: e.until()}
	if e.stale(now) || q.Down && e.backers().Count == 0 {
		a.Stale, a.Until, e.missed = true, now, true
		if e.retryAt.After(now) {
			a.Until = e.retryAt
		}
	}
	return a
}

// run begins a fetch on the session of a key. of is that session, or nil if there is none.
func (c *Catalogue) run(e *entry, on messages.Key, of *Session) Answer {
	f := &Fetch{On: on, Done: make(chan struct{}), entry: e, of: of, opened: 1, seen: e.changed()}
	switch {
	case of == nil:
	case of.open:
		f.opened, f.held = of.opened, of.hold(e)
		f.held.fetch = f
	default:
		f.opened = of.opened + 1
	}
	f.Remember = f.MayAsk()
	c.running[on.Scope] = append(c.running[on.Scope], f)
	if e.fetch == nil {
		e.fetch = f
	}
	return Answer{Run: f}
}

// Fetched notes the end of a fetch: a list, which the catalogue owns from then on, or a failure. of is the session that
// was listed, or nil if that is no longer open, or if the list comes from the store. replaced is true if scopes that share
// the list get another answer than before: in place of another list, of a stale one or of a failure. unsaved is true if
// the list is to be saved in the store.
func (c *Catalogue) Fetched(f *Fetch, of *Session, list *List, failure *messages.Failure, now time.Time) (replaced, unsaved bool) {
	defer close(f.Done)
	c.ended(f)
	e := f.entry
	if e.fetch == f {
		e.fetch = nil
	}
	if f.held != nil && f.held.fetch == f {
		f.held.fetch = nil
	}
	if f.Failure = failure; failure != nil {
		e.missed = true
		if e.shared != nil {
			e.retryAt = now.Add(retryAfter)
		}
		return false, false
	}
	if f.separated {
		return false, false
	}
	if list.Private && e.isShared(f.On) { // nobody else may have it
		replaced = e.shared != nil
		e.private, e.shared = true, nil
		e, of = c.entryOf(f.On, e.class, e.method), nil // which changes were announced meanwhile is not known: the session lists again
	}
	if e.shared != nil && e.shared.Digest == list.Digest {
		list.Result = e.shared.Result
	}
	if of != nil && of.open && (f.of == nil || f.of == of) && of.opened == f.opened {
		of.hold(e).put(list, f.seen)
		if e.isShared(f.On) {
			c.join(of, e.audience)
		}
		e.review(now) // it may have been the only one that listed the shared list
	}
	replaced = e.take(list, now) || replaced
	if e.missed && e.shared == list && !list.Stored {
		replaced, e.missed = true, false
	}
	e.review(now)
	if unsaved = e.shared == list && e.isShared(f.On) && e.saved != list.Digest; unsaved {
		e.saved = list.Digest
	}
	return replaced, unsaved && !list.Stored
}

// ended forgets a fetch.
func (c *Catalogue) ended(f *Fetch) {
	of := slices.DeleteFunc(c.running[f.On.Scope], func(other *Fetch) bool { return other == f })
	if c.running[f.On.Scope] = of; len(of) == 0 {
		delete(c.running, f.On.Scope)
	}
}

// Changed notes that the server of a session announces another list. It may not tell the other sessions of the class, so
// they list again as well. class is that of the session, or "" if it is not known.
func (c *Catalogue) Changed(s *Session, class, method string) {
	e := c.entries[c.keyOf(s.key, class, method)]
	if h := s.lists[method]; h != nil {
		e = h.entry
	}
	switch {
	case e != nil:
		e.changes++
	case class == "":
		*c.changesOf(s.key.Server, method)++
	}
}

// changesOf returns the number of changes of a server's list that sessions of an unknown class have announced.
func (c *Catalogue) changesOf(server, method string) *uint64 {
	of := entryKey{audience{server: server}, method}
	if c.changes[of] == nil {
		c.changes[of] = new(uint64)
	}
	return c.changes[of]
}

// Forget forgets the lists of a server.
func (c *Catalogue) Forget(server string) {
	for e := range c.recent.All() {
		if e.server == server {
			c.remove(e)
		}
	}
	maps.DeleteFunc(c.changes, func(of entryKey, _ *uint64) bool { return of.server == server })
}

// keyOf returns the key of the entry with the list of a session.
func (c *Catalogue) keyOf(key messages.Key, class, method string) entryKey {
	at := entryKey{audience{key.Server, class}, method}
	if e := c.entries[at]; e != nil && e.private {
		at.class = listclass.Own(key.Scope)
	}
	return at
}

// entryOf returns the entry with the list of a session, and makes it if there is none.
func (c *Catalogue) entryOf(key messages.Key, class, method string) *entry {
	at := c.keyOf(key, class, method)
	e := c.entries[at]
	if e == nil {
		e = &entry{entryKey: at, others: c.changesOf(key.Server, method), holders: map[string]*ring.Ring[*held]{}, scopes: map[string]struct{}{}}
		c.entries[at] = e
	}
	c.recent.Remove(&e.node)
	c.recent.Push(&e.node, e)
	if c.recent.Count > maxEntries {
		c.remove(c.recent.First())
	}
	return e
}

// count counts a scope that asks for the list of an entry.
func (c *Catalogue) count(e *entry, scope string) {
	if _, counted := e.scopes[scope]; !counted && c.counted < maxScopes {
		e.scopes[scope] = struct{}{}
		c.counted++
	}
}

// remove forgets an entry. A fetch for it continues, for those who wait.
func (c *Catalogue) remove(e *entry) {
	c.counted -= len(e.scopes)
	c.recent.Remove(&e.node)
	delete(c.entries, e.entryKey)
}

// Snapshot returns what is known of each server, in no order.
func (c *Catalogue) Snapshot(now time.Time) map[string]map[string]messages.ListsSnapshot {
	all := map[string]map[string]messages.ListsSnapshot{}
	for e := range c.recent.All() {
		if e.shared == nil {
			continue
		}
		if all[e.server] == nil {
			all[e.server] = map[string]messages.ListsSnapshot{}
		}
		one := all[e.server][e.method]
		one.Lists++
		one.Scopes += len(e.scopes)
		one.Items, one.Bytes = max(one.Items, e.shared.Items), max(one.Bytes, e.shared.Bytes)
		if e.stale(now) {
			one.Stale++
		}
		if one.Oldest.IsZero() || e.shared.At.Before(one.Oldest) {
			one.Oldest = e.shared.At
		}
		all[e.server][e.method] = one
	}
	return all
}
