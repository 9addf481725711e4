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

	"github.com/mcpactor/mcpactor/internal/visible"
)

const (
	// maxSchema bounds the input schemas that are given to models, in bytes: a larger
	// one would fill much of a model's context by itself.
	maxSchema = 256 << 10
	// maxDepth is how deep branches of branches are looked into.
	maxDepth = 32
)

// parameters renders an input schema as [Tool.Parameters] says. It does not change it.
// The work is linear in the size of the schema.
func parameters(schema any) json.RawMessage {
	top, fits := object(schema)
	if !fits {
		return encode(map[string]any{
			"type": "object", "properties": map[string]any{},
			"description": fmt.Sprintf("The schema of the arguments is left out: it has more than %d bytes.", maxSchema),
		})
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
	for _, refused := range []string{"$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "enum", "not"} {
		delete(top, refused)
	}
	return encode(top)
}

// branches gathers what is said of properties in the branches of a schema.
type branches struct {
	top      map[string]any
	seen     map[visit]bool   // references may go in circles, and many may be to the same
	known    map[variant]bool // what is in variants
	variants map[string][]any // the different schemas of each property
	names    map[string]bool  // that are required
	required []any            // those in the branches that always hold, and not at the top
}

// visit is a look into a branch.
type visit struct {
	schema uintptr // the address of its map
	always bool
}

// variant is one schema of a property, as JSON.
type variant struct{ name, text string }

// under looks into the branches of a schema. It always holds, or is one of several.
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

// add notes what a branch says, and those under it.
func (b *branches) add(branch any, always bool, depth int) {
	schema, _ := branch.(map[string]any)
	look := visit{reflect.ValueOf(schema).Pointer(), always}
	if schema == nil || depth == maxDepth || b.seen[look] {
		return
	}
	b.seen[look] = true
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		if one := (variant{name, string(encode(property))}); !b.known[one] {
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

// resolve returns the definition that a reference is to, or nil.
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

// properties returns the properties in all branches. One that differs from branch to
// branch may be any of what they say.
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

// object returns a schema as decoded JSON, which is the caller's, with visible text
// only. It is empty if the schema is no JSON object. It does not fit if it has more
// than maxSchema bytes.
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

// readable returns decoded JSON with what is visible of its texts, the names of members
// and all values included: one that differs is then unknown to the server, and refused.
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

// encode renders what can be rendered as JSON, without the escapes for HTML.
func encode(value any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}
