package toolset_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// inEachMode runs a scenario for each [toolset.Stability]. want returns the text for its mode.
func inEachMode(t *testing.T, cfg toolset.Config, scenario func(ctx context.Context, w *world, want func(texts byMode) string)) {
	for _, mode := range []toolset.Stability{toolset.Append, toolset.Freeze, toolset.Follow} {
		t.Run(string(mode), func(t *testing.T) {
			cfg := cfg
			cfg.Stability = mode
			imagine(t, cfg, func(ctx context.Context, w *world) {
				scenario(ctx, w, func(texts byMode) string {
					return map[toolset.Stability]string{toolset.Append: texts.append, toolset.Freeze: texts.freeze, toolset.Follow: texts.follow}[mode]
				})
			})
		})
	}
}

type byMode struct{ append, freeze, follow string }

func allModes(text string) byMode { return byMode{text, text, text} }

// shows returns the names of the tools that the model is shown, each with its description if it has one.
func (w *world) shows(ctx context.Context) string {
	w.Helper()
	set, err := w.Tools(ctx)
	require.NoError(w, err)
	return shownBy(set)
}

func shownBy(set *toolset.Set) string {
	var all []string
	for _, tool := range set.Tools {
		text := tool.Name
		if tool.Server != "" && tool.Description != "" {
			text += "=" + tool.Description
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// reload gives the supervisor other servers.
func (w *world) reload(ctx context.Context, servers ...mcpbridge.Server) {
	w.Helper()
	_, err := w.sup.Reload(ctx, servers)
	require.NoError(w, err)
	synctest.Wait()
}

func TestWhatTheModelWasShownStaysInFront(t *testing.T) {
	inEachMode(t, toolset.Config{}, func(ctx context.Context, w *world, want func(byMode) string) {
		one, two := mcpbridge.Server{Name: "one", InMemory: w.one.mcp}, mcpbridge.Server{Name: "two", InMemory: w.two.mcp}
		all := "one__a one__b two__c"
		require.Equal(w, all, w.shows(ctx))

		w.two.set(errors.New("down"), 0)
		w.changed("two")
		require.Equal(w, all+" !two", w.tools(ctx), "it is away")
		w.two.set(nil, 0)
		require.NoError(w, w.sup.Client().Restart(ctx, "two", "s"))
		require.Equal(w, all, w.shows(ctx), "it is back")

		w.one.add("0")
		w.changed("one")
		require.Equal(w, want(byMode{all + " one__0", all + " one__0", "one__0 " + all}), w.shows(ctx), "a new tool")

		w.one.define(&mcp.Tool{Name: "a", Description: "new"})
		w.changed("one")
		require.Equal(w, want(byMode{
			"one__a=new one__b two__c one__0", "one__a one__b two__c one__0", "one__0 one__a=new one__b two__c",
		}), w.shows(ctx), "another definition")

		w.one.mcp.RemoveTools("b")
		w.changed("one")
		require.Equal(w, want(byMode{
			"one__a=new one__b two__c one__0", "one__a one__b two__c one__0", "one__0 one__a=new two__c",
		}), w.shows(ctx), "a removed tool")
		w.one.add("b")
		w.changed("one")
		require.Equal(w, want(byMode{
			"one__a=new one__b two__c one__0", "one__a one__b two__c one__0", "one__0 one__a=new one__b two__c",
		}), w.shows(ctx), "it is there again")

		w.reload(ctx, one)
		require.Equal(w, want(byMode{"one__a=new one__b one__0", "one__a one__b one__0", "one__0 one__a=new one__b"}), w.shows(ctx), "the user has removed a server")
		w.reload(ctx, one, two)
		require.Equal(w, want(byMode{
			"one__a=new one__b one__0 two__c", "one__a one__b one__0 two__c", "one__0 one__a=new one__b two__c",
		}), w.shows(ctx), "and added it")
	})
}

func TestNewConversationBeginsAnew(t *testing.T) {
	inEachMode(t, toolset.Config{}, func(ctx context.Context, w *world, _ func(byMode) string) {
		w.tools(ctx)
		_, err := w.Call(ctx, toolset.FindTool, `{"query": "two"}`)
		require.NoError(w, err)
		set, err := w.Select(ctx, "one", 1)
		require.NoError(w, err)
		require.Contains(w, shownBy(set), "two__c", "it was found")
		w.one.define(&mcp.Tool{Name: "0", Description: "new"})
		w.one.define(&mcp.Tool{Name: "a", Description: "new"})
		w.one.mcp.RemoveTools("b")
		w.changed("one")
		w.tools(ctx)
		w.NewConversation()
		set, err = w.Select(ctx, "one", 1)
		require.NoError(w, err)
		require.Equal(w, "find_tools one__0=new", shownBy(set), "nothing is found or removed any more")
		require.Equal(w, "one__0=new one__a=new two__c", w.shows(ctx))
		(*toolset.Toolset)(nil).NewConversation()
	})
}

// A server that sends the same definition in other bytes has not changed it.
func TestRequestBeginsWithTheBytesOfTheOneBefore(t *testing.T) {
	const (
		schema = `{"type":"object","properties":{"x":{"type":"string"},"y":{"enum":[1,2]}},"required":["x"]}`
		same   = `{ "required": [ "x" ], "properties": {"y" :{"enum": [1, 2]}, "x": {"type": "string"}}, "type": "object" }`
	)
	for _, mode := range []toolset.Stability{toolset.Append, toolset.Freeze} {
		imagine(t, toolset.Config{Stability: mode, MaxText: 1024}, func(ctx context.Context, w *world) {
			before := [3][]json.RawMessage{{}, {}, {}}
			turn := func(added int) {
				w.Helper()
				set, err := w.Tools(ctx)
				require.NoError(w, err)
				for i, now := range [3][]json.RawMessage{set.Anthropic(), set.OpenAIChat(), set.OpenAIResponses()} {
					require.Len(w, now, len(before[i])+added)
					require.Equal(w, before[i], now[:len(before[i])])
					before[i] = now
				}
			}
			w.one.define(&mcp.Tool{Name: "b", Description: "reads", InputSchema: json.RawMessage(schema)})
			turn(3)
			w.one.define(&mcp.Tool{Name: "b", Description: "reads", InputSchema: json.RawMessage(same)})
			w.one.add("0")
			w.changed("one")
			turn(1)
			w.two.set(errors.New("down"), 0)
			w.changed("two")
			turn(0)
			w.Outcome(resultOf(strings.Repeat("x", 2000)), nil)
			w.one.mcp.RemoveTools("a")
			w.changed("one")
			turn(1) // that reads results
			w.two.set(nil, 0)
			w.two.add("0")
			w.changed("two")
			turn(1)
			if mode == toolset.Freeze {
				w.one.define(&mcp.Tool{Name: "b", Description: "writes"})
				w.changed("one")
				turn(0)
			}
			time.Sleep(time.Hour) // their sessions are closed
			turn(0)
		})
	}
}

func TestOwnToolsComeAtTheEnd(t *testing.T) {
	inEachMode(t, toolset.Config{MaxText: 1024}, func(ctx context.Context, w *world, want func(byMode) string) {
		require.Equal(w, "one__a one__b two__c", w.tools(ctx))
		set, err := w.Select(ctx, "two", 3)
		require.NoError(w, err)
		require.Equal(w, "one__a one__b two__c", shownBy(set))

		w.Outcome(resultOf(strings.Repeat("x", 2000)), nil)
		appended := "one__a one__b two__c read_result"
		require.Equal(w, want(byMode{appended, appended, "one__a one__b read_result two__c"}), w.tools(ctx))
		w.two.add("d")
		w.changed("two")
		set, err = w.Select(ctx, "two", 3) // finds them from now on
		require.NoError(w, err)
		appended = "one__a one__b two__c find_tools read_result two__d"
		require.Equal(w, want(byMode{appended, appended, "find_tools read_result two__c two__d"}), shownBy(set))
	})
}

func TestSelectedToolsStayForTheTask(t *testing.T) {
	inEachMode(t, toolset.Config{}, func(ctx context.Context, w *world, want func(byMode) string) {
		w.two.add("d", "e")
		selects := func(query string) string {
			w.Helper()
			set, err := w.Select(ctx, query, 1)
			require.NoError(w, err)
			return shownBy(set)
		}
		finds := func(query string) {
			w.Helper()
			_, err := w.Call(ctx, toolset.FindTool, map[string]any{"query": query, "limit": 1})
			require.NoError(w, err)
		}
		require.Equal(w, "find_tools two__d", selects("d"))
		finds("a")
		appended := "find_tools two__d one__a"
		require.Equal(w, want(byMode{appended, appended, "find_tools one__a two__d"}), selects("d"))
		finds("b")
		appended += " one__b"
		require.Equal(w, want(byMode{appended, appended, "find_tools one__b two__d"}), selects("d"), "the tools beyond n stay")

		w.two.mcp.RemoveTools("d")
		w.one.define(&mcp.Tool{Name: "a", Description: "new"})
		w.changed("one")
		w.changed("two")
		require.Equal(w, want(byMode{"find_tools two__d one__a=new one__b", appended, "find_tools one__b"}), selects("d"))
		require.Equal(w, want(allModes("find_tools one__b two__e")), selects("e"), "another task")
		w.reload(ctx, mcpbridge.Server{Name: "one", InMemory: w.one.mcp})
		require.Equal(w, want(allModes("find_tools one__b")), selects("e"), "the user has removed a server")
	})
}

func TestCallOfARemovedToolSaysSo(t *testing.T) {
	inEachMode(t, toolset.Config{}, func(ctx context.Context, w *world, want func(byMode) string) {
		w.tools(ctx)
		w.one.mcp.RemoveTools("a")
		w.changed("one")
		w.tools(ctx)
		_, err := w.Call(ctx, "one__a", nil)
		require.ErrorIs(w, err, messages.CodeInvalid)
		removed := `The call is not valid: the server no longer has the tool "one__a". The tool did not run. Correct the call before you try again.`
		require.Equal(w, want(byMode{removed, removed, `The call is not valid: no tool has the name "one__a". The tool did not run. Correct the call before you try again.`}), toolset.Explain(err))
		require.Equal(w, 0, w.one.count("a"))

		w.one.set(errors.New("down"), 0)
		w.changed("one")
		_, err = w.Call(ctx, "one__a", nil)
		require.ErrorIs(w, err, messages.CodeServerError, "it may have the tool again")
	})
}

// What is shown stays, but the server still has the tool: the reason is another one.
func TestCallOfAToolThatIsLeftOutNowSaysWhy(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		w.tools(ctx)
		w.one.define(&mcp.Tool{Name: "a", InputSchema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"strng"}}}`)})
		w.changed("one")
		require.Equal(w, "one__a one__b two__c", w.tools(ctx))
		_, err := w.Call(ctx, "one__a", nil)
		require.ErrorContains(w, err, `"one__a" cannot be called: the tool is left out`)
	})
}

func TestCallOfAToolWhoseServerIsUnknownDoesNotBlameTheServer(t *testing.T) {
	imagine(t, toolset.Config{Servers: []toolset.Filter{{Name: "*"}}}, func(ctx context.Context, w *world) {
		w.tools(ctx)
		w.reload(ctx, mcpbridge.Server{Name: "one", InMemory: w.one.mcp})
		_, err := w.Call(ctx, "two__c", nil)
		require.ErrorIs(w, err, messages.CodeInvalid)
		require.ErrorContains(w, err, `no tool has the name "two__c"`)
		require.Equal(w, "one__a one__b", w.tools(ctx))
	})
}

// reader returns a definition with one parameter, which is required. about describes it.
func reader(parameter, about string) *mcp.Tool {
	schema := fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"string","description":%q}},"required":[%q],"additionalProperties":false}`, parameter, about, parameter)
	return &mcp.Tool{Name: "b", InputSchema: json.RawMessage(schema)}
}

// Nobody lists the tools between the change and the call.
func TestArgumentsForAFrozenDefinitionAreCheckedAgainstTheCurrentOne(t *testing.T) {
	imagine(t, toolset.Config{Stability: toolset.Freeze}, func(ctx context.Context, w *world) {
		w.one.define(reader("path", ""))
		before, err := w.Tools(ctx)
		require.NoError(w, err)
		about := strings.Repeat("which file to read, ", 512)
		for range 2 { // also once it is known
			w.one.define(reader("file", about))
			w.changed("one")
			_, err = w.Call(ctx, "one__b", `{"path":"secret.txt"}`)
			require.ErrorIs(w, err, messages.CodeInvalid)
			require.ErrorContains(w, err, `tools/call "b" on one/s: invalid: the definition of the tool has changed: arguments`)
			require.NotContains(w, err.Error(), "secret.txt")
			require.Equal(w, 0, w.one.count("b"), "it was not sent")
		}
		now, err := w.Tools(ctx)
		require.NoError(w, err)
		require.Equal(w, before.Anthropic(), now.Anthropic())
		parameters := now.Tool("one__b").Parameters()
		require.Greater(w, len(parameters), 10<<10)
		_, err = w.Call(ctx, "one__b", `{"path":"secret.txt"}`)
		told := w.Outcome(nil, err).Text()
		require.Contains(w, told, "The call is not valid: the definition of the tool has changed: arguments")
		require.Contains(w, told, " The parameters of the tool are now: "+string(parameters)+" The tool did not run.")

		_, err = w.Call(ctx, "one__b", `{"file":"a.txt"}`)
		require.NoError(w, err)
		require.Equal(w, 1, w.one.count("b"))
		w.NewConversation()
		w.tools(ctx)
		_, _ = w.Call(ctx, "one__b", `{"path":"a.txt"}`)
		require.Equal(w, 2, w.one.count("b"), "the server checks what was written for its own definition")
	})
}

func TestArgumentsThatFitBothDefinitionsAreSent(t *testing.T) {
	imagine(t, toolset.Config{Stability: toolset.Freeze}, func(ctx context.Context, w *world) {
		w.one.define(reader("path", "old"))
		w.tools(ctx)
		w.one.define(reader("path", "new"))
		w.changed("one")
		_, err := w.Call(ctx, "one__b", `{"path":"a.txt"}`)
		require.NoError(w, err)
		require.Equal(w, 1, w.one.count("b"))
		w.one.mcp.RemoveTools("b")
		w.changed("one")
		_, err = w.Call(ctx, "one__b", `{"path":"a.txt"}`)
		require.ErrorContains(w, err, `the server no longer has the tool "one__b"`)
		require.Equal(w, 1, w.one.count("b"))
	})
}

func TestOnlyFrozenDefinitionsAreCheckedBeforeACall(t *testing.T) {
	inEachMode(t, toolset.Config{}, func(ctx context.Context, w *world, want func(byMode) string) {
		w.one.define(reader("path", ""))
		w.tools(ctx)
		w.one.define(reader("file", ""))
		w.changed("one")
		lists := w.one.listed()
		_, err := w.Call(ctx, "one__b", `{"path":"a.txt"}`)
		require.Equal(w, want(byMode{"1 0", "0 1", "1 0"}), fmt.Sprint(w.one.count("b"), " ", w.one.listed()-lists), "calls and lists: %v", err)
	})
}

func TestPolicyIsAskedAboutTheCurrentDefinition(t *testing.T) {
	var asked []string
	policy := &toolset.Policy{Decide: func(p toolset.Proposal) toolset.Decision {
		asked = append(asked, p.Tool.Digest)
		return toolset.Decision{Verdict: toolset.Allow}
	}}
	imagine(t, toolset.Config{Stability: toolset.Freeze, Policy: policy}, func(ctx context.Context, w *world) {
		w.one.define(reader("path", "old"))
		before, err := w.Tools(ctx)
		require.NoError(w, err)
		w.one.define(reader("path", "new"))
		w.changed("one")
		_, err = w.Call(ctx, "one__b", `{"path":"a.txt"}`)
		require.NoError(w, err)
		now, err := w.Tools(ctx)
		require.NoError(w, err)
		require.Equal(w, []string{now.Tool("one__b").Digest}, asked)
		require.NotEqual(w, before.Tool("one__b").Digest, asked[0])
		require.Equal(w, before.Tool("one__b").Digest, now.Tools[1].Digest, "what is shown")

		_, err = w.Call(ctx, "one__b", `{"file":"a.txt"}`)
		require.ErrorIs(w, err, messages.CodeInvalid)
		require.Len(w, asked, 1, "nobody is asked about what is not sent")
	})
}

// pooledLists runs a scenario with a pool of toolsets for the server "one".
func pooledLists(t *testing.T, scenario func(ctx context.Context, w *world, pool *toolset.Pool)) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		pool, err := toolset.NewPool(nil, w.sup, toolset.PoolConfig{Config: func(string) toolset.Config {
			return toolset.Config{Servers: []toolset.Filter{{Name: "one", Scope: "shared"}}}
		}})
		require.NoError(w, err)
		defer pool.Close()
		scenario(ctx, w, pool)
	})
}

// shownIn returns what the toolset of a scope shows.
func shownIn(ctx context.Context, w *world, pool *toolset.Pool, scope string) string {
	w.Helper()
	tools, err := pool.Get(scope)
	require.NoError(w, err)
	set, err := tools.Tools(ctx)
	require.NoError(w, err)
	return shownBy(set)
}

func TestConversationThatWasIdleIsShownTheSameTools(t *testing.T) {
	pooledLists(t, func(ctx context.Context, w *world, pool *toolset.Pool) {
		selected := func() string {
			w.Helper()
			tools, err := pool.Get("a")
			require.NoError(w, err)
			set, err := tools.Select(ctx, "b", 1)
			require.NoError(w, err)
			return shownBy(set)
		}
		require.Equal(w, "one__a one__b", shownIn(ctx, w, pool, "a"))
		require.Equal(w, "find_tools one__b", selected())
		w.one.add("0")
		w.one.mcp.RemoveTools("a")
		w.changed("one")
		require.Equal(w, "one__0 one__b", shownIn(ctx, w, pool, "b"), "another conversation")
		for range 2 {
			require.Equal(w, "one__a one__b one__0", shownIn(ctx, w, pool, "a"))
			require.Equal(w, "find_tools one__b", selected())
			time.Sleep(2 * time.Hour)
		}
		pool.Remove("a")
		_, err := w.sup.Client().Open(ctx, "one", "shared")
		require.NoError(w, err)
		require.Equal(w, "one__0 one__b", shownIn(ctx, w, pool, "a"), "its end was announced")
	})
}

func TestPoolRemembersTheToolsOf256Conversations(t *testing.T) {
	pooledLists(t, func(ctx context.Context, w *world, pool *toolset.Pool) {
		for i := range 300 {
			require.Equal(w, "one__a one__b", shownIn(ctx, w, pool, fmt.Sprint("shown", i)))
		}
		time.Sleep(2 * time.Hour)
		for i := range 300 { // they are shown nothing, and cost no others
			_, err := pool.Get(fmt.Sprint("idle", i))
			require.NoError(w, err)
		}
		time.Sleep(2 * time.Hour)
		w.one.add("0")
		_, err := w.sup.Client().Open(ctx, "one", "shared")
		require.NoError(w, err)
		w.changed("one")
		count := map[string]int{}
		for i := range 300 {
			count[shownIn(ctx, w, pool, fmt.Sprint("shown", i))]++
		}
		require.Equal(w, map[string]int{"one__a one__b one__0": 256, "one__0 one__a one__b": 44}, count)
	})
}
