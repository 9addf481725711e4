package stdio

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
)

func TestTailKeepsTheLastBytes(t *testing.T) {
	var tail tail
	var all []byte
	for i := range 3 * tailSize {
		b := bytes.Repeat([]byte{byte('a' + i%26)}, i%17)
		tail.write(b)
		all = append(all, b...)
	}
	require.Equal(t, string(all[len(all)-tailSize:]), string(tail.buf))
	require.LessOrEqual(t, cap(tail.buf), 2*tailSize)

	tail.write(bytes.Repeat([]byte("x"), 3*tailSize))
	require.Equal(t, strings.Repeat("x", tailSize), string(tail.buf))
}

func TestTailDrainsItsReaderToTheEnd(t *testing.T) {
	var tail tail
	r := strings.NewReader(strings.Repeat("flood\n", 100_000) + "the end")
	tail.drain(r, new(lines))
	require.Zero(t, r.Len())
	require.Equal(t, "…the end", tail.last(10))
}

func TestTailTextIsOneBoundedLine(t *testing.T) {
	for name, c := range map[string]struct {
		in    string
		limit int
		want  string
	}{
		"nothing":       {"", 10, ""},
		"blank":         {" \r\n\n", 10, ""},
		"lines":         {"one\ntwo\r\n", 20, "one two"},
		"escape":        {"\x1b[31mred", 20, "red"},
		"not UTF-8":     {"a\xff\xfeb", 20, "a�b"},
		"exact":         {"0123456789", 10, "0123456789"},
		"too long":      {"x0123456789", 10, "…0123456789"},
		"rune cut":      {"äöü", 5, "…öü"},
		"secret":        {"token hunter22 refused", 40, "token … refused"},
		"secret at cut": {"token hunter22 refused", 12, "…… refused"},
	} {
		t.Run(name, func(t *testing.T) {
			var tail tail
			tail.write([]byte(c.in))
			require.Equal(t, c.want, tail.last(c.limit, "hunter22"))
		})
	}
}

// What is kept may begin in the middle of a secret, of which that is too much.
func TestTailHasNoEndOfASecret(t *testing.T) {
	secret := strings.Repeat("0123456789abcdef", tailSize/16)
	var tail tail
	tail.write([]byte("the token is " + secret + " refused"))
	require.Equal(t, "refused", tail.last(100, "another secret", secret))
}

func FuzzTailText(f *testing.F) {
	f.Add([]byte("one\ntwo"), 100)
	f.Add([]byte("\xe2\x82\xe2\x82\xac"), 2)
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		limit = max(1, min(limit, redact.MaxDetail-len("…")))
		var tail tail
		tail.write(in)
		got := tail.last(limit)
		require.LessOrEqual(t, len(got), limit+len("…"))
		require.True(t, utf8.ValidString(got))
		require.NotContains(t, got, "\n")
	})
}
