package actors

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// FuzzLRU plays the same moves on the lru and on a model: a slice for each
// rank. Each byte is one move.
func FuzzLRU(f *testing.F) {
	f.Add([]byte{0, 1, 2, 65, 130, 0, 3, 192})
	f.Add([]byte("put, put again, remove"))
	f.Fuzz(func(t *testing.T, moves []byte) {
		var l lru[int]
		var model [inUse + 1][]int
		var places [16]place[int]
		for _, move := range moves {
			member, to := int(move%16), rank(move/16)%(inUse+1)
			for r := range model {
				model[r] = slices.DeleteFunc(model[r], func(m int) bool { return m == member })
			}
			if to == unranked && move > 127 {
				l.remove(&places[member])
			} else {
				l.put(&places[member], to, member)
			}
			if to != unranked {
				model[to] = append(model[to], member)
			}
			for r := unranked + 1; r < inUse+1; r++ {
				require.True(t, slices.Equal(model[r], slices.Collect(l.oldest(r))), "%v", model[r])
				require.Equal(t, len(model[r]), l.len(r))
			}
		}
	})
}

func TestMembersMayBeRemovedWhileTheyAreYielded(t *testing.T) {
	var l lru[int]
	var places [4]place[int]
	for i := range places {
		l.put(&places[i], unused, i)
	}
	var seen []int
	for i := range l.oldest(unused) {
		l.remove(&places[i])
		seen = append(seen, i)
	}
	require.Equal(t, []int{0, 1, 2, 3}, seen)
	require.Zero(t, l.len(unused))
}

func TestGenerationsNeverShrinkThoughKeysAreForgotten(t *testing.T) {
	g := generations{limit: 2}
	key := func(scope string) messages.Key { return messages.Key{Server: "s", Scope: scope} }
	require.Zero(t, g.of(key("a")))
	g.set(key("a"), 7)
	g.set(key("b"), 1)
	g.set(key("a"), 8)
	g.set(key("c"), 1) // forgets b
	require.EqualValues(t, 8, g.of(key("a")))
	require.EqualValues(t, 1, g.of(key("b")))
	g.set(key("b"), 2) // forgets a
	require.EqualValues(t, 8, g.of(key("a")))
	require.EqualValues(t, 8, g.of(key("new")), "who knows")
	require.Equal(t, 2, g.order.Len())
}
