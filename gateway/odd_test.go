package gateway

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/tests/oddtest"
)

// What a server sends reaches a client as it came, whatever is odd about it.
func TestOddResultReachesAClientAsItCame(t *testing.T) {
	s := new(oddtest.Server)
	web := httptest.NewServer(s)
	defer func() { web.CloseClientConnections(); web.Close() }()
	w := newWorld(t, nil, mcpbridge.Server{Name: "s", URL: web.URL + "/mcp"})
	defer w.stop()
	c := w.raw()
	c.open()
	for i, odd := range oddtest.Some("tools/call", 100, 5) {
		s.Set(odd.Method, odd.Result)
		answer := c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"first"}}`, i), fmt.Sprint(i))
		if odd.IsFatal() {
			require.NotNil(t, answer.Error, odd.Name)
			continue
		}
		require.Nil(t, answer.Error, odd.Name)
		require.Equal(t, odd.Result, string(answer.Result), odd.Name)
	}
}

// inFrontOfOdd runs a scenario with a client of a gateway in front of the server "s", and if both is true, of the server "good", too.
func inFrontOfOdd(t *testing.T, s *oddtest.Server, both bool, scenario func(c *raw)) {
	t.Helper()
	web, good := httptest.NewServer(s), httptest.NewServer(new(oddtest.Server))
	defer func() { web.CloseClientConnections(); web.Close(); good.CloseClientConnections(); good.Close() }()
	servers := []mcpbridge.Server{{Name: "s", URL: web.URL + "/mcp"}, {Name: "good", URL: good.URL + "/mcp"}}
	if !both {
		servers = servers[:1]
	}
	w := newWorld(t, nil, servers...)
	defer w.stop()
	c := w.raw()
	c.open()
	scenario(c)
}

// told awaits a log message with a text.
func (r *raw) told(text string) {
	r.await(func(m *mcpserver.Message) bool {
		return m.Method == "notifications/message" && strings.Contains(mcpserver.ObjectOf(m.Params).Text("data"), text)
	})
}

// A client gets a list without what is odd in it, and is told. The other things are as they came.
func TestOddListIsToldToAClient(t *testing.T) {
	s := new(oddtest.Server)
	s.Set("tools/list", `{"tools":[null,{"name":"bad","title":5,"inputSchema":{"type":"object"}},{"name":"good","inputSchema":{"type":"object","properties":{"n":{"maximum":1.0}}},"<later>":1e400}],"nextCursor":7}`)
	inFrontOfOdd(t, s, false, func(c *raw) {
		for range 2 { // the second list is the one that is kept
			answer := c.list("tools/list")
			require.Nil(t, answer.Error)
			require.Equal(t, `{"tools":[{"inputSchema":{"type":"object"},"name":"bad"},{"name":"good","inputSchema":{"type":"object","properties":{"n":{"maximum":1.0}}},"<later>":1e400}]}`, string(answer.Result))
			for _, told := range []string{`s: tools[0] is null, and was left out`, `s: tools[1] ("bad").title is a number, and was left out`, `the list is incomplete: the cursor on page 1 is no text`} {
				c.told(told)
			}
		}
	})
}

// An odd list of one server hides no list of another one: what is odd in it is left out, and a thing has the name that its kind has.
func TestOddListHidesNoOtherList(t *testing.T) {
	for _, odd := range []struct{ method, result, want, told string }{
		{"tools/list", `{"tools":[{"name":"a","inputSchema":{"type":"object"}},null,{"name":5}]}`, `{"name":"s__a","inputSchema":{"type":"object"}}`, "tools[1] is null, and was left out"},
		{"tools/list", `{"tools":[{"title":"t","inputSchema":{"type":"object"}}]}`, ``, "one of the tools has no name, and was left out"},
		{"tools/list", `{"tools":[{"name":"a","title":5,"inputSchema":{"type":"object"}}]}`, `{"name":"s__a","inputSchema":{"type":"object"}}`, `tools[0] ("a").title is a number, and was left out`},
		{"tools/list", `{"tools":[{"name":"a","title":null}]}`, `{"name":"s__a","inputSchema":{"type":"object"}}`, `tools ("a").inputSchema is not that of an object, and was made one`},
		{
			"tools/list", `{"tools":[{"name":"a","inputSchema":{"type":"object"},"outputSchema":5}]}`, `{"name":"s__a","inputSchema":{"type":"object"}}`,
			`tools ("a").outputSchema is not that of an object, and was left out`,
		},
		{"tools/list", `{"tools":[{"name":"a","uri":"ui://a","inputSchema":{"type":"object"}}]}`, `{"name":"s__a","uri":"ui://a","inputSchema":{"type":"object"}}`, ""},
		{"tools/list", `{"tools":{"name":"a","inputSchema":{"type":"object"}}}`, `{"name":"s__a","inputSchema":{"type":"object"}}`, ""},
		{"tools/list", `{"tools":{}}`, ``, ""},
		{"prompts/list", `{"prompts":{"name":"a"}}`, `{"name":"s__a"}`, ""},
		{"prompts/list", `{"prompts":[{"name":"a","uri":"ui://a","arguments":null}]}`, `{"name":"s__a","uri":"ui://a"}`, ""},
		{"resources/list", `{"resources":{"uri":"a:b","name":"c"}}`, `{"uri":"a:b","name":"c"}`, ""},
		{"resources/templates/list", `{"resourceTemplates":{"uriTemplate":"a:{b}","uri":"d:e","name":"c"}}`, `{"uriTemplate":"a:{b}","uri":"d:e","name":"c"}`, ""},
	} {
		t.Run(odd.result, func(t *testing.T) {
			s := new(oddtest.Server)
			s.Set(odd.method, odd.result)
			items := kinds[odd.method].items
			inFrontOfOdd(t, s, true, func(c *raw) {
				answer := c.list(odd.method)
				require.Nil(t, answer.Error)
				var its []json.RawMessage
				require.NoError(t, json.Unmarshal(mcpserver.ObjectOf(answer.Result)[items], &its))
				require.Greater(t, len(its), 1, "those of the other server are there")
				its = its[:len(its)-2]
				if odd.want == "" {
					require.Empty(t, its)
				} else {
					require.Len(t, its, 1)
					require.JSONEq(t, odd.want, string(its[0]))
				}
				if odd.told != "" {
					c.told(odd.told)
				}
			})
		})
	}
}

// A client that decodes the lists of several servers strictly can do so, whatever is odd in one of them.
func TestStrictClientReadsTheListsOfSeveralServers(t *testing.T) {
	for _, odd := range oddtest.Some("tools/list", 60, 7) {
		s := new(oddtest.Server)
		s.Set(odd.Method, odd.Result)
		inFrontOfOdd(t, s, true, func(c *raw) {
			answer := c.list("tools/list")
			require.Nil(t, answer.Error, odd.Name)
			var all mcp.ListToolsResult
			require.NoError(t, json.Unmarshal(answer.Result, &all), odd.Name)
			require.NotContains(t, string(answer.Result), `:null`, odd.Name)
			names := []string{}
			for _, tool := range all.Tools {
				names = append(names, tool.Name)
				require.Equal(t, "object", tool.InputSchema.(map[string]any)["type"], odd.Name)
			}
			require.Subset(t, names, []string{"good__first", "good__second"}, odd.Name)
			require.NotContains(t, names, "s__", odd.Name)
		})
	}
}

// A list that cannot be read is an error, and in front of several servers a log message.
func TestListThatCannotBeReadIsTold(t *testing.T) {
	for method, kind := range kinds {
		s := new(oddtest.Server)
		s.Set(method, `{"`+kind.items+`":5}`)
		inFrontOfOdd(t, s, false, func(c *raw) {
			answer := c.list(method)
			require.NotNil(t, answer.Error, method)
			require.Contains(t, string(answer.Error.Message), "s: ", method)
		})
		inFrontOfOdd(t, s, true, func(c *raw) {
			require.Nil(t, c.list(method).Error, method)
			c.told("s: ")
		})
	}
}
