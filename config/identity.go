package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/mcpactor/mcpactor/internal/definition"
	"github.com/mcpactor/mcpactor/pin"
)

// identityIn returns what the entry of a server says of how the server is reached, with the names of variables and not with their values.
func identityIn(n *node, e *entry) pin.Identity {
	cleanup := n.field("cleanup")
	is := pin.Identity{
		Command: append(wordsOf(n.field("command")), wordsOf(n.field("args"))...),
		Dir:     textOf(n, "cwd"),
		Env:     slices.Sorted(maps.Keys(e.server.Env)),
		URL:     cmp.Or(textOf(n, "url"), textOf(n, "httpUrl"), textOf(n, "serverUrl")),
		Cleanup: append(wordsOf(cleanup.field("command")), wordsOf(cleanup.field("args"))...),
	}
	is.Setup, is.Handles = itemsOf(n.field("setup")), itemsOf(n.field("handles"))
	return is
}

// itemsOf returns the items of a list, each as JSON.
func itemsOf(n *node) (all []string) {
	if n != nil {
		for _, item := range n.items {
			all = append(all, string(definition.Encode(asWritten(item))))
		}
	}
	return all
}

// asWritten returns a value with the names of variables.
func asWritten(n *node) any {
	switch {
	case n.kind == isObject:
		object := map[string]any{}
		for _, field := range n.items {
			object[field.name] = asWritten(field)
		}
		return object
	case n.kind == isList:
		list := []any{}
		for _, item := range n.items {
			list = append(list, asWritten(item))
		}
		return list
	case n.kind != isText && json.Valid([]byte(n.text)):
		return json.RawMessage(n.text)
	}
	return n.text
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
