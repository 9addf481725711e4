package config

import (
	"regexp"
	"strings"

	"github.com/mcpactor/mcpactor/internal/nearest"
)

// unsafe matches the characters that opencode replaces in the names of servers and tools.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// prefixOf returns the prefix that opencode gives to the names of a server's tools.
func prefixOf(server *node) string { return unsafe.ReplaceAllString(server.name, "_") + "_" }

// permissions applies the fields tools and permission of opencode. They map patterns of names
// such as "server_tool" to permissions. A pattern that denies tools of a server becomes part
// of its deny, even if a later field allows some of these tools again.
func (r *reader) permissions(n *node) {
	for _, field := range n.items {
		if !denies(field) {
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
				r.fail(field, "denies tools of %s by a pattern that cannot be converted: add deny to the server", server.path())
				continue
			}
			// Where the pattern has _, the name of the tool may have any replaced character.
			r.file.Tools[i].Deny = append(r.file.Tools[i].Deny, strings.ReplaceAll(pattern, "_", `[^A-Za-z0-9\-]`))
		}
		if !used {
			r.warn(field, "matches no tool of these servers")
		}
	}
}

// restrictsByName reports whether n is an object of permissions that denies tools of a server.
func (r *reader) restrictsByName(n *node) bool {
	if name := nearest.Plain(n.name); name != "tools" && name != "permission" && name != "permissions" {
		return false
	}
	if n.kind != isObject {
		return denies(n)
	}
	for _, field := range n.items {
		for _, server := range r.entries {
			if denies(field) && mayMatch(field.name, prefixOf(server)) {
				return true
			}
		}
	}
	return false
}

// denies reports whether a value denies a tool, or some of its calls.
func denies(n *node) bool {
	if n.kind == isBoolean && n.text == "false" || n.kind == isText && nearest.Plain(n.text) == "deny" {
		return true
	}
	for _, item := range n.items {
		if denies(item) {
			return true
		}
	}
	return false
}

// mayMatch reports whether a pattern can match a name that begins with a prefix.
func mayMatch(pattern, prefix string) bool {
	if i := strings.IndexAny(pattern, `*?[{`); i >= 0 {
		pattern = pattern[:i]
		return strings.HasPrefix(prefix, pattern) || strings.HasPrefix(pattern, prefix)
	}
	return strings.HasPrefix(pattern, prefix)
}
