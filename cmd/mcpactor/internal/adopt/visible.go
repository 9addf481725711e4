package adopt

import (
	"strings"
	"unicode"
)

// visible returns a line without characters that a terminal obeys, such as escapes and those that change the direction of the text.
func visible(line string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, line)
}

// visibleLines returns lines that a terminal shows as they are.
func visibleLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(visible(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return b.String()
}
