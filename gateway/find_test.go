package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/listfile"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// finding runs a scenario in front of a server "s" with ten tools, of which a client is shown most at first.
func finding(t *testing.T, most int, lists mcpbridge.Store, scenario func(w *world, e *faults.Server)) {
	t.Helper()
	overHTTP(t, lists, func(w *world, e *faults.Server, _ *faults.Tools) {
		w.cfg.Find = most
		scenario(w, e)
	})
}

func namesOf(t *testing.T, tools []string) (names []string) {
	t.Helper()
	for _, tool := range tools {
		names = append(names, mcpserver.ObjectOf(json.RawMessage(tool)).Text("name"))
	}
	return names
}

// names returns the names of the tools that the client is shown.
func (r *raw) names() []string {
	r.w.Helper()
	return namesOf(r.w.T, r.tools())
}

// calls calls a tool, and returns the text of the result, or of the error.
func (r *raw) calls(tool, arguments string) (text string, isError bool) {
	r.w.Helper()
	answer := r.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
	if answer.Error != nil {
		return answer.Error.Message, true
	}
	var result mcp.CallToolResult
	require.NoError(r.w, json.Unmarshal(answer.Result, &result))
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

func (r *raw) calledWell(tool, arguments string) string {
	r.w.Helper()
	text, isError := r.calls(tool, arguments)
	require.False(r.w, isError, text)
	return text
}

func TestClientWithFewToolsIsShownAll(t *testing.T) {
	for _, most := range []int{0, 10} {
		finding(t, most, nil, func(w *world, _ *faults.Server) {
			r := w.raw()
			r.open()
			require.Len(w, r.names(), 10)
			require.NotContains(w, r.names(), "find_tools")
		})
	}
}

// A tool that a client finds or calls is shown from then on, at the end.
func TestClientIsShownWhatItFindsAndCalls(t *testing.T) {
	finding(t, 9, nil, func(w *world, e *faults.Server) {
		r := w.raw()
		r.open()
		require.Equal(w, []string{"find_tools"}, r.names())
		before := r.tools()
		text := r.calledWell("find_tools", `{"query":"echo","limit":1}`)
		require.Regexp(w, `^Found 1 of 10 tools\. You can call them now\.\n\{.*"name":"echo.*\}$`, text)
		require.NotContains(w, text, "annotations")
		require.Equal(w, 1, r.came()[toolsChanged])
		found := r.tools()
		require.Equal(w, before, found[:1])
		require.Len(w, found, 2)
		name := namesOf(w.T, found)[1]
		require.Contains(w, text, fmt.Sprintf("%q", name))

		require.Equal(w, "1", r.calledWell("count", "{}"), "it was not listed")
		require.Equal(w, 1, r.came()[toolsChanged])
		require.Equal(w, []string{"find_tools", name, "count"}, r.names())
		require.Equal(w, found, r.tools()[:2])
		r.calledWell("count", "{}")
		r.calledWell(name, `{"call":"x"}`)
		r.calledWell("find_tools", `{"query":"echo","limit":1}`)
		require.Zero(w, r.came()[toolsChanged])
		require.Contains(w, r.calledWell("find_tools", `{"query":"zeppelin"}`), "None of 10 tools matches.")

		another := w.raw()
		another.open()
		require.ElementsMatch(w, []string{"find_tools", name, "count"}, another.names(), "these were used last")
	})
}

func TestWrongArgumentsOfFindToolsAreExplained(t *testing.T) {
	finding(t, 1, nil, func(w *world, _ *faults.Server) {
		r := w.raw()
		r.open()
		for _, wrong := range []string{"null", "{}", "7", `{"query":7}`, `{"query":"  "}`, `{"query":"a","limit":"many"}`} {
			text, isError := r.calls("find_tools", wrong)
			require.True(w, isError, wrong)
			require.Contains(w, text, `give {"query": "what the tool should do"}`)
		}
		text := string(r.request("tools/call", `{"name":"find_tools"}`).Result)
		require.Contains(w, text, `"isError":true`)
		for limit, n := range map[string]int{"": 5, `,"limit":0`: 1, `,"limit":-3`: 1, `,"limit":1000`: 10} {
			text := r.calledWell("find_tools", `{"query":"count wait fail echo big"`+limit+`}`)
			require.Contains(w, text, fmt.Sprintf("Found %d of 10", n))
		}
	})
}

// The tools that were used last are shown first, also in a later process: as many as the user says.
func TestToolsUsedLastAreShownInALaterProcess(t *testing.T) {
	lists := &listfile.Store{Folder: t.TempDir()}
	finding(t, 2, lists, func(w *world, _ *faults.Server) {
		r := w.raw()
		r.open()
		for _, tool := range []string{"echo", "count", "big/ro", "echo"} {
			r.calledWell(tool, "{}")
			time.Sleep(2 * usedFor)
		}
		require.Equal(w, []string{"find_tools", "big/ro", "count", "echo"}, r.names())
	})
	for most, want := range map[int][]string{1: {"find_tools", "echo"}, 2: {"find_tools", "big/ro", "echo"}, 9: {"find_tools", "big/ro", "count", "echo"}} {
		finding(t, most, lists, func(w *world, _ *faults.Server) {
			r := w.raw()
			r.open()
			require.Equal(w, want, r.names())
		})
	}
}

// A call before the first list does not hide the tools that others have used.
func TestToolsUsedLastAreShownAfterACall(t *testing.T) {
	lists := &listfile.Store{Folder: t.TempDir()}
	finding(t, 3, lists, func(w *world, _ *faults.Server) {
		r := w.raw()
		r.open()
		r.calledWell("echo", "{}")
	})
	finding(t, 3, lists, func(w *world, _ *faults.Server) {
		r := w.raw()
		r.open()
		r.calledWell("count", "{}")
		require.Equal(w, []string{"find_tools", "count", "echo"}, r.names())
	})
}

// What was used is bounded: the tool that was used longest ago is forgotten.
func TestUsedToolsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &listfile.Store{Folder: t.TempDir()}
		u := newUsed(store, "s", "class")
		for i := range maxUsed + 1 {
			u.note(fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		all := newUsed(store, "s", "class").times()
		require.Len(t, all, maxUsed)
		require.NotContains(t, all, "0")
		require.Empty(t, newUsed(store, "s", "another").times())
	})
}

func TestServerThatCannotBeListedIsNamedInWhatIsFound(t *testing.T) {
	inFront(t, setup{Wait: time.Second, Find: 1}, true, func(w *world, slow *faults.Server) {
		slow.Stop()
		r := w.raw()
		r.open()
		text := r.calledWell("find_tools", `{"query":"count"}`)
		require.Contains(w, text, "Found 2 of 10 tools.")
		require.Contains(w, text, "\nThe tools of server \"slow\" could not be listed: ")
		require.Contains(w, text, "connection refused")
	})
}

// The tool that calls others is there only if the user wants it, and calls only what reads.
func TestCallToolCallsOnlyWhatReads(t *testing.T) {
	finding(t, 1, nil, func(w *world, e *faults.Server) {
		r := w.raw()
		r.open()
		text, isError := r.calls("call_tool", `{"name":"count/ro"}`)
		require.True(w, isError)
		require.Contains(w, text, `unknown tool "call_tool"`)
	})
	finding(t, 1, nil, func(w *world, e *faults.Server) {
		w.cfg.FindCalls = true
		r := w.raw()
		r.open()
		require.Equal(w, []string{"find_tools", "call_tool"}, r.names())
		for arguments, want := range map[string]string{
			`{"name":"count"}`: `"count" may change something`, `{"name":"nothing"}`: `no tool "nothing"`, `{}`: `no tool ""`, `null`: `no tool ""`,
			`{"name":"find_tools"}`: `no tool "find_tools"`, `{"name":"call_tool"}`: `no tool "call_tool"`,
		} {
			text, isError := r.calls("call_tool", arguments)
			require.True(w, isError)
			require.Contains(w, text, want)
		}
		require.Zero(w, e.Count("tools/call"))
		require.Equal(w, "1", r.calledWell("call_tool", `{"name":"count/ro"}`))
		require.Equal(w, "2", r.calledWell("call_tool", `{"name":"count/ro","arguments":null}`))
		require.Equal(w, "x", r.calledWell("call_tool", `{"name":"echo/ro","arguments":{"call":"x"}}`))
		require.Equal(w, []string{"find_tools", "call_tool", "count/ro", "echo/ro"}, r.names())
	})
}

// A client in this process is shown all tools.
func TestClientHereFindsNothing(t *testing.T) {
	finding(t, 1, nil, func(w *world, _ *faults.Server) {
		w.cfg.FindCalls = true
		session := w.dial(w.Server("s", Scope{Ends: true}), nil)
		defer session.Close()
		list, err := session.ListTools(w.Context(), nil)
		require.NoError(w, err)
		require.Len(w, list.Tools, 10)
		_, err = session.CallTool(w.Context(), &mcp.CallToolParams{Name: "find_tools", Arguments: map[string]any{"query": "count"}})
		require.ErrorContains(w, err, "find_tools")
	})
}

// A stateless client is told when it listens, and keeps no list.
func TestStatelessClientFinds(t *testing.T) {
	finding(t, 1, nil, func(w *world, _ *faults.Server) {
		r := w.raw()
		list := func() mcpserver.Object { return resultOf(w, r.ask(stateless("1", "tools/list", ""), "1")) }
		listed := list()
		require.Equal(w, "0", string(listed["ttlMs"]))
		require.Equal(w, "private", listed.Text("cacheScope"))
		r.send(stateless(`"l"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
		r.await(func(m *mcpserver.Message) bool { return m.Method == "notifications/subscriptions/acknowledged" })
		found := resultOf(w, r.ask(stateless("2", "tools/call", `"name":"find_tools","arguments":{"query":"echo","limit":1}`), "2"))
		require.Equal(w, "complete", found.Text("resultType"))
		require.Contains(w, string(found["content"]), "Found 1 of 10")
		r.await(func(m *mcpserver.Message) bool { return m.Method == toolsChanged })
		require.Len(w, toolsIn(w.T, r.ask(stateless("3", "tools/list", ""), "3").Result), 2)
	})
}

// A list is fresh as long as the server says, unless the client may find more.
func TestListOfAClientThatFindsIsNotFresh(t *testing.T) {
	for most, isFresh := range map[int]bool{0: true, 1: false} {
		finding(t, most, nil, func(w *world, e *faults.Server) {
			e.Inject("tools/list", func(rw http.ResponseWriter, req *faults.Request, _ http.Handler) {
				rw.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"result":{"ttlMs":60000,"tools":[%s,%s]}}`, req.ID, defined("a", 1), defined("b", 1))
			})
			list := resultOf(w, w.raw().ask(stateless("1", "tools/list", ""), "1"))
			require.Equal(w, isFresh, string(list["ttlMs"]) != "0")
		})
	}
}

// What a client has found is shown after a restart, and not what others use meanwhile.
func TestWhatAClientHasFoundOutlivesARestart(t *testing.T) {
	overRestarts(t, "", false, func(r *restarts, e *faults.Server, _ *ClientStore) {
		r.cfg.Find = 2
		r.startAgain()
		v, other := r.visitor("one"), r.visitor("two")
		v.says(2, "tools/call", `{"name":"echo"}`)
		shown := v.tools(3)
		require.Equal(r, []string{"find_tools", "echo"}, namesOf(r.T, shown))
		other.says(2, "tools/call", counts)
		r.startAgain()
		require.Equal(r, shown, v.tools(4))
		require.Contains(r, v.says(5, "tools/call", `{"name":"find_tools","arguments":{"query":"big","limit":1}}`), "Found 1 of 10")
		again := v.tools(6)
		require.Equal(r, shown, again[:2])
		require.Len(r, again, 3)
	})
}

// The tools of a server that is added can be found, and those that a filter denies cannot.
func TestToolsOfAServerThatIsAddedAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, end := twoServers()
		defer time.Sleep(3 * time.Second)
		defer end()
		first, second := remote("one", one), remote("two", two)
		w := worldOf(t, setup{Prefixed: true, Find: 10, Tools: filtersOf([]mcpbridge.Server{first})}.with(first))
		defer w.stop()
		r := w.raw()
		r.open()
		all := r.tools()
		require.Len(t, all, 10)
		filters := []toolset.Filter{{Name: "one"}, {Name: "two", Deny: []string{"echo", "echo/ro"}}}
		w.reload(filters, first, second)
		time.Sleep(time.Second)
		require.Positive(t, r.came()[toolsChanged])
		now := r.tools()
		require.Equal(t, all, now[:10])
		require.Equal(t, []string{"find_tools"}, namesOf(t, now[10:]))
		text := r.calledWell("find_tools", `{"query":"echo","limit":20}`)
		require.Contains(t, text, "of 18 tools")
		require.NotContains(t, text, `"two__echo`)
		require.Contains(t, r.calledWell("find_tools", `{"query":"two big"}`), `"two__big"`)
		require.Equal(t, now, r.tools()[:11])
		require.Contains(t, r.names(), "two__big")
		text, isError := r.calls("two__echo", "{}")
		require.True(t, isError)
		require.Contains(t, text, "unknown tool")
	})
}

// In front of a server that has a tool with the name of one of the gateway itself, nobody finds tools: all are listed.
func TestServerWithAToolOfThatNameKeepsIt(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	for _, name := range []string{"find_tools", "other"} {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "that of the server"}}}, nil, nil
		})
	}
	for _, most := range []int{2, 1} {
		w := worldOf(t, setup{Find: most, Tools: []toolset.Filter{{Name: "s"}}}.with(mcpbridge.Server{Name: "s", InMemory: s}))
		r := w.raw()
		r.open()
		require.Equal(t, []string{"find_tools", "other"}, r.names())
		require.Contains(t, r.calledWell("find_tools", `{"query":"other","limit":1}`), "that of the server")
		w.stop()
	}
}

func TestWrongConfigurationOfListsIsNamed(t *testing.T) {
	sup, err := supervisor.Start(actor.NewActorSystem(supervisor.WithSystemLogger(zerolog.Nop())), supervisor.Config{
		Servers: Prepare(mcpbridge.Server{Name: "s", InMemory: faults.NewTools().Server()}),
	})
	require.NoError(t, err)
	defer sup.Stop(t.Context())
	_, err = New(sup, Config{Find: -1, Stability: "never"})
	require.ErrorContains(t, err, "gateway: find: is negative")
	require.ErrorContains(t, err, `gateway: stability: "never" is none of`)
}
