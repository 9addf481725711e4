package redact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// H-E10: invisible characters are removed before secrets are searched, so that they cannot
// hide one.
func TestTextsOfServersAreVisibleAndOnOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"no such user \u202exe.txt\u202c\u200b!":                   "no such user xe.txt!",
		"line\u2028level=error msg=forged\u0085\x1b[2J":            "line level=error msg=forged  [2J",
		"token hunter22, h\u200bunt\u00ader22, hun\U000E0041ter22": "token …, …, …",
		" \u200b\n":  "",
		"naïve 日本 👍": "naïve 日本 👍",
	} {
		require.Equal(t, want, Clean(text, "hunter22"))
	}
	require.LessOrEqual(t, len(Clean(strings.Repeat("é", MaxDetail))), MaxDetail+len("…"))
}
