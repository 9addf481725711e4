package results

import (
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// A tool that has failed does not seem to have succeeded because its isError has another form.
func TestIsErrorOfAnotherForm(t *testing.T) {
	for value, want := range map[string]bool{
		`true`: true, `"true"`: true, `" TRUE "`: true, `1`: true, `1.0`: true, `2`: true, `-1`: true, `1e400`: true, `"1"`: true, `"yes"`: true, `"error"`: true, `[true]`: true, `[]`: true, `{}`: true,
		`false`: false, `null`: false, `0`: false, `0.0`: false, `"false"`: false, `" False"`: false, `"0"`: false, `""`: false, `" "`: false,
	} {
		result, odd, err := Decode("tools/call", []byte(`{"content":[],"isError":`+value+`}`))
		require.NoError(t, err, value)
		require.Equal(t, want, result.(*mcp.CallToolResult).IsError, value)
		if value != "true" && value != "false" && value != "null" {
			require.Len(t, odd, 1, value)
			require.Contains(t, odd[0], fmt.Sprint("is read as ", want))
		}
	}
}

// The result of a call that is no object has nothing that decides what becomes of the call: it is shown as the content.
func TestCallResultThatIsNoObjectIsItsContent(t *testing.T) {
	for result, c := range map[string]struct {
		texts []string
		odd   []string
	}{
		`"not run"`:                       {[]string{"not run"}, []string{"the result is a string, and is shown as its content", "content[0] is a string, and is shown as text"}},
		`5`:                               {[]string{"[content that cannot be read: 5]"}, []string{"the result is a number, and is shown as its content", "content[0] is a number, and is shown as text"}},
		`false`:                           {[]string{"[content that cannot be read: false]"}, []string{"the result is false, and is shown as its content", "content[0] is false, and is shown as text"}},
		`[]`:                              {nil, []string{"the result is a list, and is shown as its content"}},
		`["a"]`:                           {[]string{"a"}, []string{"the result is a list, and is shown as its content", "content[0] is a string, and is shown as text"}},
		`[{"type":"text","text":"a"}]`:    {[]string{"a"}, []string{"the result is a list, and is shown as its content"}},
		`" {\"resultType\":\"not_run\"}"`: {[]string{` {"resultType":"not_run"}`}, []string{"the result is a string, and is shown as its content", "content[0] is a string, and is shown as text"}},
	} {
		require.NoError(t, Check("tools/call", []byte(result), true))
		got, odd, err := Decode("tools/call", []byte(result))
		require.NoError(t, err, result)
		require.Equal(t, c.odd, odd)
		var texts []string
		for _, content := range got.(*mcp.CallToolResult).Content {
			texts = append(texts, content.(*mcp.TextContent).Text)
		}
		require.Equal(t, c.texts, texts)
		require.False(t, got.(*mcp.CallToolResult).IsError)
		for _, method := range []string{"tools/list", "resources/read", "prompts/get"} {
			_, _, err := Decode(method, []byte(result))
			require.Error(t, err, "%s %s", method, result)
		}
	}
	require.Error(t, Check("tools/call", []byte(`null`), true), "this is no result")
}

// A list that was asked for, and is no list, is an error. An element alone is a list of one.
func TestMainListOfAnotherForm(t *testing.T) {
	for member, c := range map[string]struct{ method, one string }{
		"tools":             {"tools/list", `{"name":"x","inputSchema":{"type":"object"}}`},
		"prompts":           {"prompts/list", `{"name":"x"}`},
		"resources":         {"resources/list", `{"uri":"x","name":"n"}`},
		"resourceTemplates": {"resources/templates/list", `{"uriTemplate":"x","name":"n"}`},
		"contents":          {"resources/read", `{"uri":"x","text":"t"}`},
		"messages":          {"prompts/get", `{"role":"user","content":{"type":"text","text":"t"}}`},
	} {
		want, _, err := Decode(c.method, []byte(`{"`+member+`":[`+c.one+`]}`))
		require.NoError(t, err)
		got, odd, err := Decode(c.method, []byte(`{"`+member+`":`+c.one+`}`))
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Empty(t, odd)
		for _, value := range []string{`5`, `"x"`, `true`, `{"x":{"description":"d"}}`, `1e400`} {
			_, _, err := Decode(c.method, []byte(`{"`+member+`":`+value+`}`))
			require.Error(t, err, "%s %s", member, value)
		}
		want, _, err = Decode(c.method, []byte(`{"`+member+`":[]}`))
		require.NoError(t, err)
		got, _, err = Decode(c.method, []byte(`{"`+member+`":{}}`))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestRemarkSaysWhatBecameOfABlob(t *testing.T) {
	for contents, want := range map[string]string{
		`{"uri":"u","blob":5}`:            "contents[0] (\"u\").blob is a number, and is shown as text",
		`{"uri":"u","blob":5,"text":"t"}`: "contents[0] (\"u\").blob is a number, and was left out",
	} {
		_, odd, err := Decode("resources/read", []byte(`{"contents":[`+contents+`]}`))
		require.NoError(t, err)
		require.Equal(t, []string{want}, odd)
	}
}

// The elements that can be decoded are kept, however many others there are.
func TestManyOddElementsCostLittle(t *testing.T) {
	const n = 200_000
	result, odd, err := Decode("tools/call", []byte(`{"content":[`+strings.Repeat(`{"type":"text","text":5},`, n)+`{"type":"text","text":"last"}]}`))
	require.NoError(t, err)
	contents := result.(*mcp.CallToolResult).Content
	require.Less(t, len(contents), n/20)
	require.Equal(t, &mcp.TextContent{Text: "last"}, contents[len(contents)-2])
	require.Equal(t, &mcp.TextContent{Text: fmt.Sprintf("[%d more contents that cannot be read]", n+2-len(contents))}, contents[len(contents)-1])
	require.Len(t, odd, maxOdd+1)
}

// Contents do not nest deeper than that of a tool result.
func TestOddContentInManyOthersIsText(t *testing.T) {
	const depth = 100
	_, odd, err := Decode("tools/call", []byte(`{"content":[`+strings.Repeat(`{"type":"tool_result","toolUseId":"i","content":[`, depth)+`{"type":"text","text":5}`+strings.Repeat("]}", depth)+`]}`))
	require.NoError(t, err)
	require.Equal(t, []string{"content[0].content[0] is an object that cannot be read, and is shown as text"}, odd)
}

// A null in an element does not make it odd.
func TestOneOddElementCostsNoOthers(t *testing.T) {
	const n = 5_000
	result, odd, err := Decode("tools/list", []byte(`{"tools":[`+strings.Repeat(`{"name":"a","title":null,"inputSchema":{"default":null}},`, n)+`{"name":"odd","title":5}]}`))
	require.NoError(t, err)
	require.Equal(t, n+1, len(result.(*mcp.ListToolsResult).Tools))
	require.Equal(t, []string{`tools[5000] ("odd").title is a number, and was left out`}, odd)
}

func TestResultOfAToolThatIsNoObjectIsItsContent(t *testing.T) {
	for raw, want := range map[string]string{`5`: "[content that cannot be read: 5]", `"done"`: "done", `[{"type":"text","text":"done"}]`: "done"} {
		result, odd, err := Decode("tools/call", []byte(raw))
		require.NoError(t, err, raw)
		require.Equal(t, []mcp.Content{&mcp.TextContent{Text: want}}, result.(*mcp.CallToolResult).Content, raw)
		require.Contains(t, odd[0], "the result is ", raw)
	}
}
