package rpc

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDataOfAnEventIsJoinedOverItsLines(t *testing.T) {
	for lines, want := range map[string]string{
		"data: a\n": "a", "data: a\ndata:b\n": "a\nb", "data: a\nid: 1\ndata:\ndata: c \ndata: d\n": "a\n\nc\nd",
	} {
		before := []byte(lines)
		e := ParseEvent(before)
		require.Equal(t, want, string(e.Data))
		require.Equal(t, lines, string(before))
		with := ParseEvent(e.With(bytes.Clone(e.Data)))
		require.Equal(t, want, string(with.Data))
		require.Equal(t, e.ID, with.ID)
	}
}

// A server that indents its JSON sends each line of it as a line of data.
func TestDataWithManyLinesIsCopiedAFewTimes(t *testing.T) {
	lines := []byte(strings.Repeat("data: \"text\",\n", 10_000))
	require.Less(t, testing.AllocsPerRun(1, func() { ParseEvent(lines) }), 50.0)
}
