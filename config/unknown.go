package config

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// strict reads an object that is ours alone: a field that is unknown is an error.
func (r *reader) strict(n *node, targets map[string]any) {
	r.fields(n, targets, func(field *node) {
		known := slices.Sorted(maps.Keys(targets))
		if name := nearest(field.name, known); name != "" {
			r.fail(field, "is not a field: did you mean %q?", name)
			return
		}
		r.fail(field, "is not a field; there are %s", strings.Join(known, ", "))
	})
}

// ownFile is the remedy for what stands around the servers in a file of another client.
const ownFile = "put the servers into a file of their own, with allow, deny and disabled"

// otherOfServer judges a field of a server that is not known. Of a field of another client
// that restricts nothing it warns.
func (r *reader) otherOfServer(n *node) {
	if name := nearest(n.name, slices.Sorted(maps.Keys((&entry{}).fields()))); name != "" {
		r.fail(n, "is not a field: did you mean %q?", name)
		return
	}
	if restricts(n, stems) {
		r.fail(n, "may restrict the server, and has no effect here: use allow, deny or disabled, or remove it")
		return
	}
	r.other(n)
}

// otherOfFile judges a field beside the servers.
func (r *reader) otherOfFile(n *node, known []string) {
	switch name := nearest(n.name, known); {
	case n.name == "$schema" || n.kind == isNull:
		return
	case name != "" && n.name != "server": // that is a field of opencode's
		r.fail(n, "is not a field: did you mean %q?", name)
		return
	case slices.Contains(switches, plain(n.name)) && restricts(n, switches):
		r.fail(n, "may restrict the servers, and has no effect here: %s", ownFile)
		return
	}
	r.other(n)
}

// other warns of a field of another client, unless something in it restricts tools.
func (r *reader) other(n *node) {
	if found := r.restriction(n); found != nil {
		r.fail(found, "may restrict tools or servers, and has no effect here: %s", ownFile)
		return
	}
	r.warn(n, "is not used here")
}

// restriction finds what restricts tools or servers, wherever it stands.
func (r *reader) restriction(n *node) *node {
	name := plain(n.name)
	switch {
	case slices.Contains(words, name) || slices.Contains(ofTools, name) && plain(n.parent.name) == "tools":
		if !restricts(n, []string{name}) {
			return nil
		}
		return n
	case r.opencode && r.restrictsByName(n),
		!r.opencode && n.kind == isText && plain(n.text) == "deny":
		return n
	}
	for _, item := range n.items {
		if found := r.restriction(item); found != nil {
			return found
		}
	}
	return nil
}

var (
	// words are the fields with which clients restrict tools or servers, wherever they
	// stand in a file, without case and punctuation.
	words = []string{
		"deny", "denied", "denylist", "denytools", "deniedtools", "blockedtools", "disabledtools", "disallowedtools",
		"excludetools", "excludedtools", "alwaysdeny", "toolfilter", "toolfilters", "allowlist",
		"allowtools", "allowedtools", "enabledtools", "includetools", "includedtools", "coretools",
		"allowmcpservers", "allowedmcpservers", "excludemcpservers", "deniedmcpservers", "disabledmcpservers",
		"disabledmcpjsonservers", "enabledmcpjsonservers", "contextservers", "enableallcontextservers",
	}
	// ofTools are fields that do so in an object tools.
	ofTools = []string{"exclude", "excluded", "core"}
	// switches are those that restrict the servers when they stand beside them.
	switches = append([]string{"disabled", "disable", "enabled", "enable", "allow", "allowed", "isactive", "sandbox", "sandboxenabled", "readonly"}, words...)
	// stems are what names of fields of a server have in them that restrict it, or its
	// tools. Those that allow are last.
	stems = []string{
		"deny", "denied", "disab", "disallow", "exclu", "block", "forbid", "restrict", "filter", "permission", "sandbox", "readonly", "blacklist",
		"enab", "isactive", "inclu", "allow", "whitelist", "tools",
	}
)

// restricts reports whether a field has one of these words in its name, and a value that
// is not neutral: false for a word that forbids, true for one that allows, or nothing.
func restricts(n *node, words []string) bool {
	name := plain(n.name)
	if strings.Contains(name, "approve") || strings.HasPrefix(name, "alwaysallow") { // without asking, as we always do
		return false
	}
	has := func(word string) bool { return strings.Contains(name, word) }
	if !slices.ContainsFunc(words, has) || neutral(n) {
		return false
	}
	forbids := slices.ContainsFunc(stems[:slices.Index(stems, "enab")], has)
	return n.kind != isBoolean || forbids == (n.text == "true")
}

// neutral reports whether a value says nothing.
func neutral(n *node) bool {
	switch n.kind {
	case isNull:
		return true
	case isText:
		return n.text == ""
	case isList, isObject:
		return !slices.ContainsFunc(n.items, func(item *node) bool { return !neutral(item) })
	}
	return false
}

// plain returns a name in lower case, without punctuation: as somebody may remember it.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// nearest returns the known name that one was meant to be, or nothing: the same but for
// case and punctuation, or with a typing error in four letters, two in six.
func nearest(name string, known []string) string {
	best, least := "", 3
	one := plain(name)
	for _, candidate := range known {
		other := plain(candidate)
		if len(one) > len(other)+2 {
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

// distance counts the letters to add, to remove, to replace, or to swap with the next,
// until one text is the other.
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
