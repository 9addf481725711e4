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
// comments and trailing commas as most clients allow them. Any other file is YAML. Values that
// are malformed are nulls, and in wrong: what they cost depends on where they are.
func parse(data []byte) (root *node, wrong []*node, err error) {
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
		return nil, nil, &Error{Line: 1 + bytes.Count(data[:valid], []byte("\n")), Err: errors.New("is not valid UTF-8")}
	}
	if len(data) > maxSize || bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) > maxBrackets {
		return nil, nil, &Error{Err: errors.New("is too large: put the servers into a file of their own")}
	}
	start := bytes.TrimLeft(data, " \t\r\n")
	if len(start) == 0 {
		return nil, nil, &Error{Err: errors.New("is empty")}
	}
	if strings.IndexByte("{[/", start[0]) >= 0 {
		return parseJSON(data)
	}
	return parseYAML(data)
}

func parseJSON(data []byte) (root *node, wrong []*node, err error) {
	value, err := hujson.Parse(data)
	if err != nil {
		return nil, nil, &Error{Err: fmt.Errorf("is not valid JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))}
	}
	b := &jsonBuilder{data: data, line: 1}
	root = &node{line: 1}
	b.build(root, &value)
	return root, b.wrong, b.err
}

// jsonBuilder converts values to nodes, in the order of the file.
type jsonBuilder struct {
	data   []byte
	offset int // the position up to which lines are counted
	line   int // the line of offset
	wrong  []*node
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

// textOf returns the text of a literal, or "" if a string is not valid Unicode.
func (b *jsonBuilder) textOf(n *node, value hujson.ValueTrimmed) string {
	literal, _ := value.(hujson.Literal)
	if err := wellformed.JSON(literal); err != nil {
		n.wrong = err
		b.wrong = append(b.wrong, n)
		return ""
	}
	return literal.String()
}

func parseYAML(data []byte) (root *node, wrong []*node, err error) {
	var document, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil, &Error{Err: errors.New("is empty")}
		}
		return nil, nil, &Error{Err: fmt.Errorf("is neither JSON nor YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))}
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, nil, &Error{Line: second.Line, Err: errors.New("has a second document: put the servers into one document")}
	}
	root = &node{}
	wrong, err = buildYAML(root, document.Content[0])
	return root, wrong, err
}

// buildYAML converts a value to nodes, and returns those that are malformed.
func buildYAML(n *node, value *yaml.Node) (wrong []*node, err error) {
	n.line = max(n.line, value.Line)
	malformed := func(format string, args ...any) ([]*node, error) {
		n.kind, n.wrong = isNull, fmt.Errorf(format, args...)
		return append(wrong, n), nil
	}
	if n.depth > maxDepth {
		return nil, &Error{Line: value.Line, Err: errDeep}
	}
	below := func(child *node, value *yaml.Node) error {
		more, err := buildYAML(child, value)
		wrong = append(wrong, more...)
		return err
	}
	switch value.Kind {
	case yaml.AliasNode:
		return malformed("is a YAML alias, which is not supported: write the value itself")
	case yaml.SequenceNode:
		n.kind = isList
		for _, item := range value.Content {
			if err := below(n.add("", item.Line), item); err != nil {
				return nil, err
			}
		}
		return wrong, nil
	case yaml.MappingNode:
		n.kind = isObject
		for i := 0; i < len(value.Content); i += 2 {
			name := value.Content[i]
			if name.Kind != yaml.ScalarNode || name.ShortTag() == "!!merge" {
				return malformed("has a key that is not a plain string, which is not supported: write the fields themselves")
			}
			field := n.add(name.Value, name.Line)
			if err := below(field, value.Content[i+1]); err != nil {
				return nil, err
			}
			field.line = name.Line
		}
		return wrong, nil
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
		return malformed("has the YAML tag %s, which is not supported: remove the tag", strconv.Quote(tag))
	}
	return wrong, nil
}
