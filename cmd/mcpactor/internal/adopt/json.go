package adopt

import "github.com/tailscale/hujson"

// parseJSON parses JSON with comments and trailing commas.
func parseJSON(data []byte) (*value, error) {
	tree, err := hujson.Parse(data)
	if err != nil {
		return nil, err
	}
	return fromJSON(&tree), nil
}

func fromJSON(from *hujson.Value) *value {
	v := &value{start: from.StartOffset, end: from.EndOffset}
	switch tree := from.Value.(type) {
	case *hujson.Object:
		v.kind = object
		for i := range tree.Members {
			name := &tree.Members[i].Name
			v.fields = append(v.fields, &field{name.Value.(hujson.Literal).String(), name.StartOffset, name.EndOffset, fromJSON(&tree.Members[i].Value)})
		}
	case *hujson.Array:
		v.kind = list
		for i := range tree.Elements {
			v.items = append(v.items, fromJSON(&tree.Elements[i]))
		}
	case hujson.Literal:
		if tree.Kind() == '"' {
			v.kind, v.text = text, tree.String()
		}
	}
	return v
}
