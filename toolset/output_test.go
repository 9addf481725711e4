package toolset

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func text(s string) *mcp.TextContent { return &mcp.TextContent{Text: s} }

func TestResultsAreConverted(t *testing.T) {
	size := int64(77)
	png := []byte{1, 2, 3}
	for name, test := range map[string]struct {
		result                      *mcp.CallToolResult
		parts                       int
		text, anthropic, openAIResp string
	}{
		"nil": {
			nil,
			1,
			"(no content)",
			`[{"type":"text","text":"(no content)"}]`, `[{"type":"input_text","text":"(no content)"}]`,
		},
		"nothing": {
			&mcp.CallToolResult{Content: []mcp.Content{nil, (*mcp.TextContent)(nil)}},
			1,
			"(no content)",
			`[{"type":"text","text":"(no content)"}]`, `[{"type":"input_text","text":"(no content)"}]`,
		},
		"error without content": {
			&mcp.CallToolResult{IsError: true},
			1,
			"[tool error]\n(no content)",
			`[{"type":"text","text":"(no content)"}]`, `[{"type":"input_text","text":"[tool error]"},{"type":"input_text","text":"(no content)"}]`,
		},
		"text": {
			&mcp.CallToolResult{Content: []mcp.Content{text("a <b>"), text(" \n"), text("c")}},
			3,
			"a <b>\n \n\nc",
			`[{"type":"text","text":"a <b>"},{"type":"text","text":"(no content)"},{"type":"text","text":"c"}]`,
			`[{"type":"input_text","text":"a <b>"},{"type":"input_text","text":"(no content)"},{"type":"input_text","text":"c"}]`,
		},
		"image": {
			&mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: png, MIMEType: "image/JPG; q=1"}}},
			1,
			"[image image/JPG; q=1, 3 bytes]",
			`[{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"AQID"}}]`,
			`[{"type":"input_image","image_url":"data:image/jpeg;base64,AQID"}]`,
		},
		"images that APIs refuse": {
			&mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: png, MIMEType: "image/svg+xml"}, &mcp.ImageContent{MIMEType: "image/png"}}},
			2,
			"[image image/svg+xml, 3 bytes]\n[image image/png, 0 bytes]",
			`[{"type":"text","text":"[image image/svg+xml, 3 bytes]"},{"type":"text","text":"[image image/png, 0 bytes]"}]`,
			`[{"type":"input_text","text":"[image image/svg+xml, 3 bytes]"},{"type":"input_text","text":"[image image/png, 0 bytes]"}]`,
		},
		"audio": {
			&mcp.CallToolResult{Content: []mcp.Content{&mcp.AudioContent{Data: png, MIMEType: "audio/\nwav"}}},
			1,
			"[audio audio/ wav, 3 bytes]",
			`[{"type":"text","text":"[audio audio/ wav, 3 bytes]"}]`, `[{"type":"input_text","text":"[audio audio/ wav, 3 bytes]"}]`,
		},
		"links": {
			&mcp.CallToolResult{Content: []mcp.Content{
				&mcp.ResourceLink{URI: "file:///a", Name: "a", Title: "A file", Description: "of\nmany", MIMEType: "text/plain", Size: &size},
				&mcp.ResourceLink{URI: "file:///b"},
			}},
			2,
			"[link file:///a text/plain, 77 bytes] a: A file: of many\n[link file:///b]",
			`[{"type":"text","text":"[link file:///a text/plain, 77 bytes] a: A file: of many"},{"type":"text","text":"[link file:///b]"}]`,
			`[{"type":"input_text","text":"[link file:///a text/plain, 77 bytes] a: A file: of many"},{"type":"input_text","text":"[link file:///b]"}]`,
		},
		"resources": {
			&mcp.CallToolResult{Content: []mcp.Content{
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///a", MIMEType: "text/plain", Text: "one\ntwo"}},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///b", MIMEType: "image/png", Blob: png}},
				&mcp.EmbeddedResource{},
			}},
			3,
			"[resource file:///a text/plain]\none\ntwo\n[resource file:///b image/png, 3 bytes]\n[resource]",
			`[{"type":"text","text":"[resource file:///a text/plain]\none\ntwo"},{"type":"text","text":"[resource file:///b image/png, 3 bytes]"},{"type":"text","text":"[resource]"}]`,
			`[{"type":"input_text","text":"[resource file:///a text/plain]\none\ntwo"},{"type":"input_text","text":"[resource file:///b image/png, 3 bytes]"},{"type":"input_text","text":"[resource]"}]`,
		},
		"structured only": {
			&mcp.CallToolResult{StructuredContent: map[string]any{"a": "<1>"}},
			1,
			`{"a":"<1>"}`,
			`[{"type":"text","text":"{\"a\":\"<1>\"}"}]`, `[{"type":"input_text","text":"{\"a\":\"<1>\"}"}]`,
		},
		"of another type": {
			&mcp.CallToolResult{Content: []mcp.Content{&mcp.ToolUseContent{ID: "1", Name: "x"}}},
			1,
			`{"type":"tool_use","id":"1","name":"x","input":{}}`,
			`[{"type":"text","text":"{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"x\",\"input\":{}}"}]`,
			`[{"type":"input_text","text":"{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"x\",\"input\":{}}"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := Convert(test.result)
			require.Len(t, out.Parts, test.parts)
			require.Equal(t, test.result != nil && test.result.IsError, out.IsError)
			require.Equal(t, test.text, out.Text())
			require.JSONEq(t, test.anthropic, string(out.Anthropic()))
			require.JSONEq(t, test.openAIResp, string(out.OpenAIResponses()))
			var chat string
			require.NoError(t, json.Unmarshal(out.OpenAIChat(), &chat))
			require.Equal(t, test.text, chat)
		})
	}
	require.Equal(t, "[]", string(Output{}.Anthropic()))
	require.Equal(t, "[]", string(Output{}.OpenAIResponses()))
	require.Empty(t, Output{}.Text())
}

func TestStructuredContentThatATextSaysAlreadyIsLeftOut(t *testing.T) {
	value := map[string]any{"a": []any{1.0, "x"}, "b": nil}
	for name, test := range map[string]struct {
		text  string
		value any
		out   bool
	}{
		"the same":          {`{"a":[1,"x"],"b":null}`, value, true},
		"in another form":   {"\n{\"b\": null, \"a\": [1.0, \"\\u0078\"]} ", value, true},
		"raw":               {`{"a":1}`, json.RawMessage(`{ "a": 1 }`), true},
		"a string":          {`"x"`, "x", true},
		"false":             {`false`, false, true},
		"other value":       {`{"a":[1,"y"],"b":null}`, value, false},
		"less":              {`{"a":[1,"x"]}`, value, false},
		"no JSON":           {`a: [1, x]`, value, false},
		"more than JSON":    {`{"a":[1,"x"],"b":null} ok`, value, false},
		"text for a string": {`x`, "x", false},
		"unmarshallable":    {`x`, func() {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			out := Convert(&mcp.CallToolResult{Content: []mcp.Content{text("first"), text(test.text)}, StructuredContent: test.value})
			if test.out {
				require.Len(t, out.Parts, 2)
				return
			}
			require.Len(t, out.Parts, 3)
			require.Nil(t, out.Parts[2].Content)
			require.NotEmpty(t, out.Parts[2].Text)
		})
	}
}

func TestPartsKeepWhatTheyWereMadeOf(t *testing.T) {
	content := &mcp.TextContent{Text: "a", Annotations: &mcp.Annotations{Audience: []mcp.Role{"user"}}}
	require.Same(t, content, Convert(&mcp.CallToolResult{Content: []mcp.Content{content}}).Parts[0].Content)
}
