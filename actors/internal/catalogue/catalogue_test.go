package catalogue

import (
	"fmt"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// TestOneListServesAllScopesOfAClass counts the listings of scopes that ask before and after the list is known.
func TestOneListServesAllScopesOfAClass(t *testing.T) {
	w := newWorld(t, 0)
	first := w.keys[0]
	require.NotNil(t, w.ask(first).Run)
	for range 3 {
		for _, k := range w.keys {
			if k.class == first.class {
				require.Equal(t, w.running[0].fetch, w.ask(k).Wait)
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

// TestListThatOneSessionChangesIsItsOwn has a change in the only session that is open, such as after a login.
func TestListThatOneSessionChangesIsItsOwn(t *testing.T) {
	w := newWorld(t, 0)
	one, other := w.keys[0], w.keys[2]
	w.settle(one)
	one.own = "new"
	w.tell(one.class, true)
	require.Equal(t, "class 0 new", w.settle(one).List.Digest)
	require.Equal(t, "class 0 0", w.settle(other).List.Digest)
	w.now = w.now.Add(maxAge)
	require.True(t, w.settle(other).Stale)
	other.own = "new"
	w.open(other)
	w.settle(other)
	require.Equal(t, "class 0 new", w.settle(w.keys[4]).List.Digest)
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
		w.separate(caller)
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
	w.catalogue.Separate(w.now, k.Scope, k.session)
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
		if !open { // by the fetch
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
	before := w.catalogue.entryOf(k.Key, k.class, method)
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
	for i := range maxEntries + 10 {
		w.catalogue.Ask(Question{Key: messages.Key{Server: "s", Scope: fmt.Sprint(i)}, Method: method, Class: fmt.Sprint(i)}, w.now)
	}
	require.Len(t, w.catalogue.entries, maxEntries)
	require.Equal(t, maxEntries, w.catalogue.recent.Count)
}

// TestScopesThatAreCountedAreBounded has very many scopes ask, of one class and of many.
func TestScopesThatAreCountedAreBounded(t *testing.T) {
	c, now := New(), time.Unix(1, 0)
	ask := func(server, class string, scope int) {
		c.Ask(Question{Key: messages.Key{Server: server, Scope: fmt.Sprint(scope)}, Class: class, Method: method}, now)
	}
	names := func() (n int) {
		for _, e := range c.entries {
			n += len(e.scopes)
		}
		return n
	}
	for i := range 1 << 14 {
		ask("s", "one", i)
	}
	require.Equal(t, 1<<14, names())
	for i := range 1 << 17 {
		ask("s", fmt.Sprint(i%100), i)
		ask("s", fmt.Sprint(i%100), i)
	}
	require.Equal(t, maxScopes, names())
	for i := range 2 * maxEntries { // the entries before are forgotten
		ask("s", fmt.Sprint("other ", i), i)
	}
	require.LessOrEqual(t, names(), maxEntries)
	c.Forget("s")
	ask("t", "one", 1)
	require.Equal(t, 1, names())
	require.Equal(t, 1, c.counted)
}

// The page shows what the largest list takes of a model's context.
func TestSnapshotHasTheSizeOfTheLargestListOfTools(t *testing.T) {
	w := newWorld(t, 0)
	for i, k := range []*key{w.keys[0], w.keys[1]} {
		require.NotEqual(t, w.keys[0].class, w.keys[1].class)
		tools := []*mcp.Tool{{Name: "a", Title: "not counted", InputSchema: map[string]any{"type": "object"}}, nil, {Name: "b"}}
		list := ListOf(&messages.ToolList{Result: &mcp.ListToolsResult{Tools: tools[i:]}}, &messages.Listing{At: w.now})
		w.catalogue.Fetched(w.ask(k).Run, nil, list, nil, w.now)
	}
	want := len(`{"name":"a","inputSchema":{"type":"object"}}` + `{"name":"b"}`)
	require.Equal(t, want, w.catalogue.Snapshot(w.now)["s"][method].Bytes)
	require.Zero(t, ListOf(&messages.PromptList{Result: &mcp.ListPromptsResult{Prompts: []*mcp.Prompt{{Name: "a"}}}}, &messages.Listing{}).Bytes)
}
