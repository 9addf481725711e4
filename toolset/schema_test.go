package toolset

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// many renders about 200 KB of elements, separated by commas.
func many(element func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < 200<<10; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(element(i))
	}
	return b.String()
}

// spelled returns one of the spellings of a run of a's in a reference.
func spelled(i int) string {
	var b strings.Builder
	for bit := range 16 {
		if i>>bit&1 == 0 {
			b.WriteString("a")
		} else {
			b.WriteString("%61")
		}
	}
	return b.String()
}

// The time for a schema is linear in its size. Quadratic time would be seconds for some
// of these schemas.
func TestSchemasAreFlattenedInLinearTime(t *testing.T) {
	target := `{"anyOf":[` + strings.Repeat(`{"properties":{"x":{}}},`, 2000) + `{}]}`
	for name, schema := range map[string]string{
		"different schemas of one property": `{"anyOf":[` + many(func(i int) string { return fmt.Sprintf(`{"properties":{"x":{"const":%d}}}`, i) }) + `]}`,
		"names that are required":           `{"allOf":[{"required":[` + many(func(i int) string { return fmt.Sprintf(`"%d"`, i) }) + `]}]}`,
		"names that are required above":     `{"required":[` + many(func(i int) string { return fmt.Sprintf(`"%d"`, i) }) + `],"allOf":[{"required":["a"]}]}`,
		"references to the same": `{"anyOf":[` + many(func(i int) string { return `{"$ref":"#/$defs/` + spelled(i) + `"}` }) +
			`],"$defs":{"` + spelled(0) + `":` + target + `}}`,
		"nested": strings.Repeat(`{"allOf":[`, 3000) + `{}` + strings.Repeat(`]}`, 3000),
	} {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, len(schema), maxSchema)
			began := time.Now()
			text, err := parameters(json.RawMessage(schema))
			require.NoError(t, err)
			require.Less(t, time.Since(began), 5*time.Second)
			require.Less(t, len(text), 2*maxSchema)
			require.NotContains(t, string(text), "left out")
		})
	}
}

// A schema that is too large for a model does not affect other tools.
func TestSchemaThatIsTooLargeIsLeftOut(t *testing.T) {
	large := map[string]any{"type": "object", "description": strings.Repeat("x", maxSchema)}
	tools, _ := newTools(Filter{Name: "s"}, []*mcp.Tool{{Name: "large", InputSchema: large}, {Name: "small"}})
	set := newSet(tools, nil)
	require.JSONEq(t, `{"type":"object","properties":{},"description":"The schema of the arguments is left out: it has more than 262144 bytes."}`,
		string(set.Tool("s__large").Parameters()))
	require.Equal(t, large, set.Tool("s__large").InputSchema)
	require.JSONEq(t, `{"type":"object","properties":{}}`, string(set.Tool("s__small").Parameters()))
	call, err := set.prepare(t.Context(), messages.Header{}, "s__large", `{"a": 1}`)
	require.NoError(t, err)
	require.Equal(t, "large", call.Params.Name)
}

// Neither models nor people get invisible characters.
func TestToolsAreToldOfInVisibleCharacters(t *testing.T) {
	from := &mcp.Tool{
		Name: "re\u200bad", Title: "Read\u202e\na file", Description: "Reads.\n\U000E0049\U000E0067Done ✔\ufe0f.",
		InputSchema: json.RawMessage(`{"properties":{"pa\u200bth":{"description":"a\u2066b\u2069","enum":["x\u00ad",1e400]},"path":true,"نام\u200c":{"title":"می\u200cخواهم"}},"required":["pa\u200bth"]}`),
		Annotations: &mcp.ToolAnnotations{Title: "\u200b"},
	}
	tools, _ := newTools(Filter{Name: "files"}, []*mcp.Tool{from})
	tool := tools[0]
	require.Regexp(t, `^files__re_+ad_[0-9a-f]{8}$`, tool.Name)
	require.Equal(t, from.Name, tool.Original, "it is called by the name that the server knows")
	require.Equal(t, "Read a file", tool.Title)
	require.Equal(t, tool.Title, tool.Metadata["display_name"])
	require.Equal(t, "Reads.\nDone ✔\ufe0f.", tool.Description)
	require.JSONEq(t, `{"type":"object","properties":{"path":{},"نام":{"title":"می\u200cخواهم"}},"required":["path"]}`, string(tool.Parameters()))

	from.Title = "\u200b"
	require.Equal(t, "read", newTool(Filter{Name: "files"}, from, nil).Title)
}

func TestStructuredContentIsComparedInLinearTime(t *testing.T) {
	result := &mcp.CallToolResult{StructuredContent: map[string]any{"x": strings.Repeat("y", 1<<20)}}
	for range 20_000 {
		result.Content = append(result.Content, &mcp.TextContent{Text: "7"})
	}
	began := time.Now()
	require.Len(t, Convert(result).Parts, 20_001)
	require.Less(t, time.Since(began), 10*time.Second)
}
