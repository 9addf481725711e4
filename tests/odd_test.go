package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/oddtest"
	"github.com/mcpactor/mcpactor/toolset"
)

// oddVar makes a process an odd server over stdio.
const oddVar = "MCPACTOR_TEST_ODD"

const oddSeed, oddPairs = 7, 150

// runOdd answers calls of tools with the results that are drawn with the seed.
func runOdd() {
	var s oddtest.Server
	s.Follow(oddtest.Some("tools/call", oddPairs, oddSeed))
	s.Pipe(os.Stdin, os.Stdout)
	os.Exit(0)
}

// oddResults returns all odd results, or with -short some of them.
func oddResults() []oddtest.Odd {
	if testing.Short() {
		return oddtest.Some("", 500, oddSeed)
	}
	return oddtest.All("")
}

// withOdd runs a scenario in front of an odd server.
func withOdd(t *testing.T, of func(url string) mcpbridge.Server, scenario func(s *oddtest.Server, sup *supervisor.Supervisor)) {
	t.Helper()
	s := new(oddtest.Server)
	web := httptest.NewServer(s)
	defer func() { web.CloseClientConnections(); web.Close() }()
	sup, err := supervisor.Start(nil, supervisor.Config{Servers: []mcpbridge.Server{of(web.URL)}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer sup.Stop(ctx) // it is stopped below, unless the scenario has failed
	scenario(s, sup)
	require.NoError(t, sup.Stop(ctx))
}

func oddOverHTTP(url string) mcpbridge.Server { return mcpbridge.Server{Name: "s", URL: url + "/mcp"} }

// oddOperation returns an operation with a method.
func oddOperation(method string) messages.Operation {
	return oddOperationOf(messages.To("s", "x"), method)
}

// oddOperationOf returns an operation with a header and a method.
func oddOperationOf(h messages.Header, method string) messages.Operation {
	switch method {
	case "tools/call":
		return &messages.CallTool{Header: h, Params: &mcp.CallToolParams{Name: "first"}}
	case "tools/list":
		return &messages.ListTools{Header: h}
	case "prompts/list":
		return &messages.ListPrompts{Header: h}
	case "resources/list":
		return &messages.ListResources{Header: h}
	case "resources/templates/list":
		return &messages.ListResourceTemplates{Header: h}
	case "resources/read":
		return &messages.ReadResource{Header: h, Params: &mcp.ReadResourceParams{URI: "m00"}}
	case "prompts/get":
		return &messages.GetPrompt{Header: h, Params: &mcp.GetPromptParams{Name: "m00"}}
	}
	return &messages.Complete{Header: h, Params: &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "m00"}}}
}

// faultsOf gets odd results, and returns what is wrong: the request fails, a part beside the odd value is lost, or the value is neither shown
// nor named.
func faultsOf(t *testing.T, sup *supervisor.Supervisor, h messages.Header, all []oddtest.Odd, set func(method, result string)) (faults []string) {
	for _, odd := range all {
		set(odd.Method, odd.Result)
		reply, err := sup.Client().Do(t.Context(), oddOperationOf(h, odd.Method))
		switch {
		case odd.IsFatal():
			require.ErrorIs(t, err, messages.CodeProtocol, odd.Name)
			continue
		case err != nil:
			faults = append(faults, fmt.Sprint(odd.Name, ": ", err))
			continue
		}
		data, err := json.Marshal(reply)
		require.NoError(t, err)
		if h.Verbatim {
			require.Equal(t, odd.Result, string(reply.(messages.Result).GetReceipt().Verbatim), odd.Name)
		}
		remarks := reply.(messages.Result).GetReceipt().Remarks()
		if lost := odd.Lost(string(data), remarks); len(lost) > 0 || !odd.IsShown(string(data), remarks) {
			faults = append(faults, fmt.Sprintf("%s: lost %v: %s %q", odd.Name, lost, data, remarks))
		}
	}
	return faults
}

// Each kind of JSON value in each field of each result: no other part is lost, and what is odd is shown or named.
func TestOddPartOfAResultCostsThatPart(t *testing.T) {
	withOdd(t, oddOverHTTP, func(s *oddtest.Server, sup *supervisor.Supervisor) {
		require.Empty(t, faultsOf(t, sup, messages.To("s", "x"), oddResults(), s.Set))
	})
}

// Who passes a result on gets it as it came, and is refused the same results as anybody else.
func TestOddPartOfAResultIsHandedOnAsItCame(t *testing.T) {
	withOdd(t, oddOverHTTP, func(s *oddtest.Server, sup *supervisor.Supervisor) {
		h := messages.To("s", "x")
		h.Verbatim = true
		require.Empty(t, faultsOf(t, sup, h, oddResults(), s.Set))
	})
}

// Only the versions that a server names decide whether it can be used. What else is odd about its introduction is left out or read as
// what it stands for.
func TestOddPartOfAnIntroductionCostsThatPart(t *testing.T) {
	withOdd(t, oddOverHTTP, func(s *oddtest.Server, sup *supervisor.Supervisor) {
		for i, odd := range oddtest.All("initialize") {
			if odd.IsFatal() {
				continue
			}
			s.Set(odd.Method, odd.Result)
			info, err := sup.Client().Open(t.Context(), "s", fmt.Sprint(i))
			require.NoError(t, err, odd.Name)
			data, err := json.Marshal(info.Server)
			require.NoError(t, err)
			require.Empty(t, odd.Lost(string(data), info.Remarks()), "%s: %s", odd.Name, data)
			require.True(t, odd.IsShown(string(data), info.Remarks()), "%s: %s", odd.Name, data)
		}
	})
	for _, odd := range oddtest.All("initialize") {
		if !odd.IsFatal() {
			continue
		}
		withOdd(t, oddOverHTTP, func(s *oddtest.Server, sup *supervisor.Supervisor) {
			s.Set(odd.Method, odd.Result)
			_, err := sup.Client().Open(t.Context(), "s", "x")
			require.ErrorIs(t, err, messages.CodeProtocol, odd.Name)
		})
	}
}

// A server of protocol 2026-07-28 is one whatever else it says about itself.
func TestOddPartOfADiscoveryCostsThatPart(t *testing.T) {
	for _, odd := range oddtest.Some("server/discover", 40, 1) {
		withOdd(t, oddOverHTTP, func(s *oddtest.Server, sup *supervisor.Supervisor) {
			s.Set(odd.Method, odd.Result)
			info, err := sup.Client().Open(t.Context(), "s", "x")
			require.NoError(t, err, odd.Name)
			want := "2026-07-28"
			if odd.IsFatal() || odd.Path == "supportedVersions" || odd.Path == "supportedVersions[0]" {
				want = "2025-06-18" // of initialize
			}
			require.Equal(t, want, info.Server.ProtocolVersion, odd.Name)
		})
	}
}

// A capability that is named is there, in whatever form: PHP writes an empty object as an empty list.
func TestCapabilityOfAnyFormIsThere(t *testing.T) {
	withOdd(t, oddOverHTTP, func(s *oddtest.Server, sup *supervisor.Supervisor) {
		s.Set("initialize", `{"protocolVersion":"2025-06-18","capabilities":{"tools":[],"prompts":true,"resources":{"subscribe":"true","listChanged":0},"logging":false},`+
			`"serverInfo":{"name":"odd","version":1.0}}`)
		info, err := sup.Client().Open(t.Context(), "s", "x")
		require.NoError(t, err)
		require.Equal(t, &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Prompts: &mcp.PromptCapabilities{}, Resources: &mcp.ResourceCapabilities{Subscribe: true}}, info.Server.Capabilities)
		require.Equal(t, &mcp.Implementation{Name: "odd", Version: "1.0"}, info.Server.ServerInfo)
		require.Equal(t, []string{
			"capabilities.logging is false, and was left out", "capabilities.prompts is true, and is read as {}", "capabilities.resources.listChanged is a number, and is read as false",
			"capabilities.resources.subscribe is a string, and is read as true", "capabilities.tools is a list, and is read as {}", "serverInfo.version is a number, and is shown as text",
		}, info.Odd)
	})
}

func TestOddPartOfAResultCostsThatPartOverOtherTransports(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	for name, of := range map[string]func(string) mcpbridge.Server{
		"HTTP+SSE": func(url string) mcpbridge.Server {
			return mcpbridge.Server{Name: "s", URL: url + "/sse", Transport: mcpbridge.TransportSSE}
		},
		"stdio": func(string) mcpbridge.Server {
			return mcpbridge.Server{Name: "s", Command: program, Env: map[string]string{oddVar: "1"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			withOdd(t, of, func(s *oddtest.Server, sup *supervisor.Supervisor) {
				calls := oddtest.Some("tools/call", oddPairs, oddSeed)
				s.Follow(calls)
				require.Empty(t, faultsOf(t, sup, messages.To("s", "x"), calls, func(string, string) {})) // each call gets the next result
			})
		})
	}
}

// The toolset shows a model what is odd, and names the tools that it leaves out.
func TestOddPartOfAResultIsShownByAToolset(t *testing.T) {
	withOdd(t, oddOverHTTP, func(s *oddtest.Server, sup *supervisor.Supervisor) {
		set, err := toolset.New(sup.System(), sup, toolset.Config{Scope: "x", Servers: []toolset.Filter{{Name: "s"}}})
		require.NoError(t, err)
		defer set.Close()
		for _, odd := range oddtest.Some("tools/call", 60, 1) {
			s.Set(odd.Method, odd.Result)
			result, err := set.Call(t.Context(), "s__first", nil)
			if odd.IsFatal() {
				require.ErrorIs(t, err, messages.CodeProtocol, odd.Name)
				continue
			}
			require.NoError(t, err, odd.Name)
			require.Len(t, set.Outcome(result, nil).Parts, len(result.Result.Content)+structured(result), odd.Name)
		}
	})
	for _, odd := range oddtest.Some("tools/list", 40, 1) {
		withOdd(t, oddOverHTTP, func(s *oddtest.Server, sup *supervisor.Supervisor) {
			s.Set(odd.Method, odd.Result)
			set, err := toolset.New(sup.System(), sup, toolset.Config{Scope: "x", Servers: []toolset.Filter{{Name: "s"}}})
			require.NoError(t, err)
			defer set.Close()
			listed, err := set.Tools(t.Context())
			require.NoError(t, err)
			require.Equal(t, odd.IsFatal(), len(listed.Missing) > 0, odd.Name)
			if odd.IsFatal() {
				return
			}
			if !strings.HasPrefix(odd.Path, "tools") || strings.HasPrefix(odd.Path, "tools[0]") {
				require.NotNil(t, listed.Tool("s__second"), odd.Name)
			}
			if len(listed.Tools) < 2 && odd.Path != "tools" {
				require.NotEmpty(t, listed.LeftOut, odd.Name)
			}
		})
	}
}

// structured is 1 if a result has structured content, which is a part of its own.
func structured(result *messages.ToolResult) int {
	if result.Result.StructuredContent != nil {
		return 1
	}
	return 0
}

// An odd hint permits no replay, and neither do two tools of one name if one of them must not run twice.
func TestOddHintPermitsNoReplay(t *testing.T) {
	tool := func(annotations string) string {
		return `{"name":"first","inputSchema":{"type":"object"},"annotations":` + annotations + `}`
	}
	for tools, may := range map[string]bool{
		tool(`{"readOnlyHint":true}`):                                        true,
		tool(`{"readOnlyHint":"true"}`):                                      false,
		tool(`{"readOnlyHint":1}`):                                           false,
		tool(`{"readOnlyHint":[true]}`):                                      false,
		tool(`{"readOnlyHint":true,"readOnlyHint":"no"}`):                    false,
		tool(`[{"readOnlyHint":true}]`):                                      false,
		tool(`{"idempotentHint":"true","title":5}`):                          false,
		tool(`{"readOnlyHint":true,"title":5}`):                              true,
		tool(`{"readOnlyHint":true}`) + "," + tool(`{"readOnlyHint":false}`): false,
		tool(`{"readOnlyHint":false}`) + "," + tool(`{"readOnlyHint":true}`): false,
	} {
		withOdd(t, oddOverHTTP, func(s *oddtest.Server, sup *supervisor.Supervisor) {
			s.Set("tools/list", `{"tools":[`+tools+`]}`)
			_, err := sup.Client().Do(t.Context(), oddOperation("tools/list"))
			require.NoError(t, err)
			s.Break()
			_, err = sup.Client().Do(t.Context(), oddOperation("tools/call"))
			require.Error(t, err)
			require.Equal(t, may, s.Ran() == 2, "%s: %d, %v", tools, s.Ran(), err)
		})
	}
}

// A server that returns a text in place of a result has carried out the call. The text is what the tool says.
func TestTextInPlaceOfAResultIsTheContent(t *testing.T) {
	withOdd(t, oddOverHTTP, func(s *oddtest.Server, sup *supervisor.Supervisor) {
		s.Set("tools/call", `"not run"`)
		reply, err := sup.Client().CallTool(t.Context(), "s", "x", &mcp.CallToolParams{Name: "first"})
		require.NoError(t, err)
		require.Equal(t, []mcp.Content{&mcp.TextContent{Text: "not run"}}, reply.Result.Content)
		require.Equal(t, []string{"the result is a string, and is shown as its content", "content[0] is a string, and is shown as text"}, reply.Odd)
		require.Equal(t, 1, s.Ran())
	})
}

// Numbers are exact: those that a float64 holds are float64, and any other is a json.Number.
func TestNumbersOfAResultAreExact(t *testing.T) {
	const call = `{"content":[{"type":"text","text":"a","_meta":{"n":9007199254740993}}],"_meta":{"n":9007199254740993},` +
		`"structuredContent":{"id":9007199254740993,"one":1.0,"big":123456789012345678901234567890,"huge":1e400,"tiny":1e-400,"tenth":0.1}}`
	withOdd(t, oddOverHTTP, func(s *oddtest.Server, sup *supervisor.Supervisor) {
		s.Set("tools/call", call)
		s.Set("tools/list", `{"tools":[{"name":"first","inputSchema":{"type":"object","properties":{"n":{"maximum":18446744073709551615,"enum":[9007199254740993,7]}}}}]}`)
		reply, err := sup.Client().CallTool(t.Context(), "s", "x", &mcp.CallToolParams{Name: "first"})
		require.NoError(t, err)
		require.Empty(t, reply.Odd)
		require.Equal(t, map[string]any{
			"id": json.Number("9007199254740993"), "one": 1.0, "big": json.Number("123456789012345678901234567890"),
			"huge": json.Number("1e400"), "tiny": json.Number("1e-400"), "tenth": 0.1,
		}, reply.Result.StructuredContent)
		require.Equal(t, mcp.Meta{"n": json.Number("9007199254740993")}, reply.Result.Meta)
		require.Equal(t, mcp.Meta{"n": json.Number("9007199254740993")}, reply.Result.Content[0].(*mcp.TextContent).Meta)
		listed, err := sup.Client().ListTools(t.Context(), "s", "x")
		require.NoError(t, err)
		schema, err := json.Marshal(listed.Result.Tools[0].InputSchema)
		require.NoError(t, err)
		require.JSONEq(t, `{"type":"object","properties":{"n":{"maximum":18446744073709551615,"enum":[9007199254740993,7]}}}`, string(schema))
		require.Contains(t, string(schema), "18446744073709551615")
		row, _, err := supervisor.CallToolAs[struct{ ID int64 }](t.Context(), sup.Client(), "s", "x", &mcp.CallToolParams{Name: "first"})
		require.NoError(t, err)
		require.EqualValues(t, 9007199254740993, row.ID)
	})
}

// The words of an error are kept, whatever the form of the error.
func TestErrorOfAnyFormReachesItsCaller(t *testing.T) {
	withOdd(t, oddOverHTTP, func(s *oddtest.Server, sup *supervisor.Supervisor) {
		for _, form := range []string{
			`{"code":"E_NOPE","message":"not today"}`, `{"code":-32000.0,"message":"not today"}`, `"not today"`, `["not today"]`, `{"code":1.5,"message":"not today"}`,
			`{"message":"not today"}`, `{"error":"not today"}`, `{"code":null,"message":"not today"}`, `{"code":[],"message":{"en":"not today"}}`, `{"code":-1,"message":"not today","data":9007199254740993}`,
		} {
			s.Fail(form)
			_, err := sup.Client().Do(t.Context(), oddOperation("tools/call"))
			require.ErrorIs(t, err, messages.CodeServerError, form)
			require.ErrorContains(t, err, "not today", form)
		}
	})
}

// A list whose pages do not come to an end is what has come so far, and says that it is incomplete.
func TestListWithAnOddCursorIsIncomplete(t *testing.T) {
	for name, c := range map[string]struct {
		pages      map[string]string // by the cursor of the request, without its quotes
		want       string
		incomplete string
	}{
		"that does not advance":  {map[string]string{"": page("2", "a", "b"), "2": page("2", "a", "b")}, "a b", "page 2 is one that has come before"},
		"that names itself":      {map[string]string{"": page("2", "a"), "2": page("2", "b")}, "a b", "page 2 names a page"},
		"in a circle":            {map[string]string{"": page("x", "a"), "x": page("y", "b"), "y": page("x", "c")}, "a b c", "page 3 names a page"},
		"empty, with more":       {map[string]string{"": page("", "a"), "empty": page("-", "b")}, "a b", ""},
		"empty, at the end":      {map[string]string{"": page("", "a"), "empty": page("", "a")}, "a", ""},
		"empty, after a page":    {map[string]string{"": page("2", "a"), "2": page("", "b"), "empty": page("2", "a")}, "a b", ""},
		"empty, and refused":     {map[string]string{"": page("", "a")}, "a", ""},
		"empty, in any order":    {map[string]string{"": page("", "a", "b"), "empty": page("", "b", "a")}, "a b", ""},
		"empty, with _meta":      {map[string]string{"": page("", "a"), "empty": strings.Replace(page("", "a"), "{", `{"_meta":{"at":2},`, 1)}, "a", ""},
		"empty, then nothing":    {map[string]string{"": page("", "a"), "empty": page("")}, "a", ""},
		"of pages with nothing":  {map[string]string{"": page("2"), "2": page("3"), "3": page("-", "a")}, "a", ""},
		"a number":               {map[string]string{"": strings.Replace(page("2", "a"), `"2"`, `2`, 1)}, "a", "the cursor on page 1 is no text"},
		"null":                   {map[string]string{"": strings.Replace(page("2", "a"), `"2"`, `null`, 1)}, "a", ""},
		"that is refused":        {map[string]string{"": page("2", "a")}, "a", "page 2 failed: invalid cursor"},
		"of a page with no list": {map[string]string{"": page("2", "a"), "2": `{"tools":5}`}, "a", "page 2 failed: the answer could not be decoded"},
		"that is another always": {nil, "", "more than 1000 pages"},
	} {
		t.Run(name, func(t *testing.T) {
			withOdd(t, oddOverHTTP, func(s *oddtest.Server, sup *supervisor.Supervisor) {
				s.Pages(c.pages)
				h := messages.To("s", "x")
				h.Verbatim = true
				listed, err := sup.Client().Do(t.Context(), oddOperationOf(h, "tools/list"))
				require.NoError(t, err)
				reply := listed.(*messages.ToolList)
				var names []string
				for _, tool := range reply.Result.Tools {
					names = append(names, tool.Name)
				}
				require.Equal(t, len(names), bytes.Count(reply.Verbatim, []byte(`"name"`)), "%s", reply.Verbatim)
				if c.pages != nil {
					require.Equal(t, c.want, strings.Join(names, " "))
				}
				require.Contains(t, reply.Incomplete, c.incomplete)
				require.Equal(t, c.incomplete == "", reply.Incomplete == "")
				require.Empty(t, reply.Odd)
			})
		})
	}
}

// The pages before an empty cursor are not lost, whatever the server answers to it. A refusal is the end of the list, and any other
// failure is named.
func TestPagesBeforeAnEmptyCursorAreKept(t *testing.T) {
	failure := func(id string, code int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"it is down"}}`, id, code)
	}
	for name, c := range map[string]struct {
		status     int
		body       string // ID stands for the id
		incomplete string
	}{
		"invalid params":            {200, failure("ID", -32602), ""},
		"400":                       {400, failure("ID", -32000), ""},
		"400 with a null id":        {400, failure("null", -32000), ""},
		"400 without a body":        {400, "", ""},
		"422":                       {422, "", ""},
		"500":                       {500, "", "500"},
		"429":                       {429, "", "429"},
		"an error":                  {200, failure("ID", -32603), "it is down"},
		"null":                      {200, `{"jsonrpc":"2.0","id":ID,"result":null}`, "the result is null"},
		"no list":                   {200, `{"jsonrpc":"2.0","id":ID,"result":{"tools":5}}`, "could not be decoded"},
		"an odd page, as the first": {200, `{"jsonrpc":"2.0","id":ID,"result":` + oddPage + `}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var s oddtest.Server
			s.Pages(map[string]string{"": oddPage})
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if !strings.Contains(string(body), `"cursor":""`) {
					r.Body = io.NopCloser(bytes.NewReader(body))
					s.ServeHTTP(w, r)
					return
				}
				var request struct{ ID json.RawMessage }
				json.Unmarshal(body, &request)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				io.WriteString(w, strings.Replace(c.body, "ID", string(request.ID), 1))
			}))
			defer web.Close()
			withOdd(t, func(string) mcpbridge.Server { return oddOverHTTP(web.URL) }, func(_ *oddtest.Server, sup *supervisor.Supervisor) {
				reply, err := sup.Client().ListTools(t.Context(), "s", "x")
				require.NoError(t, err)
				require.Len(t, reply.Result.Tools, 1)
				require.Equal(t, []string{`tools[0] ("a").title is a number, and was left out`}, reply.Odd)
				require.Contains(t, reply.Incomplete, c.incomplete)
				require.Equal(t, c.incomplete == "", reply.Incomplete == "", reply.Incomplete)
			})
		})
	}
}

// oddPage is a page that names an empty cursor, with an odd title.
const oddPage = `{"tools":[{"name":"a","title":5,"inputSchema":{"type":"object"}}],"nextCursor":""}`

// page is a page of tools, and the cursor of the next one, or "-" for none.
func page(next string, names ...string) string {
	var tools []string
	for _, name := range names {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
	}
	cursor := fmt.Sprintf(`,"nextCursor":%q`, next)
	if next == "-" {
		cursor = ""
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]` + cursor + `}`
}
