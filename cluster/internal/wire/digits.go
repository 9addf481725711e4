package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// restoreDigits replaces the values of type any that were decoded with a float64 in place of a
// number that has more digits. The SDK decodes numbers in this way. Such numbers are rare, so that most
// messages are not decoded a second time.
func restoreDigits(data []byte, decoded any) error {
	if allExact(data) {
		return nil
	}
	var tree any
	if err := decodeNumbers(data, &tree); err != nil {
		return &Error{Problem: "is not JSON", Cause: err}
	}
	replace(reflect.ValueOf(decoded).Elem(), tree)
	return nil
}

// decodeNumbers decodes JSON with each number of a value of type any as a json.Number.
func decodeNumbers(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

// allExact reports whether a float64 has the value of each number in valid JSON.
func allExact(data []byte) bool {
	for i := 0; i < len(data); {
		switch c := data[i]; {
		case c == '"':
			i = afterString(data, i)
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(data) && strings.IndexByte("0123456789+-.eE", data[end]) >= 0 {
				end++
			}
			if !isExact(data[i:end]) {
				return false
			}
			i = end
		default:
			i++
		}
	}
	return true
}

// afterString returns the index behind the string that begins at i.
func afterString(data []byte, i int) int {
	for i++; ; {
		quote := bytes.IndexByte(data[i:], '"')
		if quote < 0 {
			return len(data)
		}
		backslashes := 0
		for backslashes < quote && data[i+quote-1-backslashes] == '\\' {
			backslashes++
		}
		i += quote + 1
		if backslashes%2 == 0 {
			return i
		}
	}
}

// isExact reports whether encoding/json writes a number as this text when it has read it as a
// float64. A number of at most 15 digits always keeps its value.
func isExact(number []byte) bool {
	if len(number) <= 15 && bytes.IndexByte(number, 'e') < 0 && bytes.IndexByte(number, 'E') < 0 {
		return true
	}
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		return false
	}
	text, err := json.Marshal(f)
	return err == nil && bytes.Equal(text, number)
}

// replace replaces the values of type any in a decoded value by those of its tree, which has each
// number as a json.Number.
func replace(v reflect.Value, tree any) {
	if tree == nil {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			replace(v.Elem(), tree)
		}
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		if v.NumMethod() > 0 { // a content
			replace(v.Elem(), tree)
		} else if _, raw := v.Interface().(json.RawMessage); !raw {
			v.Set(reflect.ValueOf(withDigits(tree)))
		}
	case reflect.Struct:
		members, _ := tree.(map[string]any)
		for i := range v.NumField() {
			field := v.Type().Field(i)
			switch name, ok := jsonName(field); {
			case !ok:
			case name == "":
				replace(v.Field(i), tree)
			case members[name] != nil && field.IsExported():
				replace(v.Field(i), members[name])
			case contentNames[field.Name] != "" && field.Tag == "" && members[contentNames[field.Name]] != nil:
				replace(v.Field(i), members[contentNames[field.Name]])
			}
		}
	case reflect.Map:
		members, _ := tree.(map[string]any)
		for entries := v.MapRange(); entries.Next(); {
			member := members[entries.Key().String()]
			if request, ok := member.(map[string]any); ok && v.Type() == reflect.TypeFor[mcp.InputRequestMap]() {
				member = request["params"]
			}
			switch {
			case member == nil: // it has no digits
			case v.Type().Elem() == reflect.TypeFor[any]():
				v.SetMapIndex(entries.Key(), reflect.ValueOf(withDigits(member)))
			default:
				replace(entries.Value(), member)
			}
		}
	case reflect.Slice:
		elements, many := tree.([]any)
		if !many { // the SDK encodes some lists of one element as the element
			elements = []any{tree}
		}
		for i := range min(v.Len(), len(elements)) {
			replace(v.Index(i), elements[i])
		}
	}
}

// contentNames are the names in JSON of the fields of the SDK's contents, which have no tags. They
// are those that values of type any are in.
var contentNames = map[string]string{"Meta": "_meta", "Input": "input", "StructuredContent": "structuredContent", "Content": "content", "Resource": "resource"}

// withDigits returns a tree with each number as a float64 if that is exact, or else as an int64, a
// uint64 or a json.Number. It changes the tree.
func withDigits(tree any) any {
	switch tree := tree.(type) {
	case map[string]any:
		for name, member := range tree {
			tree[name] = withDigits(member)
		}
	case []any:
		for i, element := range tree {
			tree[i] = withDigits(element)
		}
	case json.Number:
		if isExact([]byte(tree)) {
			f, _ := tree.Float64()
			return f
		}
		if i, err := strconv.ParseInt(string(tree), 10, 64); err == nil {
			return i
		}
		if u, err := strconv.ParseUint(string(tree), 10, 64); err == nil {
			return u
		}
	}
	return tree
}
