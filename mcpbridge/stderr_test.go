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
	lines := s.Take(10)
	require.Equal(t, mcpbridge.StderrLine{Text: "9"}, lines[9])
	put("100")
	lines = s.Take(100)
	require.Len(t, lines, 55)
	require.Equal(t, []mcpbridge.StderrLine{{Text: "62"}, {Text: "99", Dropped: 36}, {Text: "100"}}, lines[52:], "some are missing before the latest")
	put("more")
	require.Equal(t, 2, ready)
	require.Equal(t, []mcpbridge.StderrLine{{Text: "more"}}, s.Take(100))
	put("nobody takes it")
	s.Follow(nil)
	require.Empty(t, s.Take(100))
	put("nobody follows")

	var none *mcpbridge.Stderr
	none.Put(func() string { return "" })
	none.Follow(func() {})
	require.Empty(t, none.Take(1))
	require.False(t, none.Followed())
}
