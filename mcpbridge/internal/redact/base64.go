package redact

import (
	"iter"
	"unicode/utf8"
)

// letter is a character of base64.
type letter struct {
	value uint32
	at    span
}

// minRun is the length from which letters in a row may be base64 of a part of a secret.
const minRun = 10

// letterOf returns a character as a letter of one of the two alphabets of base64.
func letterOf(r rune, at span) (l letter, is bool) {
	switch {
	case 'A' <= r && r <= 'Z':
		return letter{uint32(r - 'A'), at}, true
	case 'a' <= r && r <= 'z':
		return letter{uint32(r-'a') + 26, at}, true
	case '0' <= r && r <= '9':
		return letter{uint32(r-'0') + 52, at}, true
	case r == '+', r == '-':
		return letter{62, at}, true
	case r == '/', r == '_':
		return letter{63, at}, true
	}
	return l, false
}

// appendRun appends letters in a row, if there are enough.
func appendRun(letters, run []letter) []letter {
	if len(run) < minRun {
		return letters
	}
	return append(letters, run...)
}

// decode yields the characters that letters stand for, and where they come from.
func decode(letters []letter) iter.Seq2[rune, span] {
	var text []byte
	var at []span
	bits, n := uint32(0), 0
	for i, l := range letters {
		bits, n = bits<<6|l.value, n+6
		if n >= 8 {
			n -= 8
			text, at = append(text, byte(bits>>n)), append(at, span{letters[i-1].at.from, l.at.to})
		}
	}
	return func(yield func(rune, span) bool) {
		for i := 0; i < len(text); {
			r, size := utf8.DecodeRune(text[i:])
			if !yield(r, span{at[i].from, at[i+size-1].to}) {
				return
			}
			i += size
		}
	}
}
