package toolset

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// parameters renders an input schema as [Tool.Parameters] says. It does not change it.
func parameters(schema any) json.RawMessage {
	top := object(schema)
	properties := branches(top)
	own, _ := top["properties"].(map[string]any)
	maps.Copy(properties, own)
	for _, refused := range []string{"allOf", "anyOf", "oneOf", "enum", "not"} {
		delete(top, refused)
	}
	if required, _ := top["required"].([]any); required == nil {
		delete(top, "required")
	}
	top["type"], top["properties"] = "object", properties
	return encode(top)
}

// branches returns the properties in the branches of a schema. One that differs from
// branch to branch may be any of what they say.
func branches(top map[string]any) map[string]any {
	variants := map[string][]any{}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := top[keyword].([]any)
		for _, branch := range list {
			branch, _ := branch.(map[string]any)
			properties, _ := branch["properties"].(map[string]any)
			for name, property := range properties {
				equal := func(other any) bool { return reflect.DeepEqual(property, other) }
				if !slices.ContainsFunc(variants[name], equal) {
					variants[name] = append(variants[name], property)
				}
			}
		}
	}
	all := map[string]any{}
	for name, list := range variants {
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
