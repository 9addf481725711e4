package schemas

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shape is what JSON Schema wants as the value of a keyword.
type shape int

const (
	words   shape = iota + 1 // a text for people
	text                     // any other text
	number                   // a number
	flag                     // true or false
	kinds                    // the name of a type, or several
	names                    // names of properties
	values                   // any values
	one                      // a schema
	several                  // schemas
	named                    // schemas by name
)

// shapes are those of the keywords whose values are checked.
var shapes = func() map[string]shape {
	all := map[string]shape{}
	for of, keywords := range map[shape]string{
		words: "title description $comment",
		text:  "format pattern $ref $dynamicRef $id $schema $anchor $dynamicAnchor contentEncoding contentMediaType",
		number: "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems minProperties maxProperties " +
			"minContains maxContains",
		flag:    "uniqueItems deprecated readOnly writeOnly",
		kinds:   "type",
		names:   "required",
		values:  "enum examples",
		one:     "items additionalItems additionalProperties contains propertyNames not if then else unevaluatedItems unevaluatedProperties contentSchema",
		several: "allOf anyOf oneOf prefixItems",
		named:   "properties patternProperties $defs definitions dependentSchemas",
	} {
		for keyword := range strings.FieldsSeq(keywords) {
			all[keyword] = of
		}
	}
	return all
}()

// types are the names of types that are certain, in lower case. The type of "any" is empty.
var types = map[string]string{
	"string": "string", "number": "number", "integer": "integer", "boolean": "boolean", "object": "object", "array": "array", "null": "null",
	"str": "string", "float": "number", "int": "integer", "bool": "boolean", "dict": "object", "list": "array", "none": "null", "any": "",
}

// Repair makes a schema one of JSON Schema 2020-12, in place, where it is certain what is meant: the APIs of models refuse a whole
// request for a malformed one. It returns the references in it, or an error that names the first value that cannot be repaired.
// The schema is JSON that was decoded with numbers of type [json.Number].
func Repair(schema map[string]any) (references []string, err error) {
	var r repair
	err = r.schema(schema)
	return r.references, err
}

// Missing returns the first of the references that leads to nothing in a schema, or "".
func Missing(schema map[string]any, references []string) string {
	d := &document{root: schema, anchors: map[string][]any{}}
	if len(references) > 0 {
		d.read(schema, true)
	}
	for _, ref := range references {
		if len(d.targets(ref)) == 0 {
			return ref
		}
	}
	return ""
}

// repair is one run of [Repair].
type repair struct{ references []string }

func (r *repair) schema(s map[string]any) error {
	hoist(s)
	modernize(s)
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		of, known := shapes[keyword]
		if !known {
			continue
		}
		value, err := r.value(of, s[keyword])
		switch {
		case err != nil:
			return fmt.Errorf("%s%w", keyword, err)
		case value == nil:
			delete(s, keyword)
		default:
			s[keyword] = value
		}
		if ref, is := value.(string); is && keyword == "$ref" {
			r.references = append(r.references, ref)
		}
	}
	all, _ := s["type"].([]any)
	if s["items"] == nil && (s["type"] == "array" || slices.Contains(all, any("array"))) {
		s["items"] = map[string]any{} // OpenAI requires it
	}
	return nil
}

// hoist moves keywords that stand among the properties, such as required, to where they belong.
func hoist(s map[string]any) {
	if _, is := s["required"].(bool); is { // of draft 3, for the property that this schema is of
		delete(s, "required")
	}
	properties, _ := s["properties"].(map[string]any)
	required, isList := s["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		_, taken := s[name]
		switch its := properties[name].(type) {
		case map[string]any:
			if its["required"] == true {
				required = append(required, name)
			}
		case bool, nil:
		case []any:
			if name == "required" && (isList || !taken) {
				delete(properties, name)
				required = append(required, its...)
			}
		default: // but the name of a type is meant for a property of this name
			text, _ := its.(string)
			kind, isKind := types[strings.ToLower(text)]
			if shapes[name] != 0 && !taken && (!isKind || name == "type" && kind == "object") {
				delete(properties, name)
				s[name] = its
			}
		}
	}
	if len(required) > 0 {
		s["required"] = required
	}
}

// modernize replaces what had another meaning in earlier drafts.
func modernize(s map[string]any) {
	for exclusive, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if excludes, is := s[exclusive].(bool); is {
			delete(s, exclusive)
			if excludes && s[bound] != nil {
				s[exclusive] = s[bound]
				delete(s, bound)
			}
		}
	}
	if tuple, is := s["items"].([]any); is {
		delete(s, "$schema") // no earlier draft has prefixItems
		s["prefixItems"], s["items"] = tuple, s["additionalItems"]
		delete(s, "additionalItems")
	}
	if examples, is := s["examples"]; is && examples != nil {
		if _, isList := examples.([]any); !isList { // of OpenAPI
			s["examples"] = []any{examples}
		}
	}
}

// value returns the value of a keyword of a shape, or nil if the keyword says nothing.
func (r *repair) value(of shape, value any) (any, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case bool:
		if of == flag || of == one {
			return v, nil
		}
	case json.Number:
		if of == number {
			return v, nil
		}
	case string:
		if of == text || of == words {
			return v, nil
		}
	case []any:
		switch {
		case len(v) == 0 && of != one: // or an empty object, as PHP writes it
			return nil, nil
		case of == values:
			return v, nil
		case of == several:
			return v, r.several(v)
		case of == names:
			return namesOf(v)
		}
	case map[string]any:
		if of == named {
			return v, r.named(v)
		}
	}
	switch of {
	case one:
		return r.one(value)
	case kinds:
		return kindsOf(value)
	case words:
		data, err := json.Marshal(value)
		return string(data), err
	}
	return nil, misfit(value, "is not what JSON Schema has there")
}

// one returns a schema, such as that of a property. true, and an empty list as PHP writes an empty object, are the empty schema.
func (r *repair) one(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		if err := r.schema(v); err != nil {
			return nil, fmt.Errorf(".%w", err)
		}
		return v, nil
	case bool:
		if !v {
			return v, nil
		}
		return map[string]any{}, nil
	case []any:
		if len(v) == 0 {
			return map[string]any{}, nil
		}
	}
	return nil, misfit(value, "is no schema")
}

func (r *repair) several(list []any) (err error) {
	for i, value := range list {
		if list[i], err = r.one(value); err != nil {
			return fmt.Errorf("[%d]%w", i, err)
		}
	}
	return nil
}

func (r *repair) named(object map[string]any) (err error) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if object[name] == nil {
			object[name] = true
		}
		if object[name], err = r.one(object[name]); err != nil {
			return fmt.Errorf(".%s%w", name, err)
		}
	}
	return nil
}

// kindsOf returns the value of the keyword type, or nil if any type is right.
func kindsOf(value any) (any, error) {
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	var all []any
	for _, one := range list {
		name, _ := one.(string)
		kind, known := types[strings.ToLower(name)]
		switch {
		case one == nil: // in a list of YAML
			kind = "null"
		case !known:
			return nil, misfit(one, "is no type of JSON Schema")
		case kind == "":
			return nil, nil
		}
		if !slices.Contains(all, any(kind)) {
			all = append(all, kind)
		}
	}
	if !isList {
		return all[0], nil
	}
	return all, nil
}

// namesOf returns the names of a list, each once.
func namesOf(list []any) (any, error) {
	all, seen := []any{}, map[any]bool{}
	for _, one := range list {
		if _, is := one.(string); !is {
			return nil, misfit(one, "is no name of a property")
		}
		if !seen[one] {
			seen[one] = true
			all = append(all, one)
		}
	}
	return all, nil
}

// misfit returns the end of an error that begins with the place of a value.
func misfit(value any, why string) error {
	data, _ := json.Marshal(value) // it was decoded from JSON
	return fmt.Errorf(": %.100s %s", data, why)
}
