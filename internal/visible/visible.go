// Package visible removes invisible characters from texts: control characters, and
// characters that Unicode renders as nothing or that reverse the order of others. With
// them a server can hide instructions to a model in the description of a tool, make one
// name look like another, or rearrange a line of a log.
//
// They are dropped and not escaped: what is hidden from a person must not reach a model
// in another form. Three kinds stay, because texts need them and because they carry
// almost no information in the places where they are allowed:
//
//   - the zero-width joiner and non-joiner between two characters outside ASCII, for
//     Persian and Indic scripts, and for emoji that consist of several characters;
//   - one variation selector for text or emoji (U+FE0E, U+FE0F) after the symbol, digit or
//     punctuation that it applies to;
//   - Arabic number signs and similar characters, which are visible format characters.
//
// Directional marks are dropped even where they improve the layout of Arabic or Hebrew.
// A flag that consists of tags, such as that of Scotland, becomes a black flag.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns a text without invisible characters. Tabs and line breaks stay, and
// other control characters become spaces.
func Text(text string) string {
	return show(text, func(r rune) rune {
		switch r {
		case '\t', '\n', '\r':
			return r
		case '\u2028', '\u2029':
			return '\n'
		}
		return ' '
	})
}

// Line returns a text without invisible characters, on one line: control characters and
// line breaks become spaces.
func Line(text string) string {
	return show(text, func(rune) rune { return ' ' })
}

const (
	nonJoiner, joiner   = '\u200c', '\u200d'
	textForm, emojiForm = '\ufe0e', '\ufe0f'
)

// show replaces control characters and line breaks, and removes hidden characters. The
// result is valid UTF-8.
func show(text string, control func(rune) rune) string {
	var b strings.Builder
	b.Grow(len(text))
	before := rune(0) // the last character that was kept
	for i, r := range text {
		switch {
		case r < utf8.RuneSelf && !unicode.IsControl(r): // the usual case
		case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
			r = control(r)
		case r == joiner || r == nonJoiner:
			after, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
			if !joins(before) && before != textForm && before != emojiForm || !joins(after) {
				r = -1
			}
		case r == textForm || r == emojiForm:
			if !hasForms(before) {
				r = -1
			}
		case hidden(r):
			r = -1
		}
		if r >= 0 {
			b.WriteRune(r)
			before = r
		}
	}
	return b.String()
}

// hidden reports whether a character is invisible.
func hidden(r rune) bool {
	return unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// joins reports whether a joiner is allowed beside a character.
func joins(r rune) bool {
	return r >= utf8.RuneSelf && r != utf8.RuneError && !hidden(r) && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsSymbol(r))
}

// hasForms reports whether a character may have a text form and an emoji form.
func hasForms(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= '0' && r <= '9' || r == '#' || r == '*'
	}
	return unicode.IsSymbol(r) || unicode.IsPunct(r)
}

// MaxDetail is how many bytes of a text [Detail] returns.
const MaxDetail = 512

// Detail returns what can be seen of a text that others have written, on one line, for
// an error or a log: valid UTF-8, of at most [MaxDetail] bytes and an ellipsis.
func Detail(text string) string {
	return Shorten(strings.TrimSpace(Line(strings.ToValidUTF8(text, "\ufffd"))))
}

// Shorten cuts a text off after [MaxDetail] bytes, and puts an ellipsis there.
func Shorten(text string) string {
	if len(text) > MaxDetail {
		text = strings.TrimSpace(strings.ToValidUTF8(text[:MaxDetail], "")) + "…"
	}
	return text
}

// Escape returns a text on one line in which all characters can be seen: control
// characters, line breaks and invisible characters are written as their code point, such as
// ‹U+202E›. It is for people who compare names: names that differ look different.
func Escape(text string) string {
	if !strings.ContainsFunc(text, escaped) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if escaped(r) {
			fmt.Fprintf(&b, "‹%U›", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// escaped reports whether Escape writes a character as its code point.
func escaped(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) || hidden(r)
}

// Name returns a text as a name, in which all but letters, digits, dots and dashes is replaced by dashes.
func Name(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, name[:min(len(name), 64)]), "-")
}
