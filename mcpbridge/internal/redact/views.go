package redact

import (
	"encoding/hex"
	"encoding/json"
	"html"
	"strings"
)

// view is a text with one kind of escape decoded: a server may have written a secret into JSON, a page or a URL.
type view struct {
	text string
	at   []int // the offset in the original text of each byte, and of the end; nil for the original itself
}

// offset returns the offset in the original text of a byte of the view. The end of the view is the end
// of the original, also if that ends within an escape.
func (v view) offset(i int) int {
	if v.at == nil {
		return i
	}
	return v.at[i]
}

// viewsOf returns a view of a text as it is, and one for each kind of escape that may occur in it.
func viewsOf(text string) []view {
	views := []view{{text: text}}
	for _, kind := range escapes {
		if strings.ContainsAny(text, kind.begin) {
			views = append(views, decoded(text, kind))
		}
	}
	return views
}

// escape is a kind of escape.
type escape struct {
	begin  string // the characters that an escape may begin with
	decode func(text string) (value string, length int)
}

// escapes are the kinds of escapes. decode decodes the escape at the beginning of a text, and
// returns its length: 0 if there is none, and tooShort if the text ends within it.
var escapes = []escape{
	{`\`, decodeJSON},
	{"&", decodeHTML},
	{"%", decodeURL},
	{"+", decodeQuery},
}

const tooShort = -1

// decoded returns the view of a text with one kind of escape decoded.
func decoded(text string, kind escape) view {
	var b strings.Builder
	at := make([]int, 0, len(text)+1)
	for i := 0; i < len(text); {
		value, n := kind.decode(text[i:])
		switch n {
		case tooShort:
			return view{b.String(), append(at, len(text))}
		case 0:
			value, n = text[i:i+1], 1
		}
		b.WriteString(value)
		for range len(value) {
			at = append(at, i)
		}
		i += n
	}
	return view{b.String(), append(at, len(text))}
}

// decodeURL decodes %2F.
func decodeURL(text string) (string, int) {
	switch {
	case text[0] != '%':
		return "", 0
	case len(text) < len("%2F"):
		return "", tooShort
	}
	var value [1]byte
	if _, err := hex.Decode(value[:], []byte(text[1:3])); err != nil {
		return "", 0
	}
	return string(value[:]), len("%2F")
}

// decodeQuery decodes what decodeURL does, and + as a space.
func decodeQuery(text string) (string, int) {
	if text[0] == '+' {
		return " ", 1
	}
	return decodeURL(text)
}

// maxEntity bounds the length of an escape of HTML.
const maxEntity = len("&#0000039;")

// decodeHTML decodes &amp;, &#39; and &#x27;.
func decodeHTML(text string) (string, int) {
	if text[0] != '&' {
		return "", 0
	}
	end := 1
	for end < min(len(text), maxEntity) && (text[end] == '#' || '0' <= text[end] && text[end] <= '9' || 'a' <= text[end]|0x20 && text[end]|0x20 <= 'z') {
		end++
	}
	switch {
	case end == len(text):
		return "", tooShort
	case text[end] != ';':
		return "", 0
	}
	escaped := text[:end+1]
	value := html.UnescapeString(escaped)
	if value == escaped {
		return "", 0
	}
	return value, len(escaped)
}

// decodeJSON decodes \n, \/ and \u002f, a pair of surrogates included.
func decodeJSON(text string) (string, int) {
	if text[0] != '\\' {
		return "", 0
	}
	for _, n := range []int{len(`\n`), len(`\u002f`), len(`\ud83d\ude00`)} {
		switch {
		case n > 2 && text[1] != 'u':
			return "", 0
		case len(text) < n:
			return "", tooShort
		}
		var value string
		if json.Unmarshal([]byte(`"`+text[:n]+`"`), &value) == nil && value != "\ufffd" {
			return value, n
		}
	}
	return "", 0
}
