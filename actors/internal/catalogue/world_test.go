package catalogue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/listclass"
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
	answered  map[*List]int // the step at which the server has answered with a list
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
	alone   bool   // its scope has set what servers may list by
	parted  bool   // that was set, or unset, since the session was opened
	past    []seen // what it had, the oldest first
}

// seen is what a session had from a step on.
type seen struct {
	step int
	list string
}

// run is a listing under way.
type run struct {
	fetch   *Fetch
	on      *key
	list    *List    // what the server has answered, or nil
	session *Session // that has answered
	opened  int      // the step at which the session was opened last when the fetch began
}

const method = "tools/list"

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, catalogue: New(), rand: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1, 0),
		common: map[string]int{}, announced: map[string]int{}, answered: map[*List]int{}, private: seed%5 == 4, unknown: seed%2 == 1,
	}
	if seed%3 == 2 {
		w.ttl = time.Minute
	}
	for i := range 8 {
		k := &key{Key: messages.Key{Server: "s", Scope: fmt.Sprint(i)}, class: commonClass(i), session: &Session{}}
		w.keys = append(w.keys, k)
	}
	return w
}

// commonClass returns the class of a scope that shares its lists.
func commonClass(scope int) string { return fmt.Sprint("class ", scope%2) }

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
	k.open, k.opened, k.parted, k.past = true, w.step, false, nil
	w.catalogue.Opened(k.session, k.Key, w.knownClass(k), w.now)
	w.note()
}

// openOwn opens the session of a key, which may have a list of its own from the beginning.
func (w *world) openOwn(k *key) {
	if w.rand.IntN(3) == 0 {
		k.own = fmt.Sprint("own ", w.rand.IntN(2))
	}
	w.open(k)
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

// separate has the scope of a key set what servers may list by, or take that back.
func (w *world) separate(k *key) {
	w.note()
	if k.alone = !k.alone; k.alone {
		k.class = listclass.Own(k.Scope)
	} else {
		k.class = commonClass(slices.Index(w.keys, k))
	}
	k.parted = true
	w.catalogue.Separate(w.now, k.Scope, k.session)
	w.note()
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
	w.catalogue.Changed(k.session, w.knownClass(k), method)
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
		require.False(w.t, a.Run.On == k.Key && w.isOpen(k, false), "fetch opens no session while an open one of the class could list")
	}
	if q.Fresh && a.Stale {
		require.True(w.t, a.Shared && w.isOpen(k, true), "who waits for a fresh list gets a stale one only while another session could list it")
	}
	switch {
	case a.Run != nil:
		w.runs++
		on := w.keys[slices.IndexFunc(w.keys, func(other *key) bool { return other.Key == a.Run.On })]
		require.True(w.t, on == k || on.open, "fetch opens no session of another scope")
		require.Equal(w.t, k.class, on.class)
		require.False(w.t, on.open && slices.ContainsFunc(w.running, func(r *run) bool {
			return r.on == on && r.opened == on.opened && r.fetch.entry == a.Run.entry && !r.fetch.separated
		}), "a session lists once at a time")
		if on != k && !w.idle {
			require.NotZero(w.t, w.catalogue.entryOf(k.Key, k.class, method).backers().Count, "a busy session lists only again what it has listed")
		}
		w.running = append(w.running, &run{fetch: a.Run, on: on, opened: on.opened})
	case a.List != nil:
		w.check(k, a)
	default:
		require.NotNil(w.t, a.Wait)
		require.True(w.t, slices.ContainsFunc(w.running, func(r *run) bool { return r.fetch == a.Wait }), "who waits waits for a fetch")
		require.True(w.t, !k.open || a.Wait.On == k.Key, "who has a session waits for no other")
	}
	return a
}

// isOpen reports whether a session is open of those who see the same as a key, with or without those that have parted.
func (w *world) isOpen(k *key, parted bool) bool {
	return slices.ContainsFunc(w.keys, func(other *key) bool {
		return other.open && w.audience(other) == w.audience(k) && (parted || !other.parted)
	})
}

// check checks what a key sees.
func (w *world) check(k *key, a Answer) {
	own := !k.open && a.List.Receipt.Key == k.Key // it may have been listed before the scope has set something
	require.True(w.t, own || strings.HasPrefix(a.List.Digest, k.class+" "), "only sessions with the same credentials are listed for a scope")
	require.False(w.t, a.Shared && a.Stale && a.Until.IsZero(), "perhaps no event says when to ask again for a list that is stale")
	if a.List.Private {
		require.Equal(w.t, k.Scope, a.List.Receipt.Key.Scope, "a private list is for its scope only")
	}
	if by := w.catalogue.entryOf(k.Key, k.class, method).backers().First(); a.Shared && !a.Stale && by != nil {
		require.GreaterOrEqual(w.t, w.answered[by.list], w.announced[w.audience(k)], "a list that is not marked is of the time after the last change")
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
	w.answered[r.list] = w.step
}

// finish reports the end of a listing. It may have failed, because its session was closed.
func (w *world) finish(r *run, fails bool) {
	w.running = slices.DeleteFunc(w.running, func(other *run) bool { return other == r })
	e := r.fetch.entry
	before, held := e.shared, e.shared != nil && !e.shared.expired(w.now) && (e.backers().Count > 0 || !e.stale(w.now))
	if fails || r.list == nil {
		w.catalogue.Fetched(r.fetch, nil, nil, &messages.Failure{Code: messages.CodeClosed}, w.now)
	} else {
		of := r.on.session
		if r.session != of || !r.on.open {
			of = nil // of another generation; a connection that was lost may keep it
		}
		w.catalogue.Fetched(r.fetch, of, r.list, nil, w.now)
	}
	<-r.fetch.Done
	if held && e.shared != nil && e.shared.Digest != before.Digest {
		require.Greater(w.t, w.count(r.list.Digest), 1, "what one session lists replaces no list that is not stale")
	}
}

// count returns how many sessions are open that have listed something since they were opened.
func (w *world) count(list string) (n int) {
	for _, k := range w.keys {
		if k.open && slices.ContainsFunc(k.past, func(s seen) bool { return s.list == list }) {
			n++
		}
	}
	return n
}

// act takes a random step.
func (w *world) act() {
	k := w.keys[w.rand.IntN(len(w.keys))]
	switch w.rand.IntN(17) {
	case 0:
		w.change(k.class)
	case 1:
		if !k.open {
			w.openOwn(k)
		}
	case 2:
		if k.open {
			w.end(k)
			if w.rand.IntN(2) == 0 { // its connection is replaced
				w.openOwn(k)
			}
		}
	case 3:
		if k.open { // something that only this session sees
			k.own = fmt.Sprint("own ", w.rand.IntN(2))
			w.note()
			w.changed(k)
		}
	case 16:
		if w.rand.IntN(2) == 0 {
			w.separate(k)
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

// agree checks that what all open sessions of a class list, which are at least two, is what others of the class see.
func (w *world) agree() {
	have := map[string][]string{}
	for range 2 {
		clear(have)
		for _, k := range w.keys {
			if k.open {
				have[w.audience(k)] = append(have[w.audience(k)], w.settle(k).List.Digest)
			}
		}
	}
	for _, k := range w.keys {
		all := have[w.audience(k)]
		if len(all) < 2 || len(slices.Compact(all)) > 1 {
			continue
		}
		if shared := w.catalogue.entryOf(k.Key, k.class, method).shared; shared != nil {
			require.Equal(w.t, all[0], shared.Digest, "two sessions that list the same replace the list")
		}
	}
}

// TestScopesSeeWhatTheirSessionsHave runs servers whose lists differ by session, by credentials and by time, that
// change while they are listed, and that announce a change to one session only.
func TestScopesSeeWhatTheirSessionsHave(t *testing.T) {
	for seed := range uint64(3000) {
		w := newWorld(t, seed)
		for range 200 {
			w.act()
		}
		w.agree()
		w.now = w.now.Add(time.Hour)
		for _, k := range w.keys {
			before := w.runs
			a := w.settle(k)
			if k.open {
				require.Equal(t, w.has(k), a.List.Digest, "seed %d", seed)
			}
			require.LessOrEqual(t, w.runs-before, len(w.keys)+1, "seed %d", seed)
		}
		for len(w.running) > 0 {
			w.finish(w.running[0], true)
		}
		require.Empty(t, w.catalogue.running)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
