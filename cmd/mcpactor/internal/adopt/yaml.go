package adopt

import (
	"bytes"
	"regexp"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parseYAML parses the first document of a YAML file.
func parseYAML(data []byte) (*value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	if len(document.Content) == 0 {
		return &value{}, nil
	}
	y := &yamlText{data: data}
	at := 0
	for line := range bytes.Lines(data) {
		mark := len(line) - len(bytes.TrimPrefix(line, byteOrderMark)) // it has no column
		y.lines = append(y.lines, at+mark)
		at += len(line)
	}
	return y.value(document.Content[0]), nil
}

// yamlText finds the places of nodes. The parser says in which line and column a node begins, and not where it ends.
type yamlText struct {
	data  []byte
	lines []int // where each line begins
}

// value converts a node. One with an anchor or a tag, and an alias, are never changed.
func (y *yamlText) value(n *yaml.Node) *value {
	if n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		return &value{}
	}
	v := &value{start: y.start(n), lines: n.Style&yaml.FlowStyle == 0}
	switch n.Kind {
	case yaml.MappingNode:
		v.kind = object
		for i := 0; i < len(n.Content); i += 2 {
			name := y.value(n.Content[i])
			if name.end == 0 {
				continue
			}
			v.fields = append(v.fields, &field{n.Content[i].Value, name.start, name.end, y.value(n.Content[i+1])})
		}
	case yaml.SequenceNode:
		v.kind = list
		last := v.start + 1
		for _, node := range n.Content {
			item := y.value(node)
			if last = item.end; last == 0 {
				return &value{}
			}
			v.items = append(v.items, item)
		}
		if v.end = last; !v.lines {
			v.end = y.after(closing, last)
		}
		if v.end == 0 {
			return &value{}
		}
	case yaml.ScalarNode:
		if v.end = y.end(n, v.start); v.end > 0 && n.ShortTag() == "!!str" {
			v.kind, v.text = text, n.Value
		}
	}
	return v
}

// start returns where a node begins. Its column counts characters.
func (y *yamlText) start(n *yaml.Node) int {
	if n.Line > len(y.lines) {
		return len(y.data)
	}
	start := y.lines[n.Line-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(y.data[start:])
		start += size
	}
	return start
}

// end returns where a scalar ends, or 0 if it is written in another way than those of most files.
func (y *yamlText) end(n *yaml.Node, start int) int {
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return y.after(quotedTwice, start)
	case n.Style&yaml.SingleQuotedStyle != 0:
		return y.after(quotedOnce, start)
	case n.Value != "" && bytes.HasPrefix(y.data[start:], []byte(n.Value)):
		return start + len(n.Value)
	}
	return 0
}

var (
	quotedTwice = regexp.MustCompile(`^(?s)"(\\.|[^"\\])*"`)
	quotedOnce  = regexp.MustCompile(`^'(''|[^'])*'`)
	closing     = regexp.MustCompile(`^[\s,]*\]`) // of a list in brackets
)

// after returns where a text of a form ends that begins at start, or 0 if there is none.
func (y *yamlText) after(form *regexp.Regexp, start int) int {
	found := form.FindIndex(y.data[start:])
	if found == nil {
		return 0
	}
	return start + found[1]
}
