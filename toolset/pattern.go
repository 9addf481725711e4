package toolset

import (
	"path"
	"unicode/utf8"
)

// matches reports whether a valid pattern of [path.Match] matches all of a tool's name.
// Unlike there, a slash is like any other character: a tool's name is no path, and a
// pattern of what is denied must not be too narrow because somebody gave it one.
func matches(pattern, name string) bool {
	starred, after, from := false, "", "" // what follows the last star, and where that was tried
	for pattern != "" || name != "" {
		if pattern != "" && pattern[0] == '*' {
			pattern = pattern[1:]
			starred, after, from = true, pattern, name
			continue
		}
		if pattern != "" && name != "" {
			one, first := element(pattern), character(name)
			if ok, _ := path.Match(one, first); ok || one == "?" {
				pattern, name = pattern[len(one):], name[len(first):]
				continue
			}
		}
		if !starred || from == "" {
			return false
		}
		from = from[1:]
		pattern, name = after, from
	}
	return true
}

// element returns the part at the beginning of a valid pattern that matches one
// character.
func element(pattern string) string {
	switch pattern[0] {
	case '\\':
		return pattern[:1+len(character(pattern[1:]))]
	case '[':
		for i := 1; i < len(pattern); i++ {
			switch pattern[i] {
			case '\\':
				i++
			case ']':
				return pattern[:i+1]
			}
		}
	}
	return character(pattern)
}

// character returns the first character of a text.
func character(text string) string {
	_, size := utf8.DecodeRuneInString(text)
	return text[:size]
}
