package rpc

import (
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

// response is a response with an id as the SDK has it.
func response(t *testing.T, id any) *jsonrpc.Response {
	t.Helper()
	made, err := jsonrpc.MakeID(id)
	require.NoError(t, err)
	return &jsonrpc.Response{ID: made}
}

// However many connections there are, and however many requests each of them sends, each response
// belongs to one request of one connection, and ids fit in 32 bits.
func TestNumbersOfConnectionsAreDifferentAndSmall(t *testing.T) {
	var strays atomic.Uint64
	var all []*IDs
	seen := map[int64]bool{}
	for range 20 {
		all = append(all, NewIDs(&strays))
	}
	for number := int64(1); number <= 1000; number++ {
		for _, ids := range all {
			onWire := ids.OnWire(number)
			require.False(t, seen[onWire])
			require.Equal(t, onWire, ids.OnWire(number), "a request that is sent again has the same")
			require.GreaterOrEqual(t, onWire, int64(1<<30))
			require.Less(t, onWire, int64(1<<31))
			seen[onWire] = true
			resp := response(t, float64(onWire))
			require.True(t, ids.Restore(resp))
			require.Equal(t, number, resp.ID.Raw())
		}
	}
	require.Zero(t, strays.Load())
	require.False(t, all[0].Restore(response(t, float64(all[1].OnWire(7)))))
	require.EqualValues(t, 1, strays.Load())
}

func TestNumbersAreSmallWhereTheyBeginAnew(t *testing.T) {
	var strays atomic.Uint64
	ids := NewIDs(&strays)
	ids.blocks = []idBlock{{0, 1<<64 - 2, idsBlock}}
	for number := int64(1); number <= 3; number++ {
		resp := response(t, float64(ids.OnWire(number)))
		require.Less(t, ids.OnWire(number), int64(1<<31))
		require.True(t, ids.Restore(resp))
		require.Equal(t, number, resp.ID.Raw())
	}
}

// A connection that has sent many requests knows what it has sent by a few numbers.
func TestNumbersOfALongConnectionTakeNoMemory(t *testing.T) {
	ids := NewIDs(new(atomic.Uint64))
	for number := int64(1); number <= 300_000; number++ {
		ids.OnWire(number)
	}
	require.Less(t, len(ids.blocks), 16)
}

func TestResponseWithAnotherIDIsAStray(t *testing.T) {
	for name, c := range map[string]struct {
		id  any
		own bool
	}{
		"own":                    {float64(1<<30 + 4), true},
		"as text":                {"1073741828", true},
		"not asked yet":          {float64(1<<30 + 10), false},
		"of the SDK":             {float64(4), false},
		"as large as none":       {float64(1 << 40), false},
		"negative":               {float64(-(1<<30 + 4)), false},
		"text":                   {"server-error", false},
		"text with a fraction":   {"1073741828.5", false},
		"the same in other text": {" 1073741828", false},
	} {
		t.Run(name, func(t *testing.T) {
			var strays atomic.Uint64
			ids := IDsFrom(&strays)
			ids.OnWire(9)
			resp := response(t, c.id)
			require.Equal(t, c.own, ids.Restore(resp))
			require.Equal(t, !c.own, strays.Load() == 1)
			if c.own {
				require.EqualValues(t, 4, resp.ID.Raw())
			}
		})
	}
}
