package adopt

import (
	"errors"
	"fmt"

	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML parses the file of Codex. Fields that have a table of their own are in the object of this name, as in JSON.
func parseTOML(data []byte) (*value, error) {
	t := &tomlText{data: data}
	root := &value{kind: object, lines: true}
	table := root
	t.parser.Reset(data)
	for t.parser.NextExpression() {
		switch n := t.parser.Expression(); n.Kind {
		case unstable.Table:
			table = root
			for keys := n.Key(); keys.Next(); {
				table = below(table, string(keys.Node().Data))
			}
		case unstable.ArrayTable:
			table = &value{} // it has no server
		case unstable.KeyValue:
			t.add(table, n)
		}
	}
	err := t.parser.Error()
	if wrong, is := errors.AsType[*unstable.ParserError](err); is {
		err = fmt.Errorf("line %d: %w", t.parser.Shape(t.parser.Range(wrong.Highlight)).Start.Line, err)
	}
	return root, err
}

// below returns the object of a name, and adds it if there is none.
func below(v *value, name string) *value {
	f := v.field(name)
	if f == nil {
		f = &field{name: name, value: &value{kind: object, lines: true}}
		v.fields = append(v.fields, f)
	}
	return f.value
}

type tomlText struct {
	parser unstable.Parser
	data   []byte
}

// add adds a field to an object. A name with dots names objects, too.
func (t *tomlText) add(v *value, n *unstable.Node) {
	var last *unstable.Node
	start := int(n.Raw.Offset)
	for keys := n.Key(); keys.Next(); last = keys.Node() {
		if last != nil {
			v = below(v, string(last.Data))
		}
	}
	end := int(last.Raw.Offset + last.Raw.Length)
	from := end
	for t.data[from] == ' ' || t.data[from] == '\t' || t.data[from] == '=' {
		from++
	}
	v.fields = append(v.fields, &field{string(last.Data), start, end, t.value(n.Value(), from, start+int(n.Raw.Length))})
}

// value converts a value with its place.
func (t *tomlText) value(n *unstable.Node, start, end int) *value {
	v := &value{start: start, end: end}
	switch n.Kind {
	case unstable.String:
		v.kind, v.text = text, string(n.Data)
	case unstable.InlineTable:
		v.kind = object
		for children := n.Children(); children.Next(); {
			t.add(v, children.Node())
		}
	case unstable.Array:
		v.kind = list
		for children := n.Children(); children.Next(); {
			item := children.Node()
			if item.Raw.Length == 0 { // an array in an array has no place
				return &value{}
			}
			v.items = append(v.items, t.value(item, int(item.Raw.Offset), int(item.Raw.Offset+item.Raw.Length)))
		}
	}
	return v
}
