package handles

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// aBook is a book with kinds of handles of one server, in a test.
type aBook struct {
	*testing.T
	*Book
	kinds Kinds
	now   time.Time
	count int
}

func withKinds(t *testing.T, declared ...mcpbridge.Handle) *aBook {
	b := &aBook{T: t, Book: New(), kinds: KindsOf(&mcpbridge.Server{Name: "server", Handles: declared}), now: time.Now()}
	b.Declare("server", b.kinds)
	return b
}

// minted mints a handle of a kind.
func (b *aBook) minted(kind *Kind, scope, id string) *Handle {
	b.Helper()
	b.count++
	m := &Mint{Kind: kind, By: messages.Key{Server: "server", Scope: scope}, Holder: Holder{Scope: scope}, Record: messages.Key{Server: "r", Scope: fmt.Sprint(b.count)}}
	require.True(b, b.Ask(m, b.now))
	b.Answered(m, Answer{ID: id}, 1, b.now)
	return b.kindOf("server", kind.Mint).all[id]
}

// ends ends a scope.
func (b *aBook) ends(scope string) *End {
	return b.End(Matches{Key: func(key messages.Key) bool { return key.Scope == scope }, Scope: scope}, b.now, b.now.Add(time.Minute), b.now)
}

// released returns the ids that are to be released since the last time.
func (b *aBook) released() (ids []string) {
	for _, d := range b.Decided() {
		if d.Release != nil {
			ids = append(ids, d.Release.ID)
		}
	}
	return ids
}

var pid = mcpbridge.Handle{Mint: "start", Path: "pid", Release: "kill"}

// As many handles are released as may be at once. The others wait, and meanwhile their ids may be those of others.
func TestAHandleThatWaitsForItsReleaseMayBeAnotherOne(t *testing.T) {
	b := withKinds(t, pid)
	for i := range maxReleases + 1 {
		b.minted(b.kinds[0], "a", fmt.Sprint(i))
	}
	b.Decided()
	e := b.ends("a")
	ids := b.released()
	require.Len(t, ids, maxReleases)
	b.Broke(messages.Key{Server: "server", Scope: "a"}, true)
	for ; len(ids) > 0; ids = b.released() {
		for _, id := range ids {
			h := b.kindOf("server", "start").all[id]
			require.Error(t, h.Attempt().Begin())
			b.Released(h, Outcome{Left: "it was not sent"}, b.now)
		}
	}
	require.Len(t, e.Left, maxReleases+1)
}

// Two kinds have one argument. What is refused because of one of them is no use of the other.
func TestWhatIsRefusedUsesNothing(t *testing.T) {
	other := pid
	other.Mint, other.Release = "watch", "unwatch"
	b := withKinds(t, pid, other)
	h := b.minted(b.kinds[0], "a", "1")
	b.minted(b.kinds[1], "a", "1")
	b.minted(b.kinds[1], "b", "1")
	given := []Name{{"server", "start", "1"}, {"server", "watch", "1"}}
	_, stale := b.Begins("look", given, Holder{Scope: "a"}, b.now)
	require.True(t, stale)
	require.Zero(t, h.busy)
	b.Decided()
	b.ends("a")
	require.Equal(t, []string{"1"}, b.released())
}

// Who has held a handle in an earlier process does not come back. Somebody else uses it, and then ends.
func TestAHandleIsNotKeptForWhoDoesNotComeBack(t *testing.T) {
	kind := pid
	kind.Unique = true
	b := withKinds(t, kind)
	b.Restore(messages.Key{Server: "r", Scope: "1"}, Record{Key: messages.Key{Server: "server", Scope: "gone"}, Mint: "start", ID: "1"}, b.now.Add(time.Minute), b.now)
	uses, _ := b.Begins("look", []Name{{"server", "start", "1"}}, Holder{Scope: "here"}, b.now)
	b.Ends(uses[0], &Answer{}, true, b.now)
	b.now = b.now.Add(time.Minute)
	b.Due(b.now)
	require.Empty(t, b.released())
	require.Equal(t, "here", uses[0].of.By.Scope)
	b.ends("here")
	require.Equal(t, []string{"1"}, b.released())
}

// A call uses a handle as its scope ends, and as it ends again.
func TestAnEndWaitsForWhatAnEarlierOneWaitsFor(t *testing.T) {
	b := withKinds(t, pid)
	b.minted(b.kinds[0], "a", "1")
	uses, _ := b.Begins("look", []Name{{"server", "start", "1"}}, Holder{Scope: "a"}, b.now)
	first, second := b.ends("a"), b.ends("a")
	require.NotNil(t, second)
	b.Ends(uses[0], &Answer{}, true, b.now)
	h := uses[0].of
	b.Released(h, Outcome{}, b.now)
	require.Equal(t, 1, first.Released)
	require.Equal(t, 1, second.Released)
}

// Release takes a handle as its schema says, also if it is an integer.
func TestTheSchemaSaysWhetherAHandleIsANumber(t *testing.T) {
	k := withKinds(t, pid).kinds[0]
	for of, is := range map[string]bool{"integer": true, "number": true, "string": false} {
		schema := map[string]any{"properties": map[string]any{"pid": map[string]any{"type": of}}}
		require.Equal(t, is, k.NumberIn(schema), of)
	}
	require.False(t, k.NumberIn(nil))
}
