package redact

import "strings"

const (
	// gram is how many bytes are compared at once.
	gram = MinSecret
	// enough is how many bytes of a long secret count as the secret.
	enough = 64
)

// finder finds secrets in texts, as they are and as what base64 in them stands for, and the beginning of a secret at the
// end of a text, which may have been cut. What is compared is folded. The work grows with the length of the text and of
// the secrets, but not with their product, except for searches of [strings.Index]: a server can influence both, because
// cookies are secrets.
type finder struct {
	secrets    []string
	parts      map[uint64]int // for each gram of the secrets: how many bytes in a row that consist of such grams are a secret
	beginnings []string       // of the folded secrets
	short      []string       // the loose forms of secrets whose folded forms are shorter than a gram
	work       int            // how many bytes were looked at
}

func newFinder(secrets []string) *finder {
	size := 0
	for _, secret := range secrets {
		size += len(secret)
	}
	f := &finder{secrets: secrets, parts: make(map[uint64]int, min(size, 256))}
	for _, secret := range secrets {
		s := form(secret, fold)
		if len(s) < gram {
			f.short = append(f.short, form(secret, loosen))
			continue
		}
		part := min(len(s), enough)
		if !isPlain(secret) {
			part = max(gram, (part+1)/2)
		}
		f.beginnings = append(f.beginnings, s[:part])
		key := uint64(0)
		for i := range len(s) {
			f.work++
			if key = key<<8 | uint64(s[i]); i < gram-1 {
				continue
			}
			if least, known := f.parts[key]; !known || part < least {
				f.parts[key] = part
			}
		}
	}
	return f
}

// parts says of each byte of a text whether it is part of a secret.
type parts []bool

// add adds a part of the text.
func (p parts) add(part span) {
	for i := part.from; i < part.to; i++ {
		p[i] = true
	}
}

// blackOut returns the text with an ellipsis in place of the parts.
func (p parts) blackOut(text string) string {
	var b strings.Builder
	end := 0 // the offset up to which the text is copied or hidden
	for i, hidden := range p {
		if !hidden {
			continue
		}
		if i == 0 || !p[i-1] {
			b.WriteString(text[end:i])
			b.WriteString("…")
		}
		end = i + 1
	}
	return b.String() + text[end:]
}
