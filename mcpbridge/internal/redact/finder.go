package redact

import "strings"

const (
	// gram is how many bytes are compared at once.
	gram = MinSecret
	// enough is how many bytes of a long secret count as the secret.
	enough = 32
)

// finder finds secrets in a text, as it is and as what base64 in it stands for: each part of a secret that is at least half
// of it, and the beginning of a secret at the end of the text, which may have been cut. What is compared is folded. The
// work grows with the length of the text and of the secrets, but not with their product: a server can influence both,
// because cookies are secrets.
type finder struct {
	text   string
	hidden []bool // for each byte of the text: it is part of a secret

	views []byte         // the folded forms of the text, with a zero byte after each
	at    []span         // for each of their bytes, what it comes from
	ends  []int          // of the views
	heads map[string]int // the last occurrence of each gram in views, or hiddenGram
	next  []int          // for each occurrence, the one before, or hiddenGram
	work  int            // how many bytes and grams were looked at
}

// hiddenGram is in place of the occurrences of a gram that are hidden, or of which there are no more.
const hiddenGram = -1

func newFinder(text string) *finder {
	f := &finder{text: text, hidden: make([]bool, len(text)), views: make([]byte, 0, 2*len(text)), at: make([]span, 0, 2*len(text))}
	var letters, run []letter
	for r, at := range characters(text, inText) {
		f.add(r, at)
		if l, is := letterOf(r, at); is {
			run = append(run, l)
			continue
		}
		letters, run = appendRun(letters, run), run[:0]
	}
	f.end()
	letters = appendRun(letters, run)
	for first := range min(4, len(letters)) {
		for r, at := range decode(letters[first:]) {
			f.add(r, at)
		}
		f.end()
	}
	f.index()
	return f
}

// add adds a character to a view.
func (f *finder) add(r rune, at span) {
	f.views = fold(f.views, r)
	for len(f.at) < len(f.views) {
		f.at = append(f.at, at)
	}
}

// end ends a view.
func (f *finder) end() {
	f.ends = append(f.ends, len(f.views))
	f.views, f.at = append(f.views, 0), append(f.at, span{})
}

// index notes where each gram is.
func (f *finder) index() {
	f.heads, f.next = make(map[string]int, len(f.views)), make([]int, len(f.views))
	all := string(f.views)
	for i := 0; i+gram <= len(all); i++ {
		last, known := f.heads[all[i:i+gram]]
		if f.next[i] = last; !known {
			f.next[i] = hiddenGram
		}
		f.heads[all[i:i+gram]] = i
		f.work++
	}
}

// find hides a secret.
func (f *finder) find(secret string) {
	for at := 0; ; at += len(secret) { // as it is, whatever its neighbors and it look like together
		i := strings.Index(f.text[at:], secret)
		if i < 0 {
			break
		}
		at += i
		f.hide(span{at, at + len(secret)})
	}
	s := foldSecret(secret)
	part := min(max(gram, (len(s)+1)/2), enough)
	run := 0 // how many grams of the secret in a row are in the text
	for i := 0; i+gram <= len(s); i++ {
		f.work++
		if _, is := f.heads[s[i:i+gram]]; !is {
			run = 0
			continue
		}
		switch run++; {
		case run+gram-1 > part:
			f.hideGram(s[i : i+gram])
		case run+gram-1 == part:
			for j := range run {
				f.hideGram(s[i-j : i-j+gram])
			}
		}
	}
	f.findBeginning(s[:min(part, len(s))])
}

// findBeginning hides the beginning of a secret at the end of each view.
func (f *finder) findBeginning(s string) {
	for _, end := range f.ends {
		for n := min(len(s), end); n >= MinSecret/2; n-- {
			if string(f.views[end-n:end]) == s[:n] {
				f.hide(span{f.at[end-n].from, f.at[end-1].to})
				break
			}
		}
	}
}

// hideGram hides the occurrences of a gram.
func (f *finder) hideGram(text string) {
	for i := f.heads[text]; i != hiddenGram; i = f.next[i] {
		f.hide(span{f.at[i].from, f.at[i+gram-1].to})
	}
	f.heads[text] = hiddenGram
}

// hide hides a part of the text.
func (f *finder) hide(part span) {
	for i := part.from; i < part.to; i++ {
		f.hidden[i] = true
	}
	f.work += part.to - part.from
}

// blackOut returns a text with an ellipsis in place of each secret.
func blackOut(text string, secrets []string) string {
	if len(secrets) == 0 {
		return text
	}
	f := newFinder(text)
	for _, s := range secrets {
		if s != "" {
			f.find(s)
		}
	}
	var b strings.Builder
	end := 0 // the offset up to which the text is copied or hidden
	for i, hidden := range f.hidden {
		if !hidden {
			continue
		}
		if i == 0 || !f.hidden[i-1] {
			b.WriteString(text[end:i])
			b.WriteString("…")
		}
		end = i + 1
	}
	return b.String() + text[end:]
}
