package rank

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// words returns the words of a text in a form that can be compared. Names such as
// "readFile", "read_file" and "HTTPServer" are split, and a name that is split by its capitals also
// counts as a whole.
// Accents and case make no difference, and nor does an English plural. Scripts that are written
// without spaces give pairs of characters.
func words(text string) (all []string) {
	runes := []rune(norm.NFKD.String(text))
	for start := 0; start < len(runes); {
		if !inWord(runes[start]) {
			start++
			continue
		}
		end := start
		for end < len(runes) && inWord(runes[end]) && dense(runes[end]) == dense(runes[start]) {
			end++
		}
		if dense(runes[start]) {
			all = append(all, pairs(plain(runes[start:end]))...)
		} else {
			all = append(all, parts(runes[start:end])...)
		}
		start = end
	}
	return all
}

// inWord reports whether a character is part of a word.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || r >= firstMark && unicode.IsMark(r)
}

// firstMark is the first character of the category M.
const firstMark = 0x300

// dense reports whether a character belongs to a script that is written without spaces.
func dense(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// pairs returns each two characters that stand side by side, or the only character.
func pairs(runes []rune) (all []string) {
	for i := range len(runes) - 1 {
		all = append(all, string(runes[i:i+2]))
	}
	if len(runes) == 1 {
		all = []string{string(runes)}
	}
	return all
}

// parts returns the parts of a word that begin with a capital, and the word itself if there are
// several.
func parts(word []rune) (all []string) {
	start := 0
	for i := 1; i < len(word); i++ {
		if unicode.IsUpper(word[i]) && (unicode.IsLower(word[i-1]) || unicode.IsNumber(word[i-1]) || i+1 < len(word) && unicode.IsLower(word[i+1])) {
			all = append(all, stem(plain(word[start:i])))
			start = i
		}
	}
	all = append(all, stem(plain(word[start:])))
	if start > 0 {
		all = append(all, stem(plain(word)))
	}
	return all
}

// plain returns lower-case characters without accents. Vowel signs of scripts such as Devanagari
// stay.
func plain(word []rune) []rune {
	out := make([]rune, 0, len(word))
	for _, r := range word {
		if r < firstMark || !unicode.Is(unicode.Inherited, r) {
			out = append(out, unicode.ToLower(r))
		}
	}
	return out
}

// stem removes the ending of an English plural.
func stem(runes []rune) string {
	word := string(runes)
	switch {
	case len(word) < 4 || !strings.HasSuffix(word, "s"):
		return word
	case strings.HasSuffix(word, "ies"):
		return word[:len(word)-3] + "y"
	case strings.HasSuffix(word, "ches"), strings.HasSuffix(word, "shes"), strings.HasSuffix(word, "sses"), strings.HasSuffix(word, "xes"):
		return word[:len(word)-2]
	case strings.HasSuffix(word, "ss"), strings.HasSuffix(word, "us"), strings.HasSuffix(word, "is"):
		return word
	}
	return word[:len(word)-1]
}
