package toolset

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// maxDepth is how deep branches of branches are looked into.
const maxDepth = 32

// parameters renders an input schema as [Tool.Parameters] says. It does not change it.
func parameters(schema any) json.RawMessage {
	top := object(schema)
	b := branches{top: top, seen: map[string]bool{}, variants: map[string][]any{}}
	b.under(top, true, 0)
	properties := b.properties()
	own, _ := top["properties"].(map[string]any)
	maps.Copy(properties, own)
	required, _ := top["required"].([]any)
	for _, name := range b.required {
		if !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
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
	seen     map[string]bool  // the references that were followed: once each, they may go in circles
	variants map[string][]any // the different schemas of each property
	required []any            // names, in the branches that always hold
}

// under looks into the branches of a schema. It always holds, or is one of several.
func (b *branches) under(schema map[string]any, always bool, depth int) {
	if ref, _ := schema["$ref"].(string); ref != "" && !b.seen[ref] {
		b.seen[ref] = true
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
	if schema == nil || depth == maxDepth {
		return
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		equal := func(other any) bool { return reflect.DeepEqual(property, other) }
		if !slices.ContainsFunc(b.variants[name], equal) {
			b.variants[name] = append(b.variants[name], property)
		}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if name, ok := name.(string); ok && always {
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

// object returns a schema as decoded JSON, which is the caller's. It is empty if the
// schema is no JSON object.
func object(schema any) map[string]any {
	var top map[string]any
	text, err := json.Marshal(schema)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		err = d.Decode(&top)
	}
	if err != nil || top == nil {
		return map[string]any{}
	}
	return top
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
