package pin

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/mtibben/confusables"
	"golang.org/x/text/unicode/norm"
)

// named is a tool or a prompt of a server.
type named struct{ server, name string }

// like returns what in the lock a new name looks like, or nil. The same name on another server is not taken for it: models see it
// with the name of its server.
func (l *Lock) like(k kind, name string) *named {
	l.once.Do(func() {
		l.alike = map[string][]named{}
		for _, server := range slices.Sorted(maps.Keys(l.Servers)) {
			for _, k := range []kind{tool, prompt} {
				for _, name := range slices.Sorted(maps.Keys(k.of(l.Servers[server]))) {
					look := string(k) + skeleton(name)
					l.alike[look] = append(l.alike[look], named{server, name})
				}
			}
		}
	})
	for _, other := range l.alike[string(k)+skeleton(name)] {
		if other.name != name {
			return &other
		}
	}
	return nil
}

// skeleton returns how a name looks: names that somebody may take for each other have the same skeleton. It is that of Unicode (UTS 39),
// which knows the letters of other scripts, but without case, marks, separators and what cannot be seen, and i is l.
func skeleton(name string) string {
	name = confusables.Skeleton(strings.Map(seen, norm.NFKD.String(name)))
	return strings.ReplaceAll(strings.Map(seen, strings.ToLower(name)), "i", "l")
}

// seen returns a character, or -1 for a mark, a separator, and what cannot be seen.
func seen(r rune) rune {
	if r == '-' || r == '_' || r == '.' || unicode.IsSpace(r) || unicode.IsMark(r) || !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
		return -1
	}
	return r
}
