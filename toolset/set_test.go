package toolset

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestArgumentsOfACall(t *testing.T) {
	tools, _ := newTools(Filter{Name: "s", Scope: "scope"}, []*mcp.Tool{{Name: "read file"}})
	set := newSet(tools, nil)
	name := set.Tools[0].Name
	var none map[string]string
	var nothing *struct{}
	for label, test := range map[string]struct {
		arguments any
		want      string // empty for an error
	}{
		"nil":             {nil, `{}`},
		"nil map":         {none, `{}`},
		"nil pointer":     {nothing, `{}`},
		"map":             {map[string]any{"a": 1}, `{"a":1}`},
		"struct":          {struct{ A int }{1}, `{"A":1}`},
		"raw":             {json.RawMessage(" {\"a\":9007199254740993}\n"), `{"a":9007199254740993}`},
		"bytes":           {[]byte(`{"a":1}`), `{"a":1}`},
		"string":          {`{"a":1}`, `{"a":1}`},
		"empty raw":       {json.RawMessage(nil), `{}`},
		"empty string":    {" ", `{}`},
		"null":            {json.RawMessage("null"), `{}`},
		"array":           {json.RawMessage(`[1]`), ""},
		"array value":     {[]int{1}, ""},
		"number":          {1, ""},
		"text":            {"read it", ""},
		"cut":             {`{"a":`, ""},
		"more than one":   {`{} {}`, ""},
		"what is no JSON": {map[string]any{"a": func() {}}, ""},
	} {
		t.Run(label, func(t *testing.T) {
			var call *messages.CallTool
			arguments, err := marshaled(t.Context(), name, test.arguments)
			if err == nil {
				call, err = set.prepare(t.Context(), messages.Header{}, name, arguments)
			}
			if test.want == "" {
				require.ErrorIs(t, err, messages.CodeInvalid)
				require.ErrorContains(t, err, ": invalid: arguments: are not a JSON object")
				require.Nil(t, call)
				return
			}
			require.NoError(t, err)
			require.Equal(t, messages.Key{Server: "s", Scope: "scope"}, call.Key)
			require.Equal(t, "read file", call.Params.Name)
			require.Equal(t, test.want, string(call.Params.Arguments.(json.RawMessage)))
		})
	}
}

func TestArgumentsAreCopied(t *testing.T) {
	raw := json.RawMessage(`{"a":1}`)
	arguments, err := argumentsOf(raw)
	require.NoError(t, err)
	raw[2] = 'b'
	require.Equal(t, `{"a":1}`, string(arguments))
}

func TestUnknownNameIsInvalidAndBounded(t *testing.T) {
	for name, test := range map[string]struct {
		set  *Set
		name string
		want string
	}{
		"empty":   {&Set{}, "a\nb", `tools/call: invalid: no tool has the name "a\nb"`},
		"missing": {newSet(nil, []*messages.Failure{{Key: messages.Key{Server: "x"}, Code: messages.CodeServerError}}), "a", `tools/call: invalid: no tool has the name "a"`},
		"long":    {newSet(nil, nil), strings.Repeat("x", 1000), `tools/call: invalid: no tool has the name "` + strings.Repeat("x", 100) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.set.prepare(t.Context(), messages.Header{}, test.name, nil)
			require.ErrorIs(t, err, messages.CodeInvalid)
			require.EqualError(t, err, test.want)
			require.Nil(t, test.set.Tool(test.name))
		})
	}
}
