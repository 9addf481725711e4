package redact

import (
	"encoding/json"
	"html"
	"iter"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// span is a part of a text: the offsets of its beginning and its end.
type span struct{ from, to int }

const (
	whole = `(?:%(?:25)*[0-9a-fA-F]{2})+|&(?:amp;)*#?\w{1,8};|(?:\\+u[0-9a-fA-F]{4})+|\\+[bfnrt]`
	cut   = `|(?:%(?:25)*[0-9a-fA-F]?|&(?:amp;)*#?\w{0,8}|\\+u?[0-9a-fA-F]{0,3})$`
)

var (
	// inSecret finds the escapes of URLs, HTML and JSON, also those of escapes. Several may stand for one character.
	inSecret = regexp.MustCompile(whole)
	// inText also finds the beginning of an escape at the end of a text.
	inText = regexp.MustCompile(whole + cut)

	percents    = regexp.MustCompile(`%(?:25)*([0-9a-fA-F]{2})`)
	ampersands  = regexp.MustCompile(`&(?:amp;)*`)
	backslashes = regexp.MustCompile(`\\+`)
)

// unescape returns what escapes stand for. It returns "" for an escape that is cut off.
func unescape(escaped string) (text string) {
	switch {
	case escaped[0] == '%':
		if strings.Contains(escaped, "%25") {
			escaped = percents.ReplaceAllString(escaped, "%$1")
		}
		text, _ = url.PathUnescape(escaped)
	case escaped[0] == '\\':
		json.Unmarshal([]byte(`"`+backslashes.ReplaceAllString(escaped, `\`)+`"`), &text) //nolint:errcheck // as said
	case strings.HasSuffix(escaped, ";"):
		text = html.UnescapeString(ampersands.ReplaceAllString(escaped, "&"))
	}
	return text
}

// characters yields the characters of a text without escapes, and where they come from.
func characters(text string, escapes *regexp.Regexp) iter.Seq2[rune, span] {
	return func(yield func(rune, span) bool) {
		var found [][]int
		if strings.ContainsAny(text, `%&\`) {
			found = escapes.FindAllStringIndex(text, -1)
		}
		end := 0
		for _, at := range append(found, []int{len(text), len(text)}) {
			for i, r := range text[end:at[0]] {
				if !yield(r, span{end + i, end + i + utf8.RuneLen(r)}) {
					return
				}
			}
			if end = at[1]; at[0] == at[1] {
				continue
			}
			for _, r := range unescape(text[at[0]:at[1]]) {
				if !yield(r, span{at[0], at[1]}) {
					return
				}
			}
		}
	}
}

// fold appends a character in the form in which texts are compared: in lower case, and without those that an escape, a
// line break or an encoding adds or replaces.
func fold(to []byte, r rune) []byte {
	switch {
	case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
		return append(to, byte(r))
	case r == utf8.RuneError: // of which base64 that is none yields many
		return utf8.AppendRune(to, r)
	case r == '%', r == '&', r == '\\', r == '+', unicode.IsSpace(r), !unicode.IsPrint(r):
		return to
	}
	return utf8.AppendRune(to, unicode.ToLower(r))
}

// loosen appends a character in the form in which short secrets are compared, of which fold leaves too little. One space
// stands for any number of the characters that an escape, a line break or an encoding adds or replaces.
func loosen(to []byte, r rune) []byte {
	switch {
	case r == '\\', r == '+', unicode.IsSpace(r), unicode.IsControl(r):
		if len(to) > 0 && to[len(to)-1] == ' ' {
			return to
		}
		return append(to, ' ')
	case !unicode.IsPrint(r):
		return to
	}
	return utf8.AppendRune(to, unicode.ToLower(r))
}

// form returns a secret in one of these forms.
func form(secret string, add func([]byte, rune) []byte) string {
	text := make([]byte, 0, len(secret))
	for r := range characters(strings.ToValidUTF8(secret, "�"), inSecret) {
		text = add(text, r)
	}
	return string(text)
}
