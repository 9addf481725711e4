package catalogue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// world is a catalogue with servers whose lists differ by class, by session and by time.
type world struct {
	t         *testing.T
	catalogue *Catalogue
	rand      *rand.Rand
	now       time.Time
	step      int
	keys      []*key
	common    map[string]int // by class: the list that its sessions have, unless they have one of their own
	announced map[string]int // by class, or by scope if private: the step of the last change that a session was told
	private   bool           // what is listed is for one scope only
	unknown   bool           // the class of a session is not known when it is opened
	idle      bool           // sessions list for others at once
	down      bool           // the server is known to be down
	fresh     bool           // whoever asks wants a list that is not stale
	ttl       time.Duration
	running   []*run
	runs      int
}

// key is a key with its session.
type key struct {
	messages.Key
	class   string
	session *Session
	open    bool
	opened  int    // the step
	own     string // the list of this session alone, or ""
	alone   bool   // it lists for no other
	past    []seen // what it had, the oldest first
}

// seen is what a session had from a step on.
type seen struct {
	step int
	list string
}

// run is a listing under way.
type run struct {
	listing *Listing
	on      *key
	list    *List    // what the server has answered, or nil
	session *Session // that has answered
}

const method = "tools/list"

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, catalogue: New(), rand: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1, 0),
		common: map[string]int{}, announced: map[string]int{}, private: seed%5 == 4, unknown: seed%2 == 1,
	}
	if seed%3 == 2 {
		w.ttl = time.Minute
	}
	for i := range 8 {
		k := &key{Key: messages.Key{Server: "s", Scope: fmt.Sprint(i)}, class: fmt.Sprint("class ", i%2), session: &Session{}}
		w.keys = append(w.keys, k)
	}
	return w
}

// knownClass returns the class of a key that is opened.
func (w *world) knownClass(k *key) string {
	if w.unknown {
		return ""
	}
	return k.class
}

// has returns what the session of a key lists now.
func (w *world) has(k *key) string {
	if k.own != "" {
		return k.class + " " + k.own
	}
	return fmt.Sprint(k.class, " ", w.common[k.class])
}

// note notes what all open sessions list now.
func (w *world) note() {
	w.step++
	for _, k := range w.keys {
		if k.open {
			k.past = append(k.past, seen{w.step, w.has(k)})
		}
	}
}

func (w *world) open(k *key) {
	w.note()
	k.open, k.opened, k.past = true, w.step, nil
	w.catalogue.Opened(k.session, k.Key, w.knownClass(k), w.now)
	w.note()
}

func (w *world) end(k *key) {
	k.open, k.own = false, ""
	if w.rand.IntN(2) == 0 {
		w.catalogue.Lost(k.session, w.now)
		return
	}
	w.catalogue.Closed(k.session, w.now)
	k.session = &Session{}
}

// change changes what the sessions of a class list, and tells some of them, but at least one.
func (w *world) change(class string) {
	w.common[class] = w.rand.IntN(3)
	w.tell(class, w.private || w.rand.IntN(3) == 0)
}

func (w *world) tell(class string, all bool) {
	w.note()
	for _, i := range w.rand.Perm(len(w.keys)) {
		if k := w.keys[i]; k.open && k.class == class {
			w.changed(k)
			if !all {
				break
			}
		}
	}
}

// changed tells the session of a key that its list has changed.
func (w *world) changed(k *key) {
	w.catalogue.Changed(k.session, k.class, method)
	w.announced[w.audience(k)] = w.step
}

// audience returns those who see the same as a key.
func (w *world) audience(k *key) string {
	if w.private {
		return k.Scope
	}
	return k.class
}

// ask asks for the list of a key, and begins to list if it is told to.
func (w *world) ask(k *key) Answer {
	of := k.session
	if !k.open && w.rand.IntN(2) == 0 {
		of = nil // the registry has forgotten it
	}
	q := Question{Key: k.Key, Method: method, Class: k.class, Of: of, Down: w.down, Fresh: w.fresh}
	q.Idle = func(messages.Key) bool { return w.idle }
	a := w.catalogue.Ask(q, w.now)
	w.note()
	if a.Run != nil && !k.open && w.idle && !w.unknown && !w.private {
		require.False(w.t, a.Run.On == k.Key && w.isOpen(k.class), "listing opens no session while an open one of the class could list")
	}
	if q.Fresh && a.Stale {
		require.True(w.t, slices.ContainsFunc(w.keys, func(other *key) bool { return other.open }), "who waits for a fresh list gets a stale one only while a session could list it")
	}
	switch {
	case a.Run != nil:
		w.runs++
		on := w.keys[slices.IndexFunc(w.keys, func(other *key) bool { return other.Key == a.Run.On })]
		require.True(w.t, on == k || on.open, "listing opens no session of another scope")
		require.Equal(w.t, k.class, on.class)
		w.running = append(w.running, &run{listing: a.Run, on: on})
	case a.List != nil:
		w.check(k, a)
	default:
		require.NotNil(w.t, a.Wait)
		require.True(w.t, slices.ContainsFunc(w.running, func(r *run) bool { return r.listing == a.Wait }), "who waits waits for a listing")
	}
	return a
}

// isOpen reports whether a session of a class is open.
func (w *world) isOpen(class string) bool {
	return slices.ContainsFunc(w.keys, func(k *key) bool { return k.open && !k.alone && k.class == class })
}

// check checks what a key sees.
func (w *world) check(k *key, a Answer) {
	require.Equal(w.t, k.class, a.List.Digest[:len(k.class)], "only sessions with the same credentials are listed for a scope")
	if a.List.Private {
		require.Equal(w.t, k.Scope, a.List.Receipt.Key.Scope, "a private list is for its scope only")
	}
	if !k.open {
		return
	}
	since := max(k.opened, w.announced[w.audience(k)])
	require.False(w.t, a.Shared)
	require.True(w.t, slices.ContainsFunc(k.past, func(s seen) bool { return s.step >= since && s.list == a.List.Digest }),
		"%v sees %q, which its session has not listed since step %d: %v", k.Key, a.List.Digest, since, k.past)
	require.False(w.t, a.List.expired(w.now))
}

// answer has the server answer a listing. A key without a session gets one for it.
func (w *world) answer(r *run) {
	if !r.on.open {
		w.open(r.on)
	}
	r.session = r.on.session
	r.list = &List{Result: &messages.ToolList{}, Receipt: messages.Receipt{Key: r.on.Key}, Digest: w.has(r.on), At: w.now, Private: w.private}
	if w.ttl > 0 {
		r.list.Until = w.now.Add(w.ttl)
	}
	w.note()
}

// finish reports the end of a listing. It may have failed, because its session was closed.
func (w *world) finish(r *run, fails bool) {
	w.running = slices.DeleteFunc(w.running, func(other *run) bool { return other == r })
	if fails || r.list == nil {
		w.catalogue.Listed(r.listing, nil, nil, &messages.Failure{Code: messages.CodeClosed}, w.now)
	} else {
		of := r.on.session
		if r.session != of || !r.on.open {
			of = nil // of another generation; a connection that was lost may keep it
		}
		w.catalogue.Listed(r.listing, of, r.list, nil, w.now)
	}
	<-r.listing.Done
}

// act takes a random step.
func (w *world) act() {
	k := w.keys[w.rand.IntN(len(w.keys))]
	switch w.rand.IntN(16) {
	case 0:
		w.change(k.class)
	case 1:
		if !k.open {
			w.open(k)
		}
	case 2:
		if k.open {
			w.end(k)
			if w.rand.IntN(2) == 0 { // its connection is replaced
				w.open(k)
			}
		}
	case 3:
		if k.open { // something that only this session sees
			k.own = fmt.Sprint("own ", w.rand.IntN(2))
			w.note()
			w.changed(k)
		}
	case 4:
		w.now = w.now.Add(time.Duration(w.rand.IntN(200)) * time.Second)
	case 5, 6, 7, 8:
		if len(w.running) > 0 {
			w.answer(w.running[w.rand.IntN(len(w.running))])
		}
	case 9, 10, 11:
		if len(w.running) > 0 {
			w.finish(w.running[w.rand.IntN(len(w.running))], w.rand.IntN(4) == 0)
		}
	default:
		w.down, w.fresh, w.idle = w.rand.IntN(8) == 0, w.rand.IntN(4) == 0, w.rand.IntN(2) == 0
		w.ask(k)
		w.down, w.fresh, w.idle = false, false, false
	}
}

// settle lists until a key gets an answer, and returns it.
func (w *world) settle(k *key) Answer {
	for range 3 * len(w.keys) {
		if a := w.ask(k); a.List != nil {
			return a
		}
		for len(w.running) > 0 {
			w.answer(w.running[0])
			w.finish(w.running[0], false)
		}
	}
	require.Fail(w.t, "the key gets no answer", "%v", k.Key)
	return Answer{}
}

// TestScopesSeeWhatTheirSessionsHave runs servers whose lists differ by session, by credentials and by time, that
// change while they are listed, and that announce a change to one session only.
func TestScopesSeeWhatTheirSessionsHave(t *testing.T) {
	for seed := range uint64(3000) {
		w := newWorld(t, seed)
		for range 200 {
			w.act()
		}
		w.now = w.now.Add(time.Hour)
		for _, k := range w.keys {
			before := w.runs
			a := w.settle(k)
			if k.open {
				require.Equal(t, w.has(k), a.List.Digest, "seed %d", seed)
			}
			require.LessOrEqual(t, w.runs-before, len(w.keys)+1, "seed %d", seed)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestOneListServesAllScopesOfAClass counts the listings of scopes that ask before and after the list is known.
func TestOneListServesAllScopesOfAClass(t *testing.T) {
	w := newWorld(t, 0)
	first := w.keys[0]
	require.NotNil(t, w.ask(first).Run)
	for range 3 {
		for _, k := range w.keys {
			if k.class == first.class {
				require.Equal(t, w.running[0].listing, w.ask(k).Wait)
			}
		}
	}
	w.open(first)
	require.NotNil(t, w.ask(first).Wait, "also when the session has opened, and the list has not come")
	a := w.settle(first)
	require.False(t, a.Shared)
	for range 3 {
		for _, k := range w.keys {
			if k.class == first.class && k != first {
				a = w.ask(k)
				require.Equal(t, Answer{List: a.List, Shared: true}, a)
			}
		}
	}
	require.Equal(t, 1, w.runs)
	snapshot := w.catalogue.Snapshot(w.now)["s"][method]
	require.Equal(t, messages.ListsSnapshot{Lists: 1, Scopes: len(w.keys) / 2, Oldest: w.now}, snapshot)

	w.now = w.now.Add(time.Hour)
	w.catalogue.Closed(first.session, w.now)
	first.open = false
	w.now = w.now.Add(maxAge - 1)
	require.Equal(t, Answer{List: a.List, Shared: true, Until: w.now.Add(1)}, w.ask(w.keys[2]))
	w.now = w.now.Add(1)
	require.Equal(t, Answer{List: a.List, Shared: true, Stale: true, Until: w.now}, w.ask(w.keys[2]), "no session is opened for a stale list")
	w.common[first.class] = 1
	w.open(w.keys[2])
	w.settle(w.keys[2])
	require.Equal(t, "class 0 1", w.ask(w.keys[4]).List.Digest, "the next opening replaces a stale list")
}

// TestSharedListIsReplacedWhenTwoSessionsListTheSame has the server announce the change to one session only.
func TestSharedListIsReplacedWhenTwoSessionsListTheSame(t *testing.T) {
	w := newWorld(t, 0)
	one, two, other := w.keys[0], w.keys[2], w.keys[4]
	for _, k := range []*key{one, two, other} {
		if k != other {
			w.open(k)
		}
		w.settle(k)
	}
	require.Same(t, w.settle(one).List.Result, w.settle(two).List.Result, "the same is kept once")
	one.own = "new"
	w.tell(one.class, true)
	require.Equal(t, "class 0 new", w.settle(one).List.Digest)
	require.Equal(t, "class 0 0", w.settle(other).List.Digest, "one session alone changes nothing for others")
	two.own = "new"
	w.catalogue.Changed(two.session, two.class, method)
	require.Equal(t, "class 0 new", w.settle(other).List.Digest)
	require.Equal(t, "class 0 new", w.settle(two).List.Digest)
}

// TestScopeWithoutASessionHasAnOpenOneListForIt asks for lists that nobody has asked for before.
func TestScopeWithoutASessionHasAnOpenOneListForIt(t *testing.T) {
	for seed, unknown := range []bool{false, true} {
		w := newWorld(t, uint64(seed))
		w.idle = true
		caller, asks := w.keys[0], w.keys[2]
		require.Equal(t, unknown, w.unknown)
		if w.open(caller); unknown {
			w.settle(caller) // then its class is known
			w.catalogue.Forget("s")
		}
		require.Equal(t, caller.Key, w.ask(asks).Run.On)
		require.NotNil(t, w.ask(w.keys[4]).Wait)
		w.finish(w.running[0], true)
		w.idle = false
		require.Equal(t, asks.Key, w.ask(asks).Run.On, "that session is busy, or has failed to list")
		w.finish(w.running[0], true)

		w.idle = true
		w.catalogue.Separate(caller.session)
		caller.alone = true
		require.Equal(t, asks.Key, w.ask(asks).Run.On, "that session may list something else")
		w.finish(w.running[0], true)
		w.end(caller)
		require.Empty(t, w.catalogue.open)
	}
}

// TestListOfASessionThatIsSeparatedMeanwhileIsNotItsOwn has a scope get roots while its session lists.
func TestListOfASessionThatIsSeparatedMeanwhileIsNotItsOwn(t *testing.T) {
	w := newWorld(t, 0)
	k := w.keys[0]
	w.open(k)
	require.NotNil(t, w.ask(k).Run)
	w.answer(w.running[0])
	w.catalogue.Separate(k.session)
	w.finish(w.running[0], false)
	require.Equal(t, k.Key, w.ask(k).Run.On)
	require.Empty(t, w.catalogue.open)
}

// TestListIsFetchedAgainAfterAFailure has a listing fail for one scope while another one waits.
func TestListIsFetchedAgainAfterAFailure(t *testing.T) {
	w := newWorld(t, 0)
	require.NotNil(t, w.ask(w.keys[0]).Run)
	waits := w.ask(w.keys[2]).Wait
	w.finish(w.running[0], true)
	require.Equal(t, messages.CodeClosed, waits.Failure.Code)
	require.Equal(t, w.keys[2].Key, w.ask(w.keys[2]).Run.On, "the next one lists itself")
	w.answer(w.running[0])
	w.finish(w.running[0], false)

	w.tell(w.keys[2].class, true)
	require.Equal(t, w.keys[2].Key, w.ask(w.keys[0]).Run.On, "the open session lists again")
	require.True(t, w.ask(w.keys[0]).Stale, "others do not wait for that")
	w.finish(w.running[0], true)
	require.True(t, w.ask(w.keys[0]).Stale, "what is known is served")
	w.now = w.now.Add(retryAfter)
	require.NotNil(t, w.ask(w.keys[0]).Run)
}

// TestListIsFetchedAgainWhenItsTimeIsOver has a server that gives its lists a time (ttlMs).
func TestListIsFetchedAgainWhenItsTimeIsOver(t *testing.T) {
	w := newWorld(t, 0)
	w.ttl = time.Minute
	w.settle(w.keys[0])
	for range 2 * maxTries {
		w.now = w.now.Add(w.ttl)
		require.Equal(t, w.keys[0].Key, w.ask(w.keys[2]).Run.On)
		require.True(t, w.ask(w.keys[4]).Stale)
		w.answer(w.running[0])
		w.finish(w.running[0], false)
		require.False(t, w.settle(w.keys[2]).Stale)
	}
	w.now = w.now.Add(w.ttl)
	w.catalogue.Lost(w.keys[0].session, w.now)
	require.True(t, w.ask(w.keys[2]).Stale, "no session is opened for it")
}

// TestListOfAnEarlierConnectionIsListedAgain replaces the connection, of which nobody hears that the list has changed.
func TestListOfAnEarlierConnectionIsListedAgain(t *testing.T) {
	for _, open := range []bool{false, true} {
		w := newWorld(t, 0)
		k := w.keys[0]
		if open {
			w.open(k)
		}
		require.NotNil(t, w.ask(k).Run)
		w.answer(w.running[0])
		w.catalogue.Lost(k.session, w.now)
		w.common[k.class] = 1
		if !open { // by the listing
			w.catalogue.Opened(k.session, k.Key, w.knownClass(k), w.now)
			w.catalogue.Lost(k.session, w.now)
		}
		w.open(k)
		w.finish(w.running[0], false)
		require.NotNil(t, w.ask(k).Run)
	}
}

// TestChangeDuringTheFirstListingIsListedAgain has a session whose class is not known when it announces a change.
func TestChangeDuringTheFirstListingIsListedAgain(t *testing.T) {
	w := newWorld(t, 0)
	k := w.keys[0]
	require.NotNil(t, w.ask(k).Run)
	w.answer(w.running[0])
	w.catalogue.Changed(k.session, "", method)
	w.finish(w.running[0], false)
	require.Equal(t, k.Key, w.ask(k).Run.On)
}

// TestServerThatChangesWithEachListingIsNotListedAllTheTime has a scope without a session ask again and again.
func TestServerThatChangesWithEachListingIsNotListedAllTheTime(t *testing.T) {
	w := newWorld(t, 0)
	w.settle(w.keys[0])
	w.tell(w.keys[0].class, true)
	for range 3 {
		before := w.runs
		for range 100 {
			if w.ask(w.keys[2]).Run != nil {
				w.answer(w.running[0])
				w.tell(w.keys[0].class, true)
				w.finish(w.running[0], false)
			}
		}
		require.Equal(t, maxTries, w.runs-before)
		w.now = w.now.Add(retryAfter)
	}
}

// TestSessionThatChangesItsClassLeavesTheOthers has a session whose scope gets roots.
func TestSessionThatChangesItsClassLeavesTheOthers(t *testing.T) {
	w := newWorld(t, 0)
	k := w.keys[0]
	w.settle(k)
	before := w.catalogue.shelfOf(k.Key, k.class, method)
	require.Equal(t, 1, before.backers().Count)
	k.class = "other"
	require.Equal(t, k.Key, w.ask(k).Run.On)
	require.Zero(t, before.backers().Count)
}

// TestForgottenListsAreListedAgain also bounds the lists that are remembered.
func TestForgottenListsAreListedAgain(t *testing.T) {
	w := newWorld(t, 0)
	w.settle(w.keys[0])
	w.catalogue.Forget("another")
	require.NotNil(t, w.ask(w.keys[2]).List)
	w.catalogue.Forget("s")
	require.NotNil(t, w.ask(w.keys[2]).Run)
	for i := range maxShelves + 10 {
		w.catalogue.Ask(Question{Key: messages.Key{Server: "s", Scope: fmt.Sprint(i)}, Method: method, Class: fmt.Sprint(i)}, w.now)
	}
	require.Len(t, w.catalogue.shelves, maxShelves)
	require.Equal(t, maxShelves, w.catalogue.recent.Count)
}
