package table

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestAHistogramCountsDurationsByTheirLength(t *testing.T) {
	var h messages.Histogram
	for _, d := range []time.Duration{-time.Second, 0, 100 * time.Microsecond, 100*time.Microsecond + 1, 500 * time.Second, 501 * time.Second} {
		AddTo(&h, d)
	}
	last := len(h.Counts) - 1
	require.Equal(t, [3]uint64{3, 1, 0}, [3]uint64(h.Counts[:3]))
	require.Equal(t, [2]uint64{1, 1}, [2]uint64(h.Counts[last-1:]))
	require.EqualValues(t, 6, h.Count())
	require.Equal(t, 1001*time.Second+200*time.Microsecond+1, h.Sum)
	var before time.Duration
	for i := range last {
		bound, ok := h.Bound(i)
		require.True(t, ok)
		require.Greater(t, bound, before)
		before = bound
	}
	require.Equal(t, 500*time.Second, before)
	_, ok := h.Bound(last)
	require.False(t, ok, "the last one has no bound")
}
