package gateway

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// A tool has to pass the entry of its server and all filters for the name of the client, also after these have changed. No session ends
// for that.
func TestClientGetsTheToolsThatPassAllFiltersForItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, end := twoServers()
		defer time.Sleep(3 * time.Second)
		defer end()
		var further atomic.Pointer[toolset.Filter]
		further.Store(&toolset.Filter{Deny: []string{"wait*", "fail*"}})
		entries := []toolset.Filter{{Name: "one", Deny: []string{"echo"}}, {Name: "two"}}
		w := worldOf(t, setup{Prefixed: true, Tools: entries, Filters: func(client, server string) []toolset.Filter {
			if client != "tester" || server != "one" {
				return nil
			}
			return []toolset.Filter{{Deny: []string{"big*"}}, *further.Load()}
		}}.with(remote("one", one), remote("two", two)))
		defer w.stop()
		c := w.told(w.connect)
		ofOne := func() (names []string) {
			for _, name := range c.listed() {
				if strings.HasPrefix(name, "one__") {
					names = append(names, name)
				}
			}
			return names
		}
		countRO, echoRO := toolset.SafeName("one", "count/ro"), toolset.SafeName("one", "echo/ro")
		require.ElementsMatch(t, []string{"one__count", countRO, echoRO}, ofOne())
		require.Contains(t, c.listed(), "two__big")
		for _, hidden := range []string{"one__echo", "one__big", "one__wait"} {
			_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: hidden})
			require.ErrorContains(t, err, "unknown tool", hidden)
		}
		w.call(c.ClientSession, "one__count", nil)

		another := w.raw()
		another.open()
		require.Contains(t, string(another.list("tools/list").Result), `"one__big"`)
		require.NotContains(t, string(another.list("tools/list").Result), `"one__echo"`)

		further.Store(&toolset.Filter{ReadOnly: true, Allow: []string{"count*"}})
		require.NoError(t, w.Reload(entries, nil))
		time.Sleep(time.Second)
		require.EqualValues(t, 1, c.tools.Load())
		require.Zero(t, another.came()["notifications/tools/list_changed"])
		require.Equal(t, []string{countRO}, ofOne())
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__count"})
		require.ErrorContains(t, err, "unknown tool")
		text, _ := w.call(c.ClientSession, countRO, nil)
		require.Equal(t, "2", text, "the session is the same")
	})
}

// A call in front of one server waits for the list that says whether its tool only reads. Without a list it is refused.
func TestCallWaitsForTheListThatSaysWhetherItsToolReads(t *testing.T) {
	cfg := setup{Wait: time.Second, Filters: func(string, string) []toolset.Filter {
		return []toolset.Filter{{ReadOnly: true, Deny: []string{"big"}}}
	}}
	for delay, comesInTime := range map[time.Duration]bool{3 * time.Second: true, 9 * time.Second: false} {
		for _, both := range []bool{false, true} {
			t.Run(fmt.Sprint(delay, both), func(t *testing.T) {
				inFront(t, cfg, both, func(w *world, slow *faults.Server) {
					slow.Inject("tools/list", faults.Delay(delay))
					public := func(tool string) string {
						if both {
							return toolset.SafeName("slow", tool)
						}
						return tool
					}
					r := w.raw()
					r.opens()
					call := func(tool string) string {
						answer := r.request("tools/call", fmt.Sprintf(`{"name":%q}`, public(tool)))
						if answer.Error != nil {
							return answer.Error.Message
						}
						return string(answer.Result)
					}
					if !comesInTime {
						require.Contains(t, call("count"), "is not known, and some servers cannot be reached")
						require.Contains(t, call("big"), "unknown tool", "its name is enough")
						require.Zero(t, slow.Count("tools/call"))
						time.Sleep(2 * delay) // until the session of the client has listed as well
					}
					for _, tool := range []string{"count", "gone"} {
						require.Equal(t, fmt.Sprintf("unknown tool %q", public(tool)), call(tool))
					}
					require.Zero(t, slow.Count("tools/call"))
					require.Contains(t, call("count/ro"), `"text":"1"`)
				})
			})
		}
	}
}

// The first request of a stateless client says its name.
func TestStatelessClientGetsTheToolsForItsName(t *testing.T) {
	w := worldOf(t, setup{Tools: []toolset.Filter{{Name: "s"}}, Filters: func(client, _ string) []toolset.Filter {
		return []toolset.Filter{{Deny: []string{client}}}
	}}.with(mcpbridge.Server{Name: "s", InMemory: faults.NewTools().Server()}))
	defer w.stop()
	for _, first := range []string{"count", "echo"} {
		r := w.raw()
		for _, name := range []string{first, "another"} {
			tools := string(r.ask(strings.Replace(stateless("1", "tools/list", ""), `"raw"`, fmt.Sprintf("%q", name), 1), "1").Result)
			require.NotContains(t, tools, fmt.Sprintf(`"name":%q`, first))
			require.Contains(t, tools, `"name":"big"`)
			require.EqualValues(t, -32602, r.ask(stateless("2", "tools/call", fmt.Sprintf(`"name":%q`, first)), "2").Error.Code)
		}
	}
}
