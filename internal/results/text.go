package results

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// text is a string that is decoded into one buffer of the right size. The JSON library copies a
// string with escapes once more, rune by rune.
type text string

// UnmarshalJSON decodes raw.
func (t *text) UnmarshalJSON(raw []byte) error {
	if s, ok := unescape(raw); ok {
		*t = text(s)
		return nil
	}
	return Parse(raw, (*string)(t))
}

// escapes are what stands for a character after a backslash.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape returns the text that a JSON string stands for. It returns false for what is no string,
// and for one that the library has to judge: with invalid UTF-8, or with an unknown escape.
func unescape(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' || !utf8.Valid(raw) {
		return "", false
	}
	var b strings.Builder
	b.Grow(len(raw) - 2)
	for rest := raw[1 : len(raw)-1]; ; {
		plain, escaped, found := bytes.Cut(rest, []byte(`\`))
		b.Write(plain)
		switch {
		case !found:
			return b.String(), true
		case len(escaped) == 0:
			return "", false
		case escaped[0] != 'u':
			c := escapes[escaped[0]]
			if c == 0 {
				return "", false
			}
			b.WriteByte(c)
			rest = escaped[1:]
			continue
		}
		r, ok := hex(escaped[1:])
		if !ok {
			return "", false
		}
		rest = escaped[5:]
		if utf16.IsSurrogate(r) {
			low, ok := rune(unicode.ReplacementChar), false
			if bytes.HasPrefix(rest, []byte(`\u`)) {
				if low, ok = hex(rest[2:]); !ok {
					return "", false
				}
			}
			if r = utf16.DecodeRune(r, low); r != unicode.ReplacementChar {
				rest = rest[6:]
			}
		}
		b.WriteRune(r)
	}
}

// hex returns the rune with these four digits.
func hex(digits []byte) (rune, bool) {
	if len(digits) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(digits[:4]), 16, 16)
	return rune(n), err == nil
}
