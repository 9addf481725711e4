package rank

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// words returns the words of a text in a form that can be compared. Names such as
// "readFile", "read_file" and "HTTPServer" are split, and a name that is split by its capitals also
// counts as a whole, and so do two words with a hyphen.
// Accents and case make no difference, and nor do some endings of English words. Scripts that are written
// without spaces give pairs of characters.
func words(text string) (all []string) {
	runes := []rune(norm.NFKD.String(text))
	before, hyphen := []rune(nil), -1 // the word before a hyphen, and where that is
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
			word := runes[start:end]
			all = append(all, parts(word)...)
			if start > 0 && start-1 == hyphen {
				all = append(all, stem(plain(slices.Concat(before, word))))
			}
			before, hyphen = word, -1
			if end < len(runes) && runes[end] == '-' {
				hyphen = end
			}
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

// stem removes the endings of English plurals and verbs, so that "remove", "removes", "removed" and "removing"
// are the same.
func stem(runes []rune) string {
	word := singular(string(runes))
	for _, ending := range []string{"ing", "ed"} {
		if stem, ok := strings.CutSuffix(word, ending); ok && len(stem) >= 3 && strings.ContainsAny(stem, "aeiouy") {
			word = single(stem)
			break
		}
	}
	if len(word) > 4 {
		word = strings.TrimSuffix(word, "e")
	}
	return word
}

// single returns a stem without the doubling of its last consonant, as in "dropp" from "dropped".
func single(stem string) string {
	last := len(stem) - 1
	if last > 2 && stem[last] == stem[last-1] && strings.IndexByte("bdgmnprt", stem[last]) >= 0 {
		return stem[:last]
	}
	return stem
}

// singular removes the ending of an English plural.
func singular(word string) string {
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
