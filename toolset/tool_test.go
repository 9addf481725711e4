package toolset

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestToolsHaveMetadata(t *testing.T) {
	titled := &mcp.Tool{Name: "read", Title: "Read a file"}
	for name, test := range map[string]struct {
		srv   Filter
		from  *mcp.Tool
		title string
		want  map[string]any
	}{
		"defaults": {
			Filter{Name: "files"},
			&mcp.Tool{Name: "read"}, "read",
			map[string]any{"tool_type": "mcp", "display_name": "read", "server": "files", "slug": "files"},
		},
		"title": {
			Filter{Name: "files"},
			titled, "Read a file",
			map[string]any{"tool_type": "mcp", "display_name": "Read a file", "server": "files", "slug": "files"},
		},
		"title of the annotations": {
			Filter{Name: "files"},
			&mcp.Tool{Name: "read", Annotations: &mcp.ToolAnnotations{Title: "Read!"}}, "Read!",
			map[string]any{"tool_type": "mcp", "display_name": "Read!", "server": "files", "slug": "files"},
		},
		"configured": {
			Filter{Name: "files", DisplayName: "Files", Slug: "f-1", Metadata: map[string]any{"folder_path": "/shared", "server": "x"}},
			titled, "Read a file",
			map[string]any{"tool_type": "mcp", "display_name": "Files", "server": "x", "slug": "f-1", "folder_path": "/shared"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tool := newTool(test.srv, test.from, nil)
			require.Equal(t, test.want, tool.Metadata)
			require.Equal(t, test.title, tool.Title)
			require.Equal(t, "files__read", tool.Name)
			require.Equal(t, "read", tool.Original)
			require.Equal(t, "files", tool.Server)
		})
	}
}

func TestToolThatIsListedTwiceIsTakenOnce(t *testing.T) {
	tools, _ := newTools(Filter{Name: "s"}, []*mcp.Tool{{Name: "a", Title: "first"}, nil, {Name: "a"}, {Name: "b"}})
	require.Len(t, tools, 2)
	require.Equal(t, "first", tools[0].Title)
}

// A tool of which the server says nothing may write.
func TestToolsThatOnlyReadPassTheFilterForThem(t *testing.T) {
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	tools, _ := newTools(Filter{Name: "s", ReadOnly: true, Deny: []string{"denied"}}, []*mcp.Tool{
		{Name: "read", Annotations: reads},
		{Name: "denied", Annotations: reads},
		{Name: "write", Annotations: &mcp.ToolAnnotations{IdempotentHint: true}},
		{Name: "unknown"},
	})
	require.Len(t, tools, 1)
	require.Equal(t, "read", tools[0].Original)
}

func TestParametersAreWhatAPIsAccept(t *testing.T) {
	var none map[string]any
	for name, test := range map[string]struct {
		schema any
		want   string
	}{
		"nil":       {nil, `{"type":"object","properties":{}}`},
		"nil map":   {none, `{"type":"object","properties":{}}`},
		"no object": {true, `{"type":"object","properties":{}}`},
		"no JSON":   {func() {}, `{"type":"object","properties":{}}`},
		"raw":       {json.RawMessage(`{"type":"object","properties":{"n":{"maximum":9007199254740993}}}`), `{"type":"object","properties":{"n":{"maximum":9007199254740993}}}`},
		"struct": {struct {
			Required []string `json:"required"`
		}{[]string{"a"}}, `{"type":"object","properties":{},"required":["a"]}`},
		"no type":      {map[string]any{"properties": map[string]any{"a": true}}, `{"type":"object","properties":{"a":{}}}`},
		"other type":   {map[string]any{"type": []any{"object", "null"}}, `{"type":"object","properties":{}}`},
		"null":         {map[string]any{"type": "object", "properties": nil, "required": nil}, `{"type":"object","properties":{}}`},
		"kept":         {json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false,"$defs":{"x":{"anyOf":[true]}}}`), `{"type":"object","properties":{},"additionalProperties":false,"$defs":{"x":{"anyOf":[{}]}}}`},
		"refused":      {json.RawMessage(`{"enum":[{}],"not":{"required":["a"]},"anyOf":[{"required":["a"]},true]}`), `{"type":"object","properties":{}}`},
		"branches":     {json.RawMessage(`{"properties":{"a":{"type":"string"}},"oneOf":[{"properties":{"a":{"const":"x"},"b":{}}},{"properties":{"b":{},"c":{"const":1}}},{"properties":{"c":{"const":2}}}]}`), `{"type":"object","properties":{"a":{"type":"string"},"b":{},"c":{"anyOf":[{"const":1},{"const":2}]}}}`},
		"reference":    {json.RawMessage(`{"$ref":"#/definitions/X","definitions":{"X":{"properties":{"a":{"$ref":"#/definitions/Y"}},"required":["a"]},"Y":{}}}`), `{"type":"object","properties":{"a":{"$ref":"#/definitions/Y"}},"required":["a"],"definitions":{"X":{"properties":{"a":{"$ref":"#/definitions/Y"}},"required":["a"]},"Y":{}}}`},
		"references":   {json.RawMessage(`{"allOf":[{"$ref":"#/$defs/a~1b%20c"},{"required":["c","a"]}],"anyOf":[{"$ref":"#/$defs/D"}],"required":["a"],"$defs":{"a/b c":{"properties":{"a":{"const":1}},"allOf":[{"properties":{"b":{"const":2}}}]},"D":{"properties":{"d":{"const":3}},"required":["d"]}}}`), `{"type":"object","properties":{"a":{"const":1},"b":{"const":2},"d":{"const":3}},"required":["a","c"],"$defs":{"a/b c":{"properties":{"a":{"const":1}},"allOf":[{"properties":{"b":{"const":2}}}]},"D":{"properties":{"d":{"const":3}},"required":["d"]}}}`},
		"circles":      {json.RawMessage(`{"$ref":"#/$defs/A","$defs":{"A":{"allOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]},"B":{"$ref":"#/$defs/A","properties":{"b":{"const":1}}}}}`), `{"type":"object","properties":{"b":{"const":1}},"$defs":{"A":{"allOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]},"B":{"$ref":"#/$defs/A","properties":{"b":{"const":1}}}}}`},
		"not resolved": {json.RawMessage(`{"$ref":"https://example.com/x","allOf":[{"$ref":"#"},{"$ref":"#/$defs/%"},{"$ref":"#/$defs/no/x"},{"$ref":"#/properties/a"},{}],"properties":{"a":{"properties":{"b":{"const":1}}}}}`), `{"type":"object","properties":{"a":{"properties":{"b":{"const":1}}}}}`},
		"condition":    {json.RawMessage(`{"if":{"properties":{"a":{"const":1}}},"then":{"properties":{"b":{"const":2}},"required":["b"]},"else":{"properties":{"b":{"const":3}}}}`), `{"type":"object","properties":{"a":{"const":1},"b":{"anyOf":[{"const":2},{"const":3}]}}}`},
		"deep":         {json.RawMessage(strings.Repeat(`{"properties":{"a":{"const":1}},"allOf":[`, 40) + `{"properties":{"b":{"const":1}}}` + strings.Repeat(`]}`, 40)), `{"type":"object","properties":{"a":{"const":1}}}`},
		"odd":          {json.RawMessage(`{"type":5,"not":1,"enum":{},"anyOf":[true,{"properties":[]}]}`), `{"type":"object","properties":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := json.Marshal(test.schema)
			text, err := parameters(test.schema)
			require.NoError(t, err)
			require.JSONEq(t, test.want, string(text))
			after, _ := json.Marshal(test.schema)
			require.Equal(t, string(before), string(after), "the schema was changed")
		})
	}
}

func FuzzParameters(f *testing.F) {
	f.Add(`{"type":"string","properties":[],"anyOf":[{"properties":{"a":1}},{"properties":{"a":2}}]}`)
	f.Add(`{"required":[],"not":{},"allOf":[null]}`)
	f.Add(`{"$ref":"#/$defs/a","if":{"$ref":"#/$defs/b"},"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}],"required":["x",{}]},"b":{"properties":{"c":1}}}}`)
	f.Fuzz(func(t *testing.T, schema string) {
		text, err := parameters(json.RawMessage(schema))
		if err != nil {
			return
		}
		var got map[string]any
		require.NoError(t, json.Unmarshal(text, &got))
		require.Equal(t, "object", got["type"])
		require.IsType(t, map[string]any{}, got["properties"])
		for _, refused := range []string{"$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "enum", "not"} {
			require.NotContains(t, got, refused)
		}
		again, err := parameters(text)
		require.NoError(t, err)
		require.JSONEq(t, string(text), string(again), "it is not the same a second time")
	})
}

func TestDefinitions(t *testing.T) {
	tools, _ := newTools(Filter{Name: "s"}, []*mcp.Tool{
		{Name: "b", Description: "Does <b>."},
		{Name: "a", InputSchema: map[string]any{"type": "object", "properties": map[string]any{"x": map[string]any{"type": "string"}}}},
	})
	set := newSet(tools, nil)
	for name, test := range map[string]struct {
		got  []json.RawMessage
		want string
	}{
		"chat": {set.OpenAIChat(), `[
			{"type":"function","function":{"name":"s__a","parameters":{"type":"object","properties":{"x":{"type":"string"}}}}},
			{"type":"function","function":{"name":"s__b","description":"Does <b>.","parameters":{"type":"object","properties":{}}}}]`},
		"responses": {set.OpenAIResponses(), `[
			{"type":"function","name":"s__a","parameters":{"type":"object","properties":{"x":{"type":"string"}}},"strict":false},
			{"type":"function","name":"s__b","description":"Does <b>.","parameters":{"type":"object","properties":{}},"strict":false}]`},
		"anthropic": {set.Anthropic(), `[
			{"name":"s__a","input_schema":{"type":"object","properties":{"x":{"type":"string"}}}},
			{"name":"s__b","description":"Does <b>.","input_schema":{"type":"object","properties":{}}}]`},
		"none": {newSet(nil, nil).Anthropic(), `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(test.got)
			require.NoError(t, err)
			require.JSONEq(t, test.want, string(text))
		})
	}
}
