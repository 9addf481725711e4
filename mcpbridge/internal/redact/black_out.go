package redact

import "strings"

// blackOut returns a text with an ellipsis in place of each secret.
func (f *finder) blackOut(text string) string {
	hidden := make(parts, len(text))
	for _, s := range f.secrets { // literally: next to other characters it may look like part of an escape
		for at := 0; s != ""; at += len(s) {
			i := strings.Index(text[at:], s)
			if i < 0 {
				break
			}
			at += i
			hidden.add(span{at, at + len(s)})
		}
	}
	shown, inside := &view{finder: f, hidden: hidden}, &base64View{finder: f, hidden: hidden}
	for r, at := range characters(text, inText) {
		shown.add(r, at)
		inside.add(r, at)
	}
	shown.end()
	inside.end()
	if end := max(0, len(text)-8*enough); strings.ContainsAny(text[end:], `%&\`) { // what looks like the beginning of an escape may be none
		shown = &view{finder: f, hidden: hidden}
		for r, at := range characters(text[end:], inSecret) {
			shown.add(r, span{end + at.from, end + at.to})
		}
		shown.end()
	}
	return hidden.blackOut(text)
}

// blackOut returns a text with an ellipsis in place of each secret.
func blackOut(text string, secrets []string) string {
	if len(secrets) == 0 {
		return text
	}
	return newFinder(secrets).blackOut(text)
}
