package redact

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// view is a text as a finder looks at it: without escapes, or what base64 in the text stands for. Of its folded form it
// keeps only the end.
type view struct {
	*finder
	hidden parts // of the text

	size  int          // of the folded form, in bytes
	last  [enough]byte // its last bytes: the one at i is at i%enough
	froms [enough]int  // where what they come from begins
	to    int          // where what the last one comes from ends
	key   uint64       // the last gram
	run   int          // how many grams in a row are grams of secrets
	from  int          // where what is not hidden of the run begins

	loose []byte // the loose form, if there are short secrets
	at    []span // what its bytes come from
}

// add adds a character.
func (v *view) add(r rune, at span) {
	var folded [utf8.UTFMax]byte
	for _, b := range fold(folded[:0], r) {
		v.addByte(b, at)
	}
	if len(v.short) == 0 {
		return
	}
	v.loose = loosen(v.loose, r)
	if n := len(v.at); n > 0 && n == len(v.loose) {
		v.at[n-1].to = at.to
	}
	for len(v.at) < len(v.loose) {
		v.at = append(v.at, at)
	}
}

// addByte adds a byte of the folded form, and hides the grams in a row that it ends if they are a secret.
func (v *view) addByte(b byte, at span) {
	v.work++
	v.last[v.size%enough], v.froms[v.size%enough], v.to = b, at.from, at.to
	v.size++
	v.key = v.key<<8 | uint64(b)
	part := v.parts[v.key]
	if part == 0 { // as it is before there are as many bytes as in a gram, because none is zero
		v.run = 0
		return
	}
	if v.run == 0 {
		v.from = v.froms[(v.size-gram)%enough]
	}
	if v.run++; v.run+gram-1 >= part {
		v.hide(span{v.from, at.to})
		v.from = at.to
	}
}

// hide hides a part of the text.
func (v *view) hide(part span) {
	v.work += part.to - part.from
	v.hidden.add(part)
}

// end hides the beginning of a secret at the end, and the short secrets.
func (v *view) end() {
	end := string(v.last[:v.size%enough])
	if v.size >= enough {
		end = string(v.last[v.size%enough:]) + end
	}
	if n := beginning(end, v.beginnings); n >= MinSecret/2 {
		v.hide(span{v.froms[(v.size-n)%enough], v.to})
	}
	for _, s := range v.short {
		for at := 0; s != ""; {
			i := bytes.Index(v.loose[at:], []byte(s))
			if i < 0 {
				break
			}
			at += i
			v.hideShort(at, at+len(s), MinSecret)
			at += len(s)
		}
	}
	if n := beginning(string(v.loose[max(0, len(v.loose)-enough):]), v.short); n > 0 {
		v.hideShort(len(v.loose)-n, len(v.loose), MinSecret/2)
	}
}

// hideShort hides what a part of the loose form comes from, unless that is so short that it may be anything.
func (v *view) hideShort(from, to, least int) {
	if part := (span{v.at[from].from, v.at[to-1].to}); part.to-part.from >= least {
		v.hide(part)
	}
}

// beginning returns how many bytes at the end of a text are the beginning of a secret.
func beginning(text string, secrets []string) (most int) {
	for _, s := range secrets {
		for n := min(len(s), len(text)); n > most; n-- {
			if strings.HasSuffix(text, s[:n]) {
				most = n
			}
		}
	}
	return most
}
