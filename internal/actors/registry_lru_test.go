package actors

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
		var l lru[int]
		var model [usedSlot + 1][]int
		var places [16]lruNode[int]
		for _, move := range moves {
			member, to := int(move%16), rank(move/16)%(usedSlot+1)
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
			for r := unranked + 1; r < usedSlot+1; r++ {
				require.True(t, slices.Equal(model[r], slices.Collect(l.oldest(r))), "%v", model[r])
				require.Equal(t, len(model[r]), l.len(r))
			}
		}
	})
}

func TestMembersMayBeRemovedWhileTheyAreYielded(t *testing.T) {
	var l lru[int]
	var places [4]lruNode[int]
	for i := range places {
		l.put(&places[i], unusedSlot, i)
	}
	var seen []int
	for i := range l.oldest(unusedSlot) {
		l.remove(&places[i])
		seen = append(seen, i)
	}
	require.Equal(t, []int{0, 1, 2, 3}, seen)
	require.Zero(t, l.len(unusedSlot))
}
