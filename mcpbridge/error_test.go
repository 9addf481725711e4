package mcpbridge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Finding E3: an error that is wrapped on its way still has the words for the caller,
// and its own text never has them.
func TestWordsForTheCallerSurviveWrapping(t *testing.T) {
	died := &Error{Class: Lost, Detail: "the process exited", words: "out of memory"}
	for name, test := range map[string]struct {
		err  *Error
		want string
	}{
		"itself":            {died, "the process exited: out of memory"},
		"in another":        {&Error{Detail: "set-up: the process exited", Err: died}, "set-up: the process exited: out of memory"},
		"deeper":            {&Error{Detail: "x", Err: fmt.Errorf("a: %w", &Error{Err: died})}, "x: out of memory"},
		"as a dial's error": {AsDialError(died), "the process exited: out of memory"},
		"none":              {&Error{Detail: "x", Err: fmt.Errorf("y")}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, test.err.ForCaller())
			require.NotContains(t, test.err.Error(), "out of memory")
		})
	}
}

// Finding E10: what is not visible is dropped, also where it would hide a secret from
// being found.
func TestTextsOfServersAreVisibleAndOnOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"no such user \u202exe.txt\u202c\u200b!":                   "no such user xe.txt!",
		"line\u2028level=error msg=forged\u0085\x1b[2J":            "line level=error msg=forged  [2J",
		"token hunter22, h\u200bunt\u00ader22, hun\U000E0041ter22": "token …, …, …",
		" \u200b\n":  "",
		"naïve 日本 👍": "naïve 日本 👍",
	} {
		require.Equal(t, want, clean(text, "hunter22"))
	}
	require.LessOrEqual(t, len(clean(strings.Repeat("é", maxDetail))), maxDetail+len("…"))
}
