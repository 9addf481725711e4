package redact

import (
	"slices"
	"strings"
)

// enough is how many bytes at the beginning of a long secret count as the secret: a text may contain only a part of
// it.
const enough = 64

// finder finds secrets in texts. Its work is bounded by the length of a text times [enough]. A server can
// influence both the texts and the secrets, because cookies are secrets.
type finder struct {
	sorted []string
	least  []int // for each secret: the length from which its beginning counts as the secret
	work   int   // how many bytes and secrets were compared
}

// newFinder returns a finder for secrets. If the beginning of a secret is another secret, that beginning counts as the
// secret.
func newFinder(secrets []string) *finder {
	secrets = slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return s == "" })
	slices.Sort(secrets)
	f := &finder{sorted: slices.Compact(secrets)}
	first := 0 // the secret with which the following ones begin
	for i, s := range f.sorted {
		if !strings.HasPrefix(s, f.sorted[first]) {
			first = i
		}
		f.least = append(f.least, min(len(f.sorted[first]), enough))
	}
	return f
}

// prefix returns how many bytes a text has in common with the beginning of a secret, whether these bytes contain a
// secret, and whether the whole text is the beginning of a longer secret. It looks only at the two secrets between which
// the text is in their order: no other secret has more in common with it.
func (f *finder) prefix(text string) (common int, found, partial bool) {
	low, high := 0, len(f.sorted)
	before, after := 0, 0 // what the text has in common with the secrets at low-1 and at high
	for low < high {
		middle := (low + high) / 2
		s := f.sorted[middle]
		n := min(before, after)
		f.work++
		for n < len(s) && n < len(text) && s[n] == text[n] {
			n++
			f.work++
		}
		if n == len(s) || n < len(text) && s[n] < text[n] {
			low, before = middle+1, n
		} else {
			high, after = middle, n
		}
	}
	found = low > 0 && before >= f.least[low-1] || high < len(f.sorted) && after >= f.least[high]
	return max(before, after), found, after == len(text) && high < len(f.sorted)
}

// span is a part of a text: the offsets of its beginning and its end.
type span struct{ from, to int }

// find returns where secrets are in a view, as parts of the original text. The last one may be
// the beginning of a secret, at the end of the text.
func (f *finder) find(v view) (spans []span) {
	covered := 0
	for i := 0; i < len(v.text); i++ {
		i = max(i, covered-enough+1) // a secret that begins before this would not end after covered
		if n, found, _ := f.prefix(v.text[i:]); found && i+n > covered {
			covered = i + n
			spans = append(spans, span{v.offset(i), v.offset(covered)})
		}
	}
	for i := max(0, len(v.text)-enough); i <= len(v.text)-MinSecret/2; i++ {
		if _, _, partial := f.prefix(v.text[i:]); partial {
			return append(spans, span{v.offset(i), v.offset(len(v.text))})
		}
	}
	return spans
}

// blackOut returns a text with an ellipsis in place of each secret. At the end of the text it also replaces the beginning
// of a secret, because the text may have been shortened.
func (f *finder) blackOut(text string) string {
	if len(f.sorted) == 0 {
		return text
	}
	var spans []span
	for _, v := range viewsOf(text) {
		spans = append(spans, f.find(v)...)
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var b strings.Builder
	end := 0 // the offset up to which the text is copied or replaced
	for _, s := range spans {
		if s.from >= end {
			b.WriteString(text[end:s.from])
			b.WriteString("…")
		}
		end = max(end, s.to)
	}
	return b.String() + text[end:]
}
