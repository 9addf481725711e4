package mcpbridge_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

func TestStderrHoldsABoundedNumberOfLinesForAFollower(t *testing.T) {
	var s mcpbridge.Stderr
	put := func(line string) { s.Put(func() string { return line }) }
	put("nobody follows")
	require.False(t, s.Followed())
	ready := 0
	s.Follow(func() { ready++ })
	require.True(t, s.Followed())
	for i := range 100 {
		put(fmt.Sprint(i))
	}
	require.Equal(t, 1, ready)
	lines, dropped := s.Take(10)
	require.Equal(t, "9", lines[9])
	require.EqualValues(t, 36, dropped)
	lines, dropped = s.Take(100)
	require.Len(t, lines, 54)
	require.Equal(t, "63", lines[53])
	require.Zero(t, dropped)
	put("more")
	require.Equal(t, 2, ready)
	s.Follow(nil)
	lines, _ = s.Take(100)
	require.Empty(t, lines)
	put("nobody follows")

	var none *mcpbridge.Stderr
	none.Put(func() string { return "" })
	none.Follow(func() {})
	lines, _ = none.Take(1)
	require.Empty(t, lines)
	require.False(t, none.Followed())
}
