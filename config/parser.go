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
	// maxBrackets bounds the opening brackets and braces of a file. The parsers are
	// recursive: without a bound, a file could exhaust the stack.
	maxBrackets = 100_000
	// maxDepth bounds how deeply lists and objects are nested.
	maxDepth = 200
)

// errDeep is the error of a file that exceeds maxDepth.
var errDeep = errors.New("is nested too deeply: put the servers into a file of their own")

// parse parses a file. A file that begins like JSON or like a comment of JSON is JSON, with
// comments and trailing commas as most clients allow them. Any other file is YAML.
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
	if len(data) > maxSize || bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) > maxBrackets {
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
		return nil, &Error{Err: fmt.Errorf("is not valid JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))}
	}
	b := &jsonBuilder{data: data, line: 1}
	root := &node{line: 1}
	b.build(root, &value)
	return root, b.err
}

// jsonBuilder converts values to nodes, in the order of the file.
type jsonBuilder struct {
	data   []byte
	offset int // the position up to which lines are counted
	line   int // the line of offset
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

// textOf returns the text of a literal. It records an error if a string is not valid Unicode.
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
		return nil, &Error{Line: second.Line, Err: errors.New("has a second document: put the servers into one document")}
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
		return wrong("is a YAML alias, which is not supported: write the value itself")
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
				return wrong("has a key that is not a plain string, which is not supported: write the fields themselves")
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
		return wrong("has the YAML tag %s, which is not supported: remove the tag", strconv.Quote(tag))
	}
	return nil
}
