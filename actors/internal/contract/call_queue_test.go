package contract

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzQueue plays the same moves on two queues and on a model: slices. Each byte is
// one move of one of 16 calls.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 1, 2, 33, 64, 65, 200, 17, 90})
	f.Fuzz(func(t *testing.T, moves []byte) {
		var queues [2]Queue
		var model [2][]*Call
		calls := make([]*Call, 16)
		for i := range calls {
			calls[i] = &Call{}
		}
		for _, move := range moves {
			k, at := calls[move%16], int(move/16)%2
			switch queued := k.Queued(); {
			case queued:
				queues[at].Remove(k) // does nothing in the other one
				model[at] = slices.DeleteFunc(model[at], func(m *Call) bool { return m == k })
			case move > 127:
				queues[at].PushFront(k)
				model[at] = slices.Insert(model[at], 0, k)
			default:
				queues[at].Push(k)
				model[at] = append(model[at], k)
			}
			for i := range queues {
				require.Equal(t, len(model[i]), queues[i].Count)
				require.True(t, slices.Equal(model[i], slices.Collect(queues[i].All())))
			}
		}
		require.True(t, slices.Equal(model[0], queues[0].Take()))
		require.Zero(t, queues[0].Count)
	})
}
