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

func TestEventsWithoutABlankLineBetweenThemAreSplit(t *testing.T) {
	const one, other = `data: {"jsonrpc":"2.0","method":"x"}` + "\n", `data: {"jsonrpc":"2.0","id":1,"result":{}}` + "\n"
	for lines, want := range map[string][]string{
		one + other + "\n": {one + "\n", other + "\n"},
		"event: message\n" + one + "id: 1\n" + other + "id: 2\n": {"event: message\n" + one + "id: 1\n\n", other + "id: 2\n"},
		one + other + one + "\n":                                 {one + "\n", other + "\n", one + "\n"},
		one + "\n":                                               nil,
		one + ": beat\n\n":                                       nil,
		one + "data:\n\n":                                        nil,
		one + "data: now\n\n":                                    nil,
		"data: {\ndata: \"jsonrpc\":\"2.0\"}\n\n":                nil,
	} {
		e := ParseEvent([]byte(lines))
		var got []string
		for _, part := range e.split() {
			got = append(got, string(part.Lines))
		}
		require.Equal(t, want, got, lines)
	}
}
