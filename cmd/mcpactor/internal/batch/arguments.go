package batch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// argumentsFrom reads the arguments of a tool. Those that are a string here are texts, which [Call.fit] may read otherwise.
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

// typesOf returns the types of JSON Schema that a text may be, if it is JSON other than a string.
func typesOf(text string) []string {
	if !json.Valid([]byte(text)) {
		return nil
	}
	switch text[0] {
	case 't', 'f':
		return []string{"boolean"}
	case '[':
		return []string{"array"}
	case '{':
		return []string{"object"}
	case '"', 'n', ' ', '\t', '\r', '\n':
		return nil
	}
	return []string{"number", "integer"}
}

// mayBeJSON reports whether a text may be meant as a number, for example.
func mayBeJSON(arguments map[string]any) bool {
	for _, value := range arguments {
		if text, is := value.(string); is && typesOf(text) != nil {
			return true
		}
	}
	return false
}

// fit makes JSON of the texts for which the tool wants it. If the tool cannot be listed, they stay texts, and the call says why.
func (cmd *Call) fit(ctx context.Context, i *instance, arguments map[string]any) {
	listed, err := i.sup.Client().ListTools(ctx, cmd.Server, cmd.Scope)
	if err != nil {
		return
	}
	var schema struct{ Properties map[string]struct{ Type any } }
	for _, tool := range listed.Result.Tools {
		if tool.Name != cmd.Tool {
			continue
		}
		if data, err := json.Marshal(tool.InputSchema); err != nil || json.Unmarshal(data, &schema) != nil {
			return
		}
	}
	for name, value := range arguments {
		wanted := typesIn(schema.Properties[name].Type)
		fits := func(t string) bool { return slices.Contains(wanted, t) }
		if text, is := value.(string); is && !fits("string") && slices.ContainsFunc(typesOf(text), fits) {
			arguments[name] = json.RawMessage(text)
		}
	}
}

// typesIn returns the types that the field type of a schema names.
func typesIn(field any) (types []string) {
	several, _ := field.([]any)
	for _, one := range append(several, field) {
		if name, is := one.(string); is {
			types = append(types, name)
		}
	}
	return types
}
