package schemas

import (
	"bytes"
	"encoding/json"
	"slices"
)

const (
	// maxSchema and maxArguments bound what CheckArguments compares, in bytes, and maxLevels how deep both are nested: what the validator
	// does may double with each level.
	maxSchema, maxArguments, maxLevels = 64 << 10, 1 << 20, 8
	// maxSchemaLevels bounds how deep a schema is nested.
	maxSchemaLevels = 32
)

// drafts are the drafts that the validator knows. A schema without one is of the last.
var drafts = []string{"", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"}

// CheckArguments returns why the arguments of a call do not fit the input schema of its tool. It returns nil as well if it cannot know that: the
// server checks them. The schema is repaired as for models, see [Repair]. Arguments that are missing or null are those of an empty object.
func CheckArguments(schema, arguments json.RawMessage) error {
	if len(schema) > maxSchema || len(arguments) > maxArguments {
		return nil
	}
	if text := bytes.TrimSpace(arguments); len(text) == 0 || string(text) == "null" {
		arguments = json.RawMessage("{}")
	}
	var value any
	if json.Unmarshal(arguments, &value) != nil || !fits(value, maxLevels) {
		return nil
	}
	root := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber()
	if decoder.Decode(&root) != nil || !fits(root, maxSchemaLevels) {
		return nil
	}
	if draft, _ := root["$schema"].(string); !slices.Contains(drafts, draft) {
		return nil
	}
	if _, err := Repair(root); err != nil {
		return nil
	}
	resolved, err := Resolve(root)
	if err != nil {
		return nil
	}
	return Validate(resolved, arguments, "arguments")
}
