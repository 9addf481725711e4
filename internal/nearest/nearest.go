// Package nearest finds the name that somebody may have meant.
package nearest

import (
	"strings"
	"unicode"
)

// maxName bounds the names that are compared, in bytes: a caller may send anything.
const maxName = 256

// Plain returns a name in lower case, without punctuation.
func Plain(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// Of returns the known name that is most similar to name, or "" if none is similar. It
// ignores case and punctuation, and tolerates one typing error from four letters on, and two
// from six. A name of more than 256 bytes is similar to none.
func Of(name string, known []string) string {
	if len(name) > maxName {
		return ""
	}
	best, least := "", 3
	one := Plain(name)
	for _, candidate := range known {
		other := Plain(candidate)
		if len(one) > len(other)+2 || len(other) > len(one)+2 {
			continue
		}
		allowed := 0
		switch longer := max(len(one), len(other)); {
		case longer >= 6:
			allowed = 2
		case longer >= 4:
			allowed = 1
		}
		if d := distance(one, other); d <= allowed && d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance returns the optimal string alignment distance of two texts: how many letters must be
// inserted, deleted, replaced or swapped with the next one to change one into the other.
func distance(one, other string) int {
	before, last := []int(nil), make([]int, len(other)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(one) {
		row := make([]int, len(other)+1)
		row[0] = i + 1
		for j := range len(other) {
			cost := 1
			if one[i] == other[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && one[i] == other[j-1] && one[i-1] == other[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(other)]
}
