package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// kind is what a value is. Its text stands in errors.
type kind string

const (
	isNull    kind = "null"
	isBoolean kind = "true or false"
	isNumber  kind = "a number"
	isText    kind = "a string"
	isList    kind = "a list"
	isObject  kind = "an object"
)

// node is a value in a file, JSON or YAML, with its place.
type node struct {
	parent *node // nil for the whole file
	name   string
	index  int // of an item of a list
	line   int
	depth  int // how many nodes are above

	kind  kind
	text  string  // of a string; a number and a boolean as they are written
	items []*node // of a list; the fields of an object, in order, with their names
}

// add adds a field or an item.
func (n *node) add(name string, line int) *node {
	child := &node{parent: n, name: name, index: len(n.items), line: line, depth: n.depth + 1}
	n.items = append(n.items, child)
	return child
}

// field returns a field of an object, or nil. A field that is null is not there.
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

// path returns the names from the top of the file, such as "mcpServers.a.args[1]".
func (n *node) path() string {
	var parts []string
	for ; n.parent != nil; n = n.parent {
		switch {
		case n.parent.kind == isList:
			parts = append(parts, fmt.Sprintf("[%d]", n.index))
		case n.parent.parent != nil:
			parts = append(parts, "."+printable(n.name))
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

// printable quotes a name that would be mistaken for something else in a log.
func printable(name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}
