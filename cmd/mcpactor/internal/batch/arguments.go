package batch

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/internal/schemas"
)

// argumentsFrom reads the arguments of a tool. Those that are a string here are texts, which [fit] may read otherwise.
func argumentsFrom(words []string) (map[string]any, error) {
	arguments := map[string]any{}
	if len(words) == 1 && strings.HasPrefix(words[0], "{") {
		object := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(words[0]), &object); err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
		for name, value := range object {
			arguments[name] = value
		}
		return arguments, nil
	}
	for _, word := range words {
		name, value, found := strings.Cut(word, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("%q: write KEY=text or KEY:=JSON", word)
		}
		name, isJSON := strings.CutSuffix(name, ":")
		switch _, isSet := arguments[name]; {
		case isSet:
			return nil, fmt.Errorf("%s: is given twice", name)
		case isJSON && !json.Valid([]byte(value)):
			return nil, fmt.Errorf("%s: %q is no JSON", name, value)
		case isJSON:
			arguments[name] = json.RawMessage(value)
		default:
			arguments[name] = value
		}
	}
	return arguments, nil
}

// isText reports whether an argument is a text, whose meaning depends on the tool.
func isText(argument any) bool {
	_, is := argument.(string)
	return is
}

// fit makes JSON of the texts which a tool with this schema wants as JSON. A text that the tool cannot take in any way is an error. If the
// schema cannot be used, as that of a tool that is left out, the type of each argument is, and isChecked is false.
func fit(tool string, parameters []byte, isLeftOut bool, arguments map[string]any) (isChecked bool, err error) {
	var given map[string]any
	_ = json.Unmarshal(parameters, &given) // else nothing is known of the arguments
	types := typesIn(given)
	schema := schemaOf(given)
	if isChecked = schema != nil && !isLeftOut; !isChecked {
		schema = schemaOf(types)
	}
	if schema == nil { // the server says what is wrong
		return false, nil
	}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		text, is := arguments[name].(string)
		if !is || schema.Validate(map[string]any{name: text}) == nil {
			continue
		}
		if value, err := decode(text); err != nil || schema.Validate(map[string]any{name: value}) != nil {
			return isChecked, misfit(tool, parameters, name, text)
		}
		arguments[name] = json.RawMessage(text)
	}
	return isChecked, nil
}

// typesIn returns what a schema says of the types of the arguments, and nothing else.
func typesIn(given map[string]any) map[string]any {
	types := map[string]any{}
	properties, _ := given["properties"].(map[string]any)
	for name, property := range properties {
		property, _ := property.(map[string]any)
		kinds, isList := property["type"].([]any)
		if !isList {
			kinds = []any{property["type"]}
		}
		if !slices.ContainsFunc(kinds, func(kind any) bool { return !slices.Contains(jsonTypes, kind) }) {
			types[name] = map[string]any{"type": property["type"]}
		}
	}
	return map[string]any{"properties": types}
}

// jsonTypes are the types of JSON Schema.
var jsonTypes = []any{"string", "number", "integer", "boolean", "object", "array", "null"}

// schemaOf returns the schema that each single argument of a tool has to meet, or nil if it cannot be used.
func schemaOf(given map[string]any) *jsonschema.Resolved {
	for keyword := range given {
		if !slices.Contains([]string{"properties", "patternProperties", "additionalProperties", "$defs", "definitions"}, keyword) {
			delete(given, keyword) // such as required, which is about all arguments
		}
	}
	dropPatterns(given)
	text, err := json.Marshal(given)
	if err != nil {
		return nil
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil || schemas.Check(&schema) != nil {
		return nil
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil
	}
	return resolved
}

// dropPatterns removes the regular expressions that Go does not know, with which nothing could be checked.
func dropPatterns(value any) {
	unknown := func(pattern string) bool {
		_, err := regexp.Compile(pattern)
		return err != nil
	}
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			dropPatterns(one)
		}
	case map[string]any:
		if pattern, is := v["pattern"].(string); is && unknown(pattern) {
			delete(v, "pattern")
		}
		if properties, is := v["patternProperties"].(map[string]any); is && slices.ContainsFunc(slices.Collect(maps.Keys(properties)), unknown) {
			delete(v, "patternProperties")
			delete(v, "additionalProperties")
		}
		for _, one := range v {
			dropPatterns(one)
		}
	}
}

// decode decodes JSON that is not nested too deeply.
func decode(text string) (value any, err error) {
	if err = json.Unmarshal([]byte(text), &value); err == nil {
		err = schemas.CheckValue(value)
	}
	return value, err
}

// misfit returns the error of an argument that the tool cannot take.
func misfit(tool string, parameters []byte, name, text string) error {
	var s jsonSchema
	_ = json.Unmarshal(parameters, &s) // else nothing is known of the field
	field := s.Properties[name]
	want := "what the schema of the tool says"
	switch {
	case field == nil && len(s.Properties) > 0:
		known := slices.Sorted(maps.Keys(s.Properties))
		return cli.Usagef("%s has no argument %q: it has %s", tool, name, printable(strings.Join(known, ", ")))
	case field != nil && field.kind() != anything:
		want = field.kind()
		switch first, _, _ := strings.Cut(want, " "); first {
		case "whole", "number", "list":
			want = "a " + want
		case "object":
			want = "an " + want
		}
	}
	return cli.Usagef("%s: %q does not fit: the tool wants %s. To send it unchecked, write %s:=JSON", name, text, want, name)
}
