package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"

	"github.com/mcpactor/mcpactor/internal/wellformed"
)

const (
	// maxSize bounds a file, in bytes.
	maxSize = 16 << 20
	// maxNested bounds the lists and objects of a file: its parser calls itself for each
	// that is inside another.
	maxNested = 100_000
	// maxDepth bounds the lists and objects that are inside one another.
	maxDepth = 200
)

// errDeep is the error of a file with more than that.
var errDeep = errors.New("has too many lists and objects inside one another: put the servers into a file of their own")

// parse parses a file: YAML if it does not begin as JSON does, else JSON, with comments
// and trailing commas as most clients allow them.
func parse(data []byte) (*node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		valid := 0
		for valid < len(data) {
			r, size := utf8.DecodeRune(data[valid:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			valid += size
		}
		return nil, &Error{Line: 1 + bytes.Count(data[:valid], []byte("\n")), Err: errors.New("is not valid UTF-8")}
	}
	if len(data) > maxSize || bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) > maxNested {
		return nil, &Error{Err: errors.New("is too large: put the servers into a file of their own")}
	}
	start := bytes.TrimLeft(data, " \t\r\n")
	if len(start) == 0 {
		return nil, &Error{Err: errors.New("is empty")}
	}
	if strings.IndexByte("{[/", start[0]) >= 0 {
		return parseJSON(data)
	}
	return parseYAML(data)
}

func parseJSON(data []byte) (*node, error) {
	value, err := hujson.Parse(data)
	if err != nil {
		return nil, &Error{Err: fmt.Errorf("is no JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))}
	}
	b := &jsonBuilder{data: data, line: 1}
	root := &node{line: 1}
	b.build(root, &value)
	return root, b.err
}

// jsonBuilder makes nodes of values, in the order of the file.
type jsonBuilder struct {
	data   []byte
	offset int // where line was counted
	line   int
	err    error
}

func (b *jsonBuilder) lineOf(value *hujson.Value) int {
	b.line += bytes.Count(b.data[b.offset:value.StartOffset], []byte("\n"))
	b.offset = value.StartOffset
	return b.line
}

func (b *jsonBuilder) build(n *node, value *hujson.Value) {
	n.line = b.lineOf(value)
	if n.depth > maxDepth {
		if b.err == nil {
			b.err = &Error{Line: n.line, Err: errDeep}
		}
		return
	}
	switch value := value.Value.(type) {
	case *hujson.Object:
		n.kind = isObject
		for i := range value.Members {
			member := &value.Members[i]
			line := b.lineOf(&member.Name)
			field := n.add("", line)
			field.name = b.textOf(field, member.Name.Value)
			b.build(field, &member.Value)
			field.line = line
		}
	case *hujson.Array:
		n.kind = isList
		for i := range value.Elements {
			b.build(n.add("", 0), &value.Elements[i])
		}
	case hujson.Literal:
		n.kind = map[hujson.Kind]kind{'n': isNull, 't': isBoolean, 'f': isBoolean, '0': isNumber, '"': isText}[value.Kind()]
		n.text = b.textOf(n, value)
	}
}

// textOf returns the text of a literal, and remembers the first that is not Unicode.
func (b *jsonBuilder) textOf(n *node, value hujson.ValueTrimmed) string {
	literal, _ := value.(hujson.Literal)
	if err := wellformed.JSON(literal); err != nil && b.err == nil {
		b.err = &Error{Field: n.path(), Line: n.line, Err: err}
	}
	return literal.String()
}

func parseYAML(data []byte) (*node, error) {
	var document, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &Error{Err: errors.New("is empty")}
		}
		return nil, &Error{Err: fmt.Errorf("is neither JSON nor YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))}
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &Error{Line: second.Line, Err: errors.New("has a second document: only one is read")}
	}
	root := &node{}
	return root, buildYAML(root, document.Content[0])
}

func buildYAML(n *node, value *yaml.Node) error {
	n.line = max(n.line, value.Line)
	wrong := func(format string, args ...any) error {
		return &Error{Field: n.path(), Line: value.Line, Err: fmt.Errorf(format, args...)}
	}
	if n.depth > maxDepth {
		return &Error{Line: value.Line, Err: errDeep}
	}
	switch value.Kind {
	case yaml.AliasNode:
		return wrong("is an alias of YAML, which is not read: write the value out")
	case yaml.SequenceNode:
		n.kind = isList
		for _, item := range value.Content {
			if err := buildYAML(n.add("", item.Line), item); err != nil {
				return err
			}
		}
		return nil
	case yaml.MappingNode:
		n.kind = isObject
		for i := 0; i < len(value.Content); i += 2 {
			name := value.Content[i]
			if name.Kind != yaml.ScalarNode || name.ShortTag() == "!!merge" {
				return wrong("has a key that is no plain text, which is not read: write the fields out")
			}
			field := n.add(name.Value, name.Line)
			if err := buildYAML(field, value.Content[i+1]); err != nil {
				return err
			}
			field.line = name.Line
		}
		return nil
	}
	n.text = value.Value
	switch tag := value.ShortTag(); tag {
	case "!!null":
		n.kind = isNull
	case "!!bool":
		n.kind, n.text = isBoolean, strings.ToLower(value.Value)
	case "!!int", "!!float":
		n.kind = isNumber
	case "!!str", "!!timestamp":
		n.kind = isText
	default:
		return wrong("has the tag %s, which is not read", strconv.Quote(tag))
	}
	return nil
}
