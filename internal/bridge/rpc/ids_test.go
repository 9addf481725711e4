package rpc

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two connections are apart however many there have been between them.
func TestNumbersOfConnectionsAreFarApart(t *testing.T) {
	var before []int64
	for range 20_000 {
		before = append(before, NewIDs(nil).before)
	}
	slices.Sort(before)
	for i := range before[1:] {
		require.Greater(t, before[i+1]-before[i], int64(1<<32))
	}
}
