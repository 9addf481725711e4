package toolset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/internal/definition"
	"github.com/mcpactor/mcpactor/internal/schemas"
	"github.com/mcpactor/mcpactor/internal/visible"
)

const (
	// maxSchema bounds the input schema that a model gets, in bytes. A larger one would
	// fill much of the model's context.
	maxSchema = 256 << 10
	// maxDepth bounds the depth of nested branches.
	maxDepth = 32
)

// parameters renders an input schema as [Tool.Parameters] describes, or returns why no API would take it. It does not
// change the schema. Its time is linear in the size of the schema.
func parameters(schema any) (json.RawMessage, error) {
	top, fits := object(schema)
	if !fits {
		return definition.Encode(map[string]any{
			"type": "object", "properties": map[string]any{},
			"description": fmt.Sprintf("The schema of the arguments is left out: it has more than %d bytes.", maxSchema),
		}), nil
	}
	for _, ignored := range []string{"type", "enum", "not"} {
		delete(top, ignored)
	}
	references, err := schemas.Repair(top)
	if err != nil {
		return nil, err
	}
	b := branches{top: top, seen: map[visit]bool{}, known: map[variant]bool{}, variants: map[string][]any{}, names: map[string]bool{}}
	required, _ := top["required"].([]any)
	for _, name := range required {
		if name, ok := name.(string); ok {
			b.names[name] = true
		}
	}
	b.under(top, true, 0)
	properties := b.properties()
	own, _ := top["properties"].(map[string]any)
	maps.Copy(properties, own)
	required = append(required, b.required...)
	top["type"], top["properties"], top["required"] = "object", properties, required
	if required == nil {
		delete(top, "required")
	}
	for _, refused := range []string{"$ref", "allOf", "anyOf", "oneOf", "if", "then", "else"} {
		delete(top, refused)
	}
	if schemas.Missing(top, references) != "" {
		references, _ = schemas.Repair(top) // without those that were removed
	}
	if missing := schemas.Missing(top, references); missing != "" {
		return nil, fmt.Errorf("$ref: %.100q leads to nothing", missing)
	}
	return definition.Encode(top), nil
}

// branches collects the properties in the branches of a schema.
type branches struct {
	top      map[string]any
	seen     map[visit]bool   // references may be circular, and several may have one target
	known    map[variant]bool // the contents of variants
	variants map[string][]any // the different schemas of each property
	names    map[string]bool  // of required properties
	required []any            // of the branches that always hold, without those of the top
}

// visit identifies a branch that was read.
type visit struct {
	schema uintptr // the address of its map
	always bool
}

// variant is one schema of a property, as JSON.
type variant struct{ name, text string }

// under reads the branches of a schema. always is false if the schema is one of several
// alternatives.
func (b *branches) under(schema map[string]any, always bool, depth int) {
	if ref, _ := schema["$ref"].(string); ref != "" {
		b.add(b.resolve(ref), always, depth)
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := schema[keyword].([]any)
		for _, branch := range list {
			b.add(branch, always && keyword == "allOf", depth)
		}
	}
	for _, keyword := range []string{"if", "then", "else"} {
		b.add(schema[keyword], false, depth)
	}
}

// add reads a branch and the branches under it.
func (b *branches) add(branch any, always bool, depth int) {
	schema, _ := branch.(map[string]any)
	look := visit{reflect.ValueOf(schema).Pointer(), always}
	if schema == nil || depth == maxDepth || b.seen[look] {
		return
	}
	b.seen[look] = true
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		if one := (variant{name, string(definition.Encode(property))}); !b.known[one] {
			b.known[one] = true
			b.variants[name] = append(b.variants[name], property)
		}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if name, ok := name.(string); ok && always && !b.names[name] {
			b.names[name] = true
			b.required = append(b.required, name)
		}
	}
	b.under(schema, always, depth+1)
}

// resolve returns the definition that a reference names, or nil.
func (b *branches) resolve(ref string) any {
	pointer, _ := strings.CutPrefix(ref, "#/")
	pointer, err := url.PathUnescape(pointer)
	if err != nil || !strings.HasPrefix(ref, "#/$defs/") && !strings.HasPrefix(ref, "#/definitions/") {
		return nil
	}
	var at any = b.top
	for name := range strings.SplitSeq(pointer, "/") {
		schema, _ := at.(map[string]any)
		at = schema[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return at
}

// properties returns the properties of all branches. One that differs between branches
// becomes an anyOf of its schemas.
func (b *branches) properties() map[string]any {
	all := map[string]any{}
	for name, list := range b.variants {
		all[name] = list[0]
		if len(list) > 1 {
			all[name] = map[string]any{"anyOf": list}
		}
	}
	return all
}

// object returns a copy of a schema as decoded JSON, with visible text only. The copy is
// empty if the schema is not a JSON object. fits is false if the schema has more than
// maxSchema bytes.
func object(schema any) (top map[string]any, fits bool) {
	text, err := json.Marshal(schema)
	if len(text) > maxSchema {
		return nil, false
	}
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		err = d.Decode(&top)
	}
	if err != nil || top == nil {
		return map[string]any{}, true
	}
	return readable(top).(map[string]any), true
}

// readable removes invisible characters from all texts in decoded JSON, names of
// members and values included. The server refuses a name or value that was changed,
// because it does not know it.
func readable(value any) any {
	switch v := value.(type) {
	case string:
		return visible.Text(v)
	case []any:
		for i, one := range v {
			v[i] = readable(one)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			one, shown := v[name], visible.Text(name)
			if shown != name {
				delete(v, name)
				if _, taken := v[shown]; taken {
					continue
				}
			}
			v[shown] = readable(one)
		}
	}
	return value
}
