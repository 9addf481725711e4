package redact

import (
	"encoding/base64"
	"unicode/utf8"
)

// minRun is the length from which letters in a row may be base64 of a part of a secret.
const minRun = 10

// letterOf returns a character of one of the two alphabets of base64 as a letter of the standard one.
func letterOf(r rune) (letter byte, is bool) {
	switch {
	case r == '-':
		return '+', true
	case r == '_':
		return '/', true
	case r == '+', r == '/', '0' <= r && r <= '9', 'A' <= r && r <= 'Z', 'a' <= r && r <= 'z':
		return byte(r), true
	}
	return 0, false
}

// base64View looks at what base64 in a text stands for.
type base64View struct {
	*finder
	hidden  parts  // of the text
	letters []byte // of the runs of at least minRun letters, and of the one that has not ended
	from    []span // where the letters come from
	ended   int    // how many letters are of runs that have ended
}

// add adds a character of the text.
func (b *base64View) add(r rune, at span) {
	letter, is := letterOf(r)
	if !is {
		b.endRun()
		return
	}
	b.letters, b.from = append(b.letters, letter), append(b.from, at)
}

// endRun drops the letters of the last run if they are too few.
func (b *base64View) endRun() {
	if len(b.letters)-b.ended < minRun {
		b.letters, b.from = b.letters[:b.ended], b.from[:b.ended]
	}
	b.ended = len(b.letters)
}

// end decodes the letters four times: base64 may begin at any letter of four.
func (b *base64View) end() {
	b.endRun()
	for first := range min(4, len(b.letters)) {
		text, _ := base64.RawStdEncoding.DecodeString(string(b.letters[first:])) // one letter too many is an error, and nothing more
		from := b.from[first:]
		inside := &view{finder: b.finder, hidden: b.hidden}
		for i := 0; utf8.FullRune(text[i:]); {
			r, size := utf8.DecodeRune(text[i:])
			last := i + size - 1
			inside.add(r, span{from[4*i/3].from, from[4*last/3+1].to})
			i += size
		}
		inside.end()
	}
}
