package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

func decoded(t testing.TB, text string) (schema map[string]any) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	require.NoError(t, d.Decode(&schema), text)
	return schema
}

func TestMalformedSchemaIsRepairedWhereItIsCertain(t *testing.T) {
	for given, want := range map[string]string{
		// required in the wrong place, of MCP servers and of draft 3
		`{"properties":{"coin":{"type":"string"},"required":["coin"]}}`:                   `{"properties":{"coin":{"type":"string"}},"required":["coin"]}`,
		`{"properties":{"a":{},"required":["a","b"]},"required":["b"]}`:                   `{"properties":{"a":{}},"required":["b","a"]}`,
		`{"properties":{"a":{"properties":{"b":{},"required":["b"]}}}}`:                   `{"properties":{"a":{"properties":{"b":{}},"required":["b"]}}}`,
		`{"properties":{"a":{"type":"string","required":true},"b":{"required":false}}}`:   `{"properties":{"a":{"type":"string"},"b":{}},"required":["a"]}`,
		`{"properties":{"a":{},"type":"object","description":"d","minProperties":1}}`:     `{"properties":{"a":{}},"type":"object","description":"d","minProperties":1}`,
		`{"properties":{"required":{"type":"boolean"},"type":{"enum":["x"]},"items":{}}}`: `{"properties":{"required":{"type":"boolean"},"type":{"enum":["x"]},"items":{}}}`,
		`{"required":["a","a"]}`: `{"required":["a"]}`,
		// types
		`{"type":"OBJECT","properties":{"a":{"type":"STRING"},"b":{"type":["Integer","NULL"]}}}`: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["integer","null"]}}}`,
		`{"type":["string","str",null]}`: `{"type":["string","null"]}`,
		`{"type":"any"}`:                 `{}`,
		`{"type":["string","any"]}`:      `{}`,
		`{"type":[]}`:                    `{}`,
		// nulls, and the empty lists of PHP
		`{"type":null,"properties":null,"required":null,"description":null,"items":null,"anyOf":null,"default":null,"const":null}`: `{"default":null,"const":null}`,
		`{"properties":{"a":null,"b":true,"c":[],"d":false}}`:                                                                      `{"properties":{"a":{},"b":{},"c":{},"d":false}}`,
		`{"properties":[],"$defs":[],"anyOf":[],"required":[],"enum":[]}`:                                                          `{}`,
		`{"additionalProperties":true,"items":false}`:                                                                              `{"additionalProperties":true,"items":false}`,
		`{"type":["NULL","array"]}`:                                                                                                `{"type":["null","array"],"items":{}}`,
		// earlier drafts
		`{"minimum":0,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}`: `{"exclusiveMinimum":0,"maximum":9}`,
		`{"exclusiveMinimum":true}`: `{}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"STRING"}],"additionalItems":false}`: `{"prefixItems":[{"type":"string"}],"items":false}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"type":"string"}}`:                           `{"$schema":"http://json-schema.org/draft-07/schema#","items":{"type":"string"}}`,
		`{"type":"array","items":[]}`: `{"type":"array","items":{}}`,
		`{"type":"array"}`:            `{"type":"array","items":{}}`,
		`{"examples":{"a":1}}`:        `{"examples":[{"a":1}]}`,
		// texts
		`{"description":5,"title":{"a":["b"]},"$comment":true}`: `{"description":"5","title":"{\"a\":[\"b\"]}","$comment":"true"}`,
		// what is no schema, or has no keyword of ours, stays
		`{"default":{"type":"OBJECT"},"const":{"required":true},"enum":[{"items":[1]}],"x-own":null,"maximum":9007199254740993}`: `{"default":{"type":"OBJECT"},"const":{"required":true},"enum":[{"items":[1]}],"x-own":null,"maximum":9007199254740993}`,
	} {
		schema := decoded(t, given)
		_, err := Repair(schema)
		require.NoError(t, err, given)
		got, err := json.Marshal(schema)
		require.NoError(t, err)
		require.Equal(t, decoded(t, want), decoded(t, string(got)), given)
		_, err = Repair(schema)
		require.NoError(t, err)
		again, err := json.Marshal(schema)
		require.NoError(t, err)
		require.Equal(t, string(got), string(again), "a second time changes nothing: %s", given)
	}
	for given, want := range map[string]string{
		`{"properties":{"a":{"type":"strng"}}}`:            `properties.a.type: "strng" is no type of JSON Schema`,
		`{"type":["string",{"a":5}]}`:                      `type: {"a":5} is no type of JSON Schema`,
		`{"properties":{"a":{"items":{"anyOf":[{},5]}}}}`:  "properties.a.items.anyOf[1]: 5 is no schema",
		`{"properties":{"a":"the coin"}}`:                  `properties.a: "the coin" is no schema`,
		`{"properties":{"a":["x"]}}`:                       `properties.a: ["x"] is no schema`,
		`{"properties":{"required":["a"]},"required":"a"}`: `properties.required: ["a"] is no schema`,
		`{"required":[5]}`:                                 "required: 5 is no name of a property",
		`{"minLength":"five"}`:                             `minLength: "five" is not what JSON Schema has there`,
		`{"minLength":"` + strings.Repeat("é", 500) + `"}`: `minLength: "` + strings.Repeat("é", 99) + ` is not`,
		`{"uniqueItems":"yes"}`:                            `uniqueItems: "yes" is not`,
		`{"enum":"a"}`:                                     `enum: "a" is not`,
		`{"pattern":5}`:                                    "pattern: 5 is not",
		// the types of properties that have the names of keywords
		`{"properties":{"title":"string","description":"String"}}`: `properties.description: "String" is no schema`,
		`{"properties":{"format":"string","a":{}}}`:                `properties.format: "string" is no schema`,
		`{"properties":{"type":"string"}}`:                         `properties.type: "string" is no schema`,
	} {
		_, err := Repair(decoded(t, given))
		require.ErrorContains(t, err, want, given)
	}
}

// Each kind of value in each keyword, at three depths, becomes a schema that another reader takes, or an error that names it.
func TestEachValueOfEachKeywordIsRepairedOrNamed(t *testing.T) {
	values := []string{`null`, `true`, `false`, `5`, `-1.5`, `""`, `"x"`, `"STRING"`, `[]`, `["a","a"]`, `[5]`, `[null]`, `[{}]`, `[{"type":"INT"}]`, `{}`, `{"a":{"type":"Bool"}}`, `{"a":5}`, `{"a":null}`, `{"required":["a"]}`}
	repaired, named := 0, 0
	for _, keyword := range slices.Sorted(maps.Keys(shapes)) {
		for _, value := range values {
			for _, place := range []string{`{%q:%s}`, `{"properties":{"p":{%q:%s}}}`, `{"anyOf":[{"items":{%q:%s}}]}`} {
				text := fmt.Sprintf(place, keyword, value)
				schema := decoded(t, text)
				if _, err := Repair(schema); err != nil {
					named++
					require.Contains(t, strings.ToLower(err.Error()), strings.ToLower(keyword), text) // a list of items is prefixItems
					continue
				}
				repaired++
				data, err := json.Marshal(schema)
				require.NoError(t, err)
				var read jsonschema.Schema
				if value != `-1.5` { // which that reader refuses for counts
					require.NoError(t, json.Unmarshal(data, &read), "%s became %s", text, data)
				}
			}
		}
	}
	require.Greater(t, repaired, 1000)
	require.Greater(t, named, 500)
}

func TestReferenceThatLeadsToNothingIsFound(t *testing.T) {
	for text, want := range map[string]string{
		`{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{}}}`:            "",
		`{"properties":{"a":{"$ref":"#"},"b":{"$ref":"#/properties/a"}}}`:       "",
		`{"properties":{"a":{"$anchor":"x"},"b":{"$ref":"#x"}}}`:                "",
		`{"default":{"$ref":"#/no"},"properties":{"$ref":{"type":"string"}}}`:   "",
		`{"properties":{"a":{"$ref":"#/$defs/B"}},"$defs":{"A":{}}}`:            "#/$defs/B",
		`{"properties":{"a":{"anyOf":[{"$ref":"https://schemas.example/a"}]}}}`: "https://schemas.example/a",
	} {
		schema := decoded(t, text)
		references, err := Repair(schema)
		require.NoError(t, err)
		require.Equal(t, want, Missing(schema, references), text)
	}
}
