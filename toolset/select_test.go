package toolset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// catalog gives a server 1,000 tools: five of them are for calendars.
func (s *server) catalog() {
	nouns := strings.Fields("invoice branch ticket customer shipment warehouse contract pipeline dashboard recipe")
	for i := range 995 {
		noun := nouns[i%len(nouns)]
		s.define(&mcp.Tool{
			Name: fmt.Sprintf("%s_action_%d", noun, i), Description: fmt.Sprintf("Performs action %d on a %s.", i, noun),
			InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`),
		})
	}
	for _, verb := range strings.Fields("create list move delete share") {
		s.define(&mcp.Tool{Name: verb + "_event", Description: "Can " + verb + " an event of the calendar."})
	}
}

// names returns the names of the tools that a set lists.
func names(set *toolset.Set) string {
	var all []string
	for _, tool := range set.Tools {
		all = append(all, tool.Name)
	}
	return strings.Join(all, " ")
}

func TestModelGetsTheToolsThatMatterAndFindsOthers(t *testing.T) {
	imagine(t, toolset.Config{Stability: toolset.Follow}, func(ctx context.Context, w *world) {
		w.one.catalog()
		const task = "Please move my event in the calendar to Friday"
		set, err := w.Select(ctx, task, 3)
		require.NoError(w, err)
		require.Len(w, set.Tools, 4)
		require.Equal(w, toolset.FindTool, set.Tools[0].Name)
		require.Contains(w, names(set), "one__move_event")
		for _, definition := range set.Anthropic() {
			require.Regexp(w, `"name":"(find_tools|one__\w+_event)"`, string(definition))
		}
		require.Equal(w, "one__move_event", set.Rank(task, 1)[0].Name)
		require.NotNil(w, set.Tool("two__c"), "tools that are not listed can be called")

		result, err := w.Call(ctx, toolset.FindTool, `{"query": "invoice action 120", "limit": 1}`)
		require.NoError(w, err)
		require.Equal(w, "Found 1 of 1003 tools. You can call them now.\n"+
			`{"name":"one__invoice_action_120","description":"Performs action 120 on a invoice.","parameters":{"properties":{"id":{"type":"string"}},"required":["id"],"type":"object"}}`,
			w.Outcome(result, nil).Text())
		_, err = w.Call(ctx, "one__invoice_action_120", `{"id":"1"}`)
		require.NoError(w, err)

		next, err := w.Select(ctx, task, 3)
		require.NoError(w, err)
		require.Len(w, next.Tools, 5)
		require.Contains(w, names(next), "one__invoice_action_120")
		require.NotContains(w, names(set), "one__invoice_action_120", "a set does not change")

		for i := range 10 {
			_, err := w.Call(ctx, toolset.FindTool, map[string]any{"query": fmt.Sprint("ticket action ", 10*i+2), "limit": 1})
			require.NoError(w, err)
		}
		last, err := w.Select(ctx, task, 3)
		require.NoError(w, err)
		require.Len(w, last.Tools, 7, "three that match, three that were found, and the one that finds")
		require.Contains(w, names(last), "one__ticket_action_92")
		require.NotContains(w, names(last), "one__invoice_action_120")
		require.Equal(w, 2, w.one.listed(), "one list of two pages")
	})
}

func TestSmallCatalogIsListedAsAWhole(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		set, err := w.Select(ctx, "anything", 3)
		require.NoError(w, err)
		require.Equal(w, "one__a one__b two__c", names(set))
		set, err = w.Select(ctx, "nothing that matches", 2)
		require.NoError(w, err)
		require.Equal(w, "find_tools", names(set))
		set, err = w.Select(ctx, "a", -1)
		require.NoError(w, err)
		require.Equal(w, "find_tools", names(set))
		w.one.set(context.DeadlineExceeded, 0)
		w.changed("one")
		set, err = w.Select(ctx, "a", 1)
		require.NoError(w, err)
		require.Equal(w, "find_tools one__a", names(set))
		require.Equal(w, "one", set.Missing[0].Key.Server)
	})
}

func TestFindAnswersOddQuestions(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		set, err := w.Tools(ctx)
		require.NoError(w, err)
		for _, arguments := range []any{nil, `{}`, `{"query": " "}`, `{"query": 1}`, `[]`, `{"query": "a", "limit": "x"}`} {
			_, err := w.Call(ctx, toolset.FindTool, arguments)
			require.ErrorIs(w, err, messages.CodeInvalid, "%v", arguments)
			require.Contains(w, toolset.Explain(err), `give {"query": "what the tool should do"}`)
		}
		for arguments, want := range map[string]string{
			`{"query": "zzz"}`:                "None of 3 tools matches. Describe what you want to do in other words.",
			`{"query": "one", "limit": -5}`:   "Found 1 of 3 tools.",
			`{"query": "one", "limit": 1000}`: "Found 2 of 3 tools.",
		} {
			result, err := w.Call(ctx, toolset.FindTool, arguments)
			require.NoError(w, err)
			require.Contains(w, toolset.Convert(result.Result).Text(), want)
		}
		_, err = w.Approve(ctx, toolset.FindTool, `{"query": "a"}`)
		require.ErrorIs(w, err, messages.CodeInvalid)
		require.ErrorContains(w, err, "use Toolset.Call")
		var none *toolset.Set
		require.Empty(w, none.Rank("a", 1))
		require.Empty(w, (&toolset.Set{}).Rank("a", 1))
		require.Empty(w, set.Rank("a", -1))
		w.Close()
		_, err = w.Call(ctx, toolset.FindTool, `{"query": "a"}`)
		require.ErrorIs(w, err, messages.CodeClosed)
	})
}

func TestFoundToolsWithLargeSchemasFitIntoAResult(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		for i := range 5 {
			w.one.define(&mcp.Tool{Name: fmt.Sprint("large_", i), Description: strings.Repeat("word ", 5000)})
		}
		w.tools(ctx)
		result, err := w.Call(ctx, toolset.FindTool, `{"query": "large", "limit": 5}`)
		require.NoError(w, err)
		text := toolset.Convert(result.Result).Text()
		require.Less(w, len(text), 70<<10)
		require.Equal(w, 6, len(strings.Split(text, "\n")))
		require.Contains(w, text, "left out because of its size")
	})
}

// A catalog of 1,000 tools is listed once, and costs little after that.
func TestCatalogOfAThousandToolsIsKept(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		w.one.catalog()
		set, err := w.Tools(ctx)
		require.NoError(w, err)
		require.Len(w, set.Tools, 1003)
		require.Len(w, set.OpenAIChat(), 1003)
		synctest.Wait()
		require.Less(w, testing.AllocsPerRun(10, func() {
			_, err := w.Tools(ctx)
			require.NoError(w, err)
		}), 50.0, "allocations of Tools")
		set.Rank("an event", 1) // makes the index
		require.Less(w, testing.AllocsPerRun(10, func() {
			_, err := w.Select(ctx, "an event of the calendar", 10)
			require.NoError(w, err)
		}), 150.0, "allocations of Select")
		require.Equal(w, 2, w.one.listed(), "one list of two pages")

		events, end := w.changesOf()
		defer end()
		w.one.define(&mcp.Tool{Name: "move_event", Description: "Moves money."})
		w.changed("one")
		w.tools(ctx)
		require.Equal(w, "s one/s move_event redefined [description] true true", events())
		next, err := w.Select(ctx, "money", 10)
		require.NoError(w, err)
		require.Equal(w, "find_tools one__move_event", names(next))
	})
}

func BenchmarkSelect(b *testing.B) {
	ctx := context.Background()
	system := newSystem()
	s := newServer("one")
	s.catalog()
	tools := open(b, system, s)
	for name, ask := range map[string]func() error{
		"Tools":  func() error { _, err := tools.Tools(ctx); return err },
		"Select": func() error { _, err := tools.Select(ctx, "move my event in the calendar", 10); return err },
		"Find": func() error {
			_, err := tools.Call(ctx, toolset.FindTool, `{"query":"move my event in the calendar"}`)
			return err
		},
	} {
		b.Run("tools=1000/"+name, func(b *testing.B) {
			b.ReportAllocs()
			require.NoError(b, ask())
			for b.Loop() {
				if err := ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// open returns a toolset for a server, which ends with the benchmark.
func open(b *testing.B, system *actor.ActorSystem, s *server) *toolset.Toolset {
	sup, err := supervisor.Start(system, supervisor.Config{Servers: []mcpbridge.Server{{Name: "one", InMemory: s.mcp}}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, sup.Stop(context.Background())) })
	tools, err := toolset.New(system, sup, toolset.Config{Servers: []toolset.Filter{{Name: "*"}}})
	require.NoError(b, err)
	b.Cleanup(tools.Close)
	return tools
}
