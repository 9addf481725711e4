package pin

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

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

// lookalikes are letters, and the Latin ones that somebody may take them for, in the same order.
var lookalikes = map[string]string{
	"авгеһԁкӏмнопрԛсѕтуѵхіјԝь": "abrehdklmhonpqcstyvxijwb", // Cyrillic
	"αβγεζηικμνορστυχωϲϳ":      "abyeznikuvopotuxwcj",      // Greek
	"հոսցօզյ":                  "hnugoqj",                  // Armenian
	"ıɩɪɡɢɑᴀʙƅɓᴄᴅđɗᴇɛʜħᴊᴋƙʟłᴍɴᴏøᴘʀꜱᴛŧᴜᴠᴡʏᴢ": "iiiggaabbbcdddeehhjkkllmnooprsttuvwyz", // Latin
	"01|": "oll", // digits and signs
}

// latin replaces lookalikes.
var latin = sync.OnceValue(func() *strings.Replacer {
	pairs := []string{"rn", "m", "vv", "w"}
	for foreign, own := range lookalikes {
		for i, r := range []rune(foreign) {
			pairs = append(pairs, string(r), own[i:i+1])
		}
	}
	return strings.NewReplacer(pairs...)
})

// skeleton returns how a name looks: names that somebody may take for each other have the same skeleton. It is without case, marks,
// separators and what cannot be seen; letters of other scripts and of other forms are Latin ones, and i is l. Unicode (UTS 39) has a table of
// all scripts, which is larger than the rest of this package, and no library keeps it.
func skeleton(name string) string {
	return strings.ReplaceAll(latin().Replace(strings.Map(seen, strings.ToLower(norm.NFKD.String(name)))), "i", "l")
}

// seen returns a character, or -1 for a mark, a separator, and what cannot be seen.
func seen(r rune) rune {
	if r == '-' || r == '_' || r == '.' || unicode.IsSpace(r) || unicode.IsMark(r) || !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
		return -1
	}
	return r
}
