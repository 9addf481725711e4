package schemas

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shapes are what JSON Schema wants as the values of keywords, for those that are checked.
var shapes = func() map[string]string {
	all := map[string]string{}
	for of, keywords := range map[string]string{
		"text for people": "title description $comment",
		"other text":      "format pattern $ref $dynamicRef $id $schema $anchor $dynamicAnchor contentEncoding contentMediaType",
		"number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems minProperties maxProperties " +
			"minContains maxContains",
		"flag":            "uniqueItems deprecated readOnly writeOnly",
		"types":           "type",
		"names":           "required",
		"values":          "enum examples",
		"schema":          "items additionalItems additionalProperties contains propertyNames not if then else unevaluatedItems unevaluatedProperties contentSchema",
		"schemas":         "allOf anyOf oneOf prefixItems",
		"schemas by name": "properties patternProperties $defs definitions dependentSchemas",
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
		if shapes[keyword] == "" {
			continue
		}
		value, err := r.value(keyword, s[keyword])
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

// isEmpty reports whether a value is an empty list, which PHP also writes for an empty object.
func isEmpty(value any) bool {
	list, isList := value.([]any)
	return isList && len(list) == 0
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
			if shapes[name] != "" && !taken && (!isKind || name == "type" && kind == "object") {
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

// value returns the value of a keyword, or nil if the keyword says nothing.
func (r *repair) value(keyword string, value any) (any, error) {
	if value == nil || isEmpty(value) {
		return nil, nil
	}
	switch shapes[keyword] {
	case "text for people":
		return wordsOf(value)
	case "other text":
		return as[string](value)
	case "number":
		return as[json.Number](value)
	case "flag":
		return as[bool](value)
	case "types":
		return typesOf(value)
	case "names":
		return namesOf(value)
	case "values":
		return as[[]any](value)
	case "schemas":
		return r.several(value)
	case "schemas by name":
		return r.named(value)
	}
	if value == true {
		return value, nil
	}
	return r.one(value)
}

// as returns a value of a type.
func as[T any](value any) (T, error) {
	v, is := value.(T)
	if !is {
		return v, misfit(value, "is not what JSON Schema has there")
	}
	return v, nil
}

// wordsOf returns a text for people.
func wordsOf(value any) (any, error) {
	if text, is := value.(string); is {
		return text, nil
	}
	data, err := json.Marshal(value)
	return string(data), err
}

// one returns a schema, such as that of a property. true and an empty list are the empty schema.
func (r *repair) one(value any) (any, error) {
	switch {
	case value == true, isEmpty(value):
		return map[string]any{}, nil
	case value == false:
		return value, nil
	}
	object, is := value.(map[string]any)
	if !is {
		return nil, misfit(value, "is no schema")
	}
	if err := r.schema(object); err != nil {
		return nil, fmt.Errorf(".%w", err)
	}
	return object, nil
}

func (r *repair) several(value any) (any, error) {
	list, err := as[[]any](value)
	for i := range list {
		if list[i], err = r.one(list[i]); err != nil {
			return nil, fmt.Errorf("[%d]%w", i, err)
		}
	}
	return list, err
}

func (r *repair) named(value any) (any, error) {
	object, err := as[map[string]any](value)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if object[name] == nil {
			object[name] = true
		}
		if object[name], err = r.one(object[name]); err != nil {
			return nil, fmt.Errorf(".%s%w", name, err)
		}
	}
	return object, err
}

// typesOf returns the value of the keyword type, or nil if any type is right.
func typesOf(value any) (any, error) {
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

// namesOf returns the names in a list, each once.
func namesOf(value any) (any, error) {
	list, err := as[[]any](value)
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
	return all, err
}

// misfit returns the end of an error that begins with the place of a value.
func misfit(value any, why string) error {
	data, _ := json.Marshal(value) // it was decoded from JSON
	return fmt.Errorf(": %.100s %s", data, why)
}
