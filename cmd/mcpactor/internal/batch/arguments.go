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
	"github.com/mcpactor/mcpactor/toolset"
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
		if name, isJSON := strings.CutSuffix(name, ":"); isJSON {
			if !json.Valid([]byte(value)) {
				return nil, fmt.Errorf("%s: %q is no JSON", name, value)
			}
			arguments[name] = json.RawMessage(value)
			continue
		}
		arguments[name] = value
	}
	return arguments, nil
}

// isText reports whether an argument is a text, whose meaning depends on the tool.
func isText(argument any) bool {
	_, is := argument.(string)
	return is
}

// fit makes JSON of the texts which the tool wants as JSON. A text that the tool cannot take in any way is an error.
func fit(tool *toolset.Tool, arguments map[string]any) error {
	schema := schemaOf(tool)
	if schema == nil { // the server says what is wrong
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		text, is := arguments[name].(string)
		if !is || schema.Validate(map[string]any{name: text}) == nil {
			continue
		}
		if value, err := decode(text); err != nil || schema.Validate(map[string]any{name: value}) != nil {
			return misfit(tool, name, text)
		}
		arguments[name] = json.RawMessage(text)
	}
	return nil
}

// schemaOf returns the schema that each single argument of a tool has to meet, or nil if it cannot be used.
func schemaOf(tool *toolset.Tool) *jsonschema.Resolved {
	var given map[string]any
	if err := json.Unmarshal(tool.Parameters(), &given); err != nil {
		return nil
	}
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
func misfit(tool *toolset.Tool, name, text string) error {
	var s jsonSchema
	_ = json.Unmarshal(tool.Parameters(), &s) // else nothing is known of the field
	field := s.Properties[name]
	want := "what the schema of the tool says"
	switch {
	case field == nil && len(s.Properties) > 0:
		known := slices.Sorted(maps.Keys(s.Properties))
		return cli.Usagef("%s has no argument %q: it has %s", tool.Original, name, printable(strings.Join(known, ", ")))
	case field != nil && field.kind() != anything:
		want = field.kind()
	}
	return cli.Usagef("%s: %q is not %s. %s:=JSON is sent without a check", name, text, want, name)
}
