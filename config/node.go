package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// kind is the type of a value, as errors name it.
type kind string

const (
	isNull    kind = "null"
	isBoolean kind = "true or false"
	isNumber  kind = "a number"
	isText    kind = "a string"
	isList    kind = "a list"
	isObject  kind = "an object"
)

// node is a value in a JSON or YAML file, with its position.
type node struct {
	parent *node  // nil for the root
	name   string // of a field
	index  int    // in the list or object
	line   int
	depth  int // the number of ancestors

	kind  kind
	text  string  // of a string; a number or a boolean as it is written
	items []*node // the items of a list, or the fields of an object, in order
	wrong error   // why a file cannot have the value, or nil
}

// add adds a field or an item.
func (n *node) add(name string, line int) *node {
	child := &node{parent: n, name: name, index: len(n.items), line: line, depth: n.depth + 1}
	n.items = append(n.items, child)
	return child
}

// field returns a field of an object. It returns nil if the field is missing or null.
func (n *node) field(name string) *node {
	if n == nil || n.kind != isObject {
		return nil
	}
	for _, field := range n.items {
		if field.name == name && field.kind != isNull {
			return field
		}
	}
	return nil
}

// entryIn returns the field of one of the objects that n is or is in, or nil.
func (n *node) entryIn(objects []*node) *node {
	for ; n.parent != nil; n = n.parent {
		if slices.Contains(objects, n.parent) {
			return n
		}
	}
	return nil
}

// path returns the names from the root to n, such as "mcpServers.a.args[1]".
func (n *node) path() string {
	var parts []string
	for ; n.parent != nil; n = n.parent {
		switch {
		case n.parent.kind == isList:
			parts = append(parts, fmt.Sprintf("[%d]", n.index))
		case n.parent.parent != nil:
			name, _, hasValue := strings.Cut(n.name, "=")
			if name = printable(name); hasValue { // what follows may be a secret
				name += "=…"
			}
			parts = append(parts, "."+name)
		default:
			parts = append(parts, printable(n.name))
		}
	}
	var path strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		path.WriteString(parts[i])
	}
	return path.String()
}

// printable quotes a name that is empty or has characters that are not printable.
func printable(name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}
