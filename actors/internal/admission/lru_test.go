package admission

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzLRU plays the same moves on the lru and on a model: a slice for each
// rank. Each byte is one move.
func FuzzLRU(f *testing.F) {
	f.Add([]byte{0, 1, 2, 65, 130, 0, 3, 192})
	f.Add([]byte("put, put again, remove"))
	f.Fuzz(func(t *testing.T, moves []byte) {
		var l LRU[int]
		var model [UsedSlot + 1][]int
		var places [16]Node[int]
		for _, move := range moves {
			member, to := int(move%16), Rank(move/16)%(UsedSlot+1)
			for r := range model {
				model[r] = slices.DeleteFunc(model[r], func(m int) bool { return m == member })
			}
			if to == Unranked && move > 127 {
				l.Remove(&places[member])
			} else {
				l.Put(&places[member], to, member)
			}
			if to != Unranked {
				model[to] = append(model[to], member)
			}
			for r := Unranked + 1; r < UsedSlot+1; r++ {
				require.True(t, slices.Equal(model[r], slices.Collect(l.Oldest(r))), "%v", model[r])
				require.Equal(t, len(model[r]), l.Len(r))
			}
		}
	})
}

func TestMembersMayBeRemovedWhileTheyAreYielded(t *testing.T) {
	var l LRU[int]
	var places [4]Node[int]
	for i := range places {
		l.Put(&places[i], UnusedSlot, i)
	}
	var seen []int
	for i := range l.Oldest(UnusedSlot) {
		l.Remove(&places[i])
		seen = append(seen, i)
	}
	require.Equal(t, []int{0, 1, 2, 3}, seen)
	require.Zero(t, l.Len(UnusedSlot))
}
