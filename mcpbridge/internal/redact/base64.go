package redact

import (
	"slices"
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

// base64View looks at what base64 in a text stands for: four times, because it may begin at any letter of four.
type base64View struct {
	*finder
	hidden   parts    // of the text
	run      []letter // the letters in a row, up to minRun
	decoders []decoder
}

// add adds a character of the text.
func (b *base64View) add(r rune, at span) {
	l, is := letterOf(r, at)
	if !is {
		b.run = b.run[:0]
		return
	}
	if len(b.run) == minRun {
		b.decode(l)
		return
	}
	if b.run = append(b.run, l); len(b.run) == minRun {
		b.decode(b.run...)
	}
}

// decode adds letters to what is decoded.
func (b *base64View) decode(letters ...letter) {
	for first := range 4 {
		if len(b.decoders) == first {
			b.decoders = append(b.decoders, decoder{view: view{finder: b.finder, hidden: b.hidden}, bits: -6 * first})
		}
		for _, l := range letters {
			b.decoders[first].add(l)
		}
	}
}

// end ends the text.
func (b *base64View) end() {
	for i := range b.decoders {
		b.decoders[i].end()
	}
}

// decoder decodes base64.
type decoder struct {
	view
	value uint32 // the last letters
	bits  int    // how many bits of value are not decoded
	begin int    // where the last letter begins
	text  []byte // the beginning of a character
	spans []span // where its bytes come from
}

// add adds a letter.
func (d *decoder) add(l letter) {
	begin := d.begin
	d.begin, d.value, d.bits = l.at.from, d.value<<6|l.value, d.bits+6
	if d.bits < 8 {
		return
	}
	d.bits -= 8
	d.text, d.spans = append(d.text, byte(d.value>>d.bits)), append(d.spans, span{begin, l.at.to})
	for len(d.text) > 0 && utf8.FullRune(d.text) {
		r, size := utf8.DecodeRune(d.text)
		d.view.add(r, span{d.spans[0].from, d.spans[size-1].to})
		d.text, d.spans = slices.Delete(d.text, 0, size), slices.Delete(d.spans, 0, size)
	}
}
