package exec

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

func TestToolsAreListedAndCalledBySafeName(t *testing.T) {
	one := servertest.NewTools("a", "b")
	servertest.AddTool(one, &mcp.Tool{Name: "c.d", Description: "does c"})
	inMemory(t, map[string]*mcp.Server{"one": one, "two": servertest.NewTools("a")}, func(t *testing.T, i *inputs.Instance, _ *toolsets) {
		tools := newToolsets(i.Toolset, []toolset.Filter{
			{Name: "one", Deny: []string{"b"}, Metadata: map[string]any{"team": "core"}}, {Name: "two"}, {Name: "gone"},
		})
		defer tools.closeAll()
		hashed := toolset.SafeName("one", "c.d")
		responses := responsesTo(t, i, tools, 1, `{"id":"1","op":"tools","scope":"x"}`+"\n"+
			fmt.Sprintf(`{"id":"2","name":%q,"scope":"x","arguments":{"n":1}}`+"\n", hashed)+
			`{"id":"3","name":"one__b","scope":"x"}`+"\n"+`{"id":"4","name":"two__a","scope":"y"}`+"\n"+
			`{"id":"5","op":"tools","scope":"x\n"}`)
		byID := map[string]map[string]any{}
		for _, a := range responses {
			byID[a["id"].(string)] = a
		}
		list := byID["1"]["result"].(map[string]any)
		var names []string
		for _, tool := range list["tools"].([]any) {
			names = append(names, tool.(map[string]any)["name"].(string))
		}
		require.Equal(t, []string{"one__a", hashed, "two__a"}, names)
		tool := list["tools"].([]any)[1].(map[string]any)
		require.Equal(t, map[string]any{
			"name": hashed, "server": "one", "tool": "c.d", "description": "does c",
			"inputSchema": map[string]any{"type": "object", "additionalProperties": true},
			"metadata":    map[string]any{"tool_type": "mcp", "server": "one", "slug": "one", "display_name": "c.d", "team": "core"},
		}, tool)
		missing := list["missing"].([]any)[0].(map[string]any)
		require.Equal(t, "gone", missing["server"])
		require.Contains(t, missing["error"], "unknown_server")

		require.Equal(t, "c.d", text(byID["2"]))
		require.Equal(t, "invalid", byID["3"]["code"], "the tool is denied")
		require.Contains(t, byID["3"]["error"], `no tool has the name "one__b"`)
		require.Equal(t, "a", text(byID["4"]), "the tools are listed first")
		require.Equal(t, "invalid", byID["5"]["code"])
	})
}

// A call by a safe name is scheduled with the other calls of the owner.
func TestOwnerOfASafeName(t *testing.T) {
	long := strings.Repeat("n", 60)
	tools := newToolsets(nil, []toolset.Filter{
		{Name: "one"}, {Name: "one.b"}, {Name: "a"}, {Name: "a__b"}, {Name: "x.y"}, {Name: "x_y"}, {Name: long},
	})
	for name, want := range map[string]string{
		toolset.SafeName("one", "t"):                      "one",
		toolset.SafeName("one", "t t"):                    "one",
		toolset.SafeName("one", strings.Repeat("t", 100)): "one",
		toolset.SafeName("one.b", "t"):                    "one.b",
		toolset.SafeName("a", "t"):                        "a",
		toolset.SafeName("a__b", "t"):                     "", // it fits a, too
		toolset.SafeName("x.y", "t"):                      "", // it fits x_y, too
		toolset.SafeName(long, "t"):                       long,
		toolset.SafeName("two", "t"):                      "",
		"one_t":                                           "",
		"":                                                "",
	} {
		require.Equal(t, want, tools.owner(name), name)
	}
}

func TestScheduleOfCallsByNameAndLists(t *testing.T) {
	for name, c := range map[string]struct {
		requests []string
		parallel int
		want     string
		took     time.Duration
	}{
		"calls of one server run in order": {
			[]string{`"server":"s","tool":"slow"`, `"name":"s__fast"`}, 1, "1 2", time.Second,
		},
		"calls of other servers run at the same time": {
			[]string{`"server":"s","tool":"slow"`, `"name":"other__fast"`}, 1, "2 1", time.Second,
		},
		"calls of one server run in parallel up to the limit": {
			[]string{`"name":"s__slow"`, `"name":"s__fast"`}, 2, "2 1", time.Second,
		},
		"a list waits for the earlier requests of its scope, and the later ones wait for it": {
			[]string{`"server":"s","tool":"slow"`, `"op":"tools"`, `"server":"other","tool":"fast"`, `"server":"s","tool":"fast","scope":"x"`}, 3, "4 1 2 3", time.Second,
		},
		"a call by a name that fits no server waits as a list does": {
			[]string{`"server":"s","tool":"slow"`, `"name":"nobody__fast"`, `"server":"other","tool":"fast"`}, 1, "1 2 3", time.Second,
		},
		"requests are cancelled before they start": {
			[]string{`"server":"s","tool":"slow"`, `"op":"tools"`, `"name":"s__fast"`, `"op":"cancel","target":"2"`, `"op":"cancel","target":"3"`}, 1, "4 3 5 1 2", time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, map[string]*mcp.Server{"s": servertest.NewTools("slow", "fast"), "other": servertest.NewTools("fast")}, func(t *testing.T, i *inputs.Instance, tools *toolsets) {
				_, err := tools.list(t.Context(), "default")
				require.NoError(t, err)
				var requests strings.Builder
				for i, fields := range c.requests {
					fmt.Fprintf(&requests, `{"id":"%d",%s}`+"\n", i+1, fields)
				}
				began := time.Now()
				lines := responsesTo(t, i, tools, c.parallel, requests.String())
				require.Equal(t, c.took, time.Since(began))
				require.Equal(t, c.want, strings.Join(sequence(lines), " "))
			})
		})
	}
}

func TestToolsetsAreBoundedAndCloseWithTheirScope(t *testing.T) {
	inMemory(t, map[string]*mcp.Server{"s": servertest.NewTools("a")}, func(t *testing.T, i *inputs.Instance, tools *toolsets) {
		before := i.Running.System().EventStream.Length()
		open := func() int { return int(i.Running.System().EventStream.Length() - before) }
		use := func(scope string) *scopeToolset {
			st, err := tools.acquire(t.Context(), scope)
			require.NoError(t, err)
			return st
		}
		held := use("held")
		for i := range maxToolsets - 1 {
			tools.release(use(fmt.Sprint(i)))
		}
		tools.release(use("0"))
		require.Equal(t, maxToolsets, open())
		tools.release(use("one more"))
		require.Equal(t, maxToolsets+1, open(), "a toolset in use is not closed")
		require.NotContains(t, tools.scopes, "held")
		tools.release(held)
		require.Equal(t, maxToolsets, open())
		tools.release(use("and more"))
		require.Contains(t, tools.scopes, "0", "it has been used again")
		require.NotContains(t, tools.scopes, "1")

		responsesTo(t, i, tools, 1, `{"id":"1","op":"close_scope","scope":"2"}`)
		require.NotContains(t, tools.scopes, "2")
		require.Len(t, tools.scopes, maxToolsets-1)
		responsesTo(t, i, tools, 1, `{"id":"1","op":"close_all"}`)
		require.Zero(t, open())
	})
}

func TestNewToolsetsUseTheReplacedServers(t *testing.T) {
	inMemory(t, map[string]*mcp.Server{"s": servertest.NewTools("a", "b")}, func(t *testing.T, i *inputs.Instance, tools *toolsets) {
		held, err := tools.acquire(t.Context(), "x")
		require.NoError(t, err)
		tools.replace([]toolset.Filter{{Name: "s", Allow: []string{"b"}}})
		set, err := held.Tools(t.Context())
		require.NoError(t, err, "a toolset in use stays open")
		require.Len(t, set.Tools, 2)
		tools.release(held)
		_, err = held.Tools(t.Context())
		require.ErrorIs(t, err, messages.CodeClosed)
		set, err = tools.list(t.Context(), "x")
		require.NoError(t, err)
		require.Len(t, set.Tools, 1)
	})
}

func TestACancelledRequestListsNothing(t *testing.T) {
	tools := newToolsets(nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := tools.list(ctx, "x")
	require.ErrorIs(t, err, messages.CodeCancelled)
	ctx, cancel = context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err = tools.call(ctx, "x", "s__t", nil)
	require.ErrorIs(t, err, messages.CodeDeadline)
}

// The time that a request may be quiet is for tools of a server and for safe names.
func TestRequestEndsWhenNothingWasHeardOfIt(t *testing.T) {
	inMemory(t, map[string]*mcp.Server{"s": servertest.NewTools("slow")}, func(t *testing.T, i *inputs.Instance, tools *toolsets) {
		lines := responsesTo(t, i, tools, 4, `{"id":"1","server":"s","scope":"a","tool":"slow","quiet":"500ms"}`+"\n"+
			`{"id":"2","name":"s__slow","scope":"b","quiet":"500ms"}`+"\n"+`{"id":"3","name":"s__slow","scope":"c","quiet":"1500ms"}`)
		byID := map[string]map[string]any{}
		for _, line := range lines {
			byID[line["id"].(string)] = line
		}
		require.Equal(t, "quiet", byID["1"]["code"])
		require.Equal(t, true, byID["1"]["mayHaveRun"])
		require.Equal(t, "quiet", byID["2"]["code"])
		require.Equal(t, "slow", text(byID["3"]))
	})
}
