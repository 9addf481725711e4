package schemas

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

// chain returns a schema with n references in a row.
func chain(n int, last string) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/s0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"s%d":{"$ref":"#/$defs/s%d"},`, i, i+1)
	}
	fmt.Fprintf(&b, `"s%d":%s}}`, n, last)
	return b.String()
}

// doubled returns a schema that applies 2^n schemas to one value.
func doubled(n int) string {
	s := `true`
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"s%d":{"allOf":[{"$ref":"#/$defs/s%d"},{"$ref":"#/$defs/s%d"}]},`, i, i+1, i+1)
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/s0","$defs":{%s"s%d":%s}}`, b.String(), n, s)
}

func TestSchemaThatDoesNotEndIsRefused(t *testing.T) {
	for _, test := range [][2]string{
		{`{"$ref":"#"}`, "it refers to itself without an end"},
		{`{"$REF":"#"}`, "it refers to itself"}, // the validator ignores case
		{`{"type":"object","allOf":[{"$ref":"#"}]}`, "it refers to itself"},
		{`{"not":{"$ref":"#"}}`, "it refers to itself"},
		{`{"if":{},"then":{"anyOf":[{"$ref":"#"}]}}`, "it refers to itself"},
		{`{"dependentSchemas":{"a":{"$ref":"#"}}}`, "it refers to itself"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"$ref":"#"}}}`, "it refers to itself"},
		{`{"$defs":{"a/b":{"$ref":"#/$defs/c"},"c":{"$ref":"#/$defs/a~1b"}}}`, "it refers to itself"},
		{`{"properties":{"a":{"$anchor":"x","oneOf":[{"$ref":"#x"}]}}}`, "it refers to itself"},
		{`{"$dynamicAnchor":"x","$dynamicRef":"#x"}`, "it refers to itself"},
		{`{"properties":{"a":{"$ref":"#/properties/b"},"b":{"prefixItems":[{"$ref":"#/properties/b/prefixItems/0"}]}}}`, "it refers to itself"},
		{`{"$ref":"https://x/y"}`, `something else than #, #/… or #anchor: "https://x/y"`},
		{`{"$ref":"#missing"}`, "something else"},
		{`{"$ref":"#/$defs/a"}`, "something else"},
		{`{"$ref":"#/title/a","title":"b"}`, "something else"},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$id":"https://x/y"}}}`, "embeds a schema"},
		{chain(200, `{}`), "lead further than 100 schemas"},
		{chain(50, `{"$ref":"#/$defs/s7"}`), "it refers to itself"},
		{doubled(20), "more than 10000 schemas"},

		{`true`, ""},
		{`{"properties":{"children":{"items":{"$ref":"#"}},"$ref":{"type":"string"},"$id":{"type":"string"}}}`, ""},
		{`{"$id":"https://x/y","$ref":"#/$defs/a","$defs":{"a":{"$anchor":"a"},"b":{"allOf":[{"$ref":"#a"},{"$ref":"#a"}]}}}`, ""},
		{`{"properties":{"a":{"$id":"https://x/y"}}}`, ""},
		{chain(20, `{"type":"object"}`), ""},
		{doubled(8), ""},
	} {
		text, want := test[0], test[1]
		var schema jsonschema.Schema
		require.NoError(t, json.Unmarshal([]byte(text), &schema), text)
		err := Check(&schema)
		if want == "" {
			require.NoError(t, err, text)
			resolved, err := schema.Resolve(nil)
			require.NoError(t, err, text)
			_ = resolved.Validate(map[string]any{"a": []any{}}) // ends
			continue
		}
		require.ErrorContains(t, err, want, text)
	}
}

func TestValueThatIsNestedTooDeeplyIsRefused(t *testing.T) {
	var value any = 1
	for range maxNesting {
		value = []any{map[string]any{"a": value}}[0]
	}
	require.NoError(t, CheckValue(value))
	require.ErrorContains(t, CheckValue([]any{value}), "nested more than 200 times")
}

// The stack of a validator is bounded: no schema that passes overflows it with a value that passes.
func TestDeepestSchemaAndValueEnd(t *testing.T) {
	var schema jsonschema.Schema
	require.NoError(t, json.Unmarshal([]byte(chain(maxChain-3, `{"additionalProperties":{"$ref":"#"}}`)), &schema))
	require.NoError(t, Check(&schema))
	resolved, err := schema.Resolve(nil)
	require.NoError(t, err)
	var value any = 1
	for range maxNesting {
		value = map[string]any{"a": value}
	}
	require.NoError(t, CheckValue(value))
	require.NoError(t, resolved.Validate(value))
}

// FuzzCheck looks for a schema that passes, and does not end.
func FuzzCheck(f *testing.F) {
	f.Add(`{"$ref":"#"}`)
	f.Add(`{"$dynamicAnchor":"x","properties":{"a":{"$dynamicRef":"#x"}},"$defs":{"b":{"$ref":"#x"}}}`)
	f.Add(`{"$id":"x","$ref":"#/$defs/a","$defs":{"a":{"$anchor":"a","allOf":[{"if":{"$ref":"#a"}}]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var schema jsonschema.Schema
		if json.Unmarshal([]byte(text), &schema) != nil {
			return
		}
		if resolved, err := schema.Resolve(nil); err == nil && Check(&schema) == nil {
			_ = resolved.Validate(map[string]any{"a": map[string]any{"a": []any{1.0}}}) // ends
		}
	})
}
