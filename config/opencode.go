package config

import (
	"regexp"
	"strings"
)

// unsafe is what opencode replaces in the names of servers and tools.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// prefixOf returns what the names of a server's tools begin with in opencode.
func prefixOf(server *node) string { return unsafe.ReplaceAllString(server.name, "_") + "_" }

// switched applies opencode's fields tools and permission, which have patterns of names
// such as "server_tool": those that refuse tools of a server become its deny. What comes
// later in the file and allows some of them again is not followed.
func (r *reader) switched(n *node) {
	for _, field := range n.items {
		if !refuses(field) {
			continue
		}
		used := false
		for i, server := range r.entries {
			prefix := prefixOf(server)
			if !mayMatch(field.name, prefix) {
				continue
			}
			used = true
			pattern, own := strings.CutPrefix(field.name, prefix)
			if head, star := strings.CutSuffix(field.name, "*"); !own && star && strings.HasPrefix(prefix, head) {
				pattern, own = "*", true
			}
			if !own || field.kind == isObject || strings.ContainsAny(pattern, `[\`) {
				r.fail(field, "refuses tools of %s in a way that is not understood: write deny into the server", server.path())
				continue
			}
			r.file.Tools[i].Deny = append(r.file.Tools[i].Deny, pattern)
		}
		if !used {
			r.warn(field, "is about no tool of these servers")
		}
	}
}

// restrictsByName reports whether an object has patterns that refuse tools of a server.
func (r *reader) restrictsByName(n *node) bool {
	if name := plain(n.name); name != "tools" && name != "permission" && name != "permissions" {
		return false
	}
	if n.kind != isObject {
		return refuses(n)
	}
	for _, field := range n.items {
		for _, server := range r.entries {
			if refuses(field) && mayMatch(field.name, prefixOf(server)) {
				return true
			}
		}
	}
	return false
}

// refuses reports whether a value refuses a tool, or some of its calls.
func refuses(n *node) bool {
	if n.kind == isBoolean && n.text == "false" || n.kind == isText && plain(n.text) == "deny" {
		return true
	}
	for _, item := range n.items {
		if refuses(item) {
			return true
		}
	}
	return false
}

// mayMatch reports whether a pattern may match names that begin with a prefix.
func mayMatch(pattern, prefix string) bool {
	if i := strings.IndexAny(pattern, `*?[{`); i >= 0 {
		pattern = pattern[:i]
		return strings.HasPrefix(prefix, pattern) || strings.HasPrefix(pattern, prefix)
	}
	return strings.HasPrefix(pattern, prefix)
}
