package config

import (
	"cmp"
	"maps"
	"slices"

	"github.com/mcpactor/mcpactor/pin"
)

// identityIn returns what the entry of a server says of how the server is reached, with the names of variables and not with their values.
func identityIn(n *node, e *entry) pin.Identity {
	return pin.Identity{
		Command: append(wordsOf(n.field("command")), wordsOf(n.field("args"))...),
		Dir:     textOf(n, "cwd"),
		Env:     slices.Sorted(maps.Keys(e.server.Env)),
		URL:     cmp.Or(textOf(n, "url"), textOf(n, "httpUrl"), textOf(n, "serverUrl")),
	}
}

// wordsOf returns the words of a command, or of its arguments, in all forms that [reader.start] reads.
func wordsOf(n *node) (all []string) {
	switch {
	case n == nil:
	case n.kind == isList:
		for _, item := range n.items {
			all = append(all, item.text)
		}
	case n.kind == isObject:
		all = append(wordsOf(n.field("path")), wordsOf(n.field("args"))...)
	default:
		all = []string{n.text}
	}
	return all
}
