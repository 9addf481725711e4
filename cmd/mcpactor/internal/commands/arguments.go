package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
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
	schema := ofOne(parameters)
	if isChecked = schema != nil && !isLeftOut; !isChecked {
		schema = ofOne(typesIn(parameters))
	}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		text, is := arguments[name].(string)
		if !is || schema.Validate(map[string]any{name: text}) == nil {
			continue
		}
		var value any
		if json.Unmarshal([]byte(text), &value) != nil || schemas.CheckValue(value) != nil || schema.Validate(map[string]any{name: value}) != nil {
			return isChecked, misfit(tool, parameters, name, text)
		}
		arguments[name] = json.RawMessage(text)
	}
	return isChecked, nil
}

// ofOne returns the schema that each single argument of a tool has to meet, or nil if it cannot be used.
func ofOne(parameters []byte) *jsonschema.Resolved {
	// Texts are not compared with regular expressions, since Go does not know all of them. No property has a text as its schema.
	parameters = bytes.ReplaceAll(parameters, []byte(`"pattern":"`), []byte(`"unknown":"`))
	var all jsonschema.Schema
	if json.Unmarshal(parameters, &all) != nil {
		return nil
	}
	one := jsonschema.Schema{ // without required, for example, which is about all arguments
		Properties: all.Properties, PatternProperties: all.PatternProperties, AdditionalProperties: all.AdditionalProperties,
		Defs: all.Defs, Definitions: all.Definitions,
	}
	if schemas.Check(&one) != nil {
		return nil
	}
	resolved, err := one.Resolve(nil)
	if err != nil {
		return nil
	}
	return resolved
}

// typesIn returns what a schema says of the types of the arguments, and nothing else.
func typesIn(parameters []byte) []byte {
	var given struct{ Properties map[string]struct{ Type any } }
	json.Unmarshal(parameters, &given) //nolint:errcheck // what cannot be read says nothing
	types := map[string]any{}
	for name, property := range given.Properties {
		only := map[string]any{"type": property.Type}
		if _, err := schemas.Repair(only); err == nil {
			types[name] = only
		}
	}
	text, _ := json.Marshal(map[string]any{"properties": types}) // it was JSON
	return text
}

// misfit returns the error of an argument that the tool cannot take.
func misfit(tool string, parameters []byte, name, text string) error {
	var s jsonSchema
	json.Unmarshal(parameters, &s) //nolint:errcheck // else nothing is known of the field
	field, want := s.Properties[name], "what its schema says"
	switch {
	case field == nil && len(s.Properties) > 0:
		known := slices.Sorted(maps.Keys(s.Properties))
		return cli.Usagef("%s has no argument %q: it has %s", tool, name, cli.Printable(strings.Join(known, ", ")))
	case field != nil && field.kind() != anything:
		want = field.kind()
	}
	return cli.Usagef("%s: %q is not what the tool wants: %s. To send it unchecked, write %s:=JSON", name, text, want, name)
}
