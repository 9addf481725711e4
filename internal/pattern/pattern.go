// Package pattern has the patterns for names of servers and tools.
package pattern

import (
	"errors"
	"path"
	"regexp"
	"strings"
)

// stand takes the place of a slash in patterns and names. No name of a tool needs it, and it is
// in no range of characters that does not begin with it.
const stand = "\x00"

// Check reports what is wrong with a pattern.
func Check(pattern string) error {
	if strings.Contains(pattern, stand) {
		return errors.New("it has a NUL character")
	}
	_, err := path.Match(pattern, "")
	return err
}

// slashed matches the parts of a pattern that can match a slash: an escape, a class, or
// the slash itself.
var slashed = regexp.MustCompile(`(?s)\\.|\[(?:\\.|[^\]\\])*\]|/`)

// Match reports whether a valid pattern of [path.Match] matches all of a tool's name. A
// slash is a character like any other here: a tool's name is not a path, and "admin*" in a
// list of denied tools must match "admin/drop".
func Match(pattern, name string) bool {
	if !strings.ContainsAny(pattern, `/[\`) && !strings.Contains(name, "/") { // most are so
		ok, _ := path.Match(pattern, name)
		return ok
	}
	pattern = slashed.ReplaceAllStringFunc(pattern, func(part string) string {
		if part[0] == '[' {
			return class(part)
		}
		return strings.ReplaceAll(part, "/", stand)
	})
	ok, _ := path.Match(pattern, strings.ReplaceAll(name, "/", stand))
	return ok
}

// class returns a character class with stand as one more character if the class names
// the slash. The slash itself stays, because it can be the end of a range.
func class(part string) string {
	start := "["
	if part[1] == '^' {
		start = "[^"
	}
	if slash, _ := path.Match(part, "/"); slash == (start == "[^") {
		return part
	}
	return start + stand + part[len(start):]
}
