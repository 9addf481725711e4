package cli

import (
	"strings"
	"unicode"
)

// Printable replaces the characters that a terminal does not print, such as control
// characters and those that change the direction of text.
func Printable(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)), " ")
}
