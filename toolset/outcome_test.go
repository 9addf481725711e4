package toolset_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// The server forgets its sessions, is down, and comes back.
func TestModelIsToldThatTheStateOfItsSessionIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		counters := faults.NewTools()
		server := faults.Local(counters.Handler)
		defer time.Sleep(3 * time.Second) // until Proto.Actor's throttle of dead letters ends
		defer counters.Close()
		defer server.Close()
		system := newSystem()
		sup, err := supervisor.Start(system, supervisor.Config{Servers: []mcpbridge.Server{
			{Name: "counter", URL: server.URL(), HTTPClient: &http.Client{Transport: server}},
		}})
		require.NoError(t, err)
		defer func() { require.NoError(t, sup.Stop(context.Background())) }()
		tools, err := toolset.New(system, sup, toolset.Config{Servers: []toolset.Filter{{Name: "*"}}})
		require.NoError(t, err)
		defer tools.Close()
		count := func() toolset.Output { return tools.Outcome(tools.Call(ctx, "counter__count", nil)) }
		const gone = "\nNote: server \"counter\" has a new session since its last result. State that server \"counter\" kept, such as a login or an open page, is gone."

		require.Equal(t, "1", count().Text())
		require.Equal(t, "2", count().Text())
		require.NoError(t, server.Restart())
		require.Equal(t, "1"+gone, count().Text())
		require.Equal(t, "2", count().Text(), "it is told once")

		server.Inject("tools/call", faults.Times(1, faults.Cut()))
		failed := count()
		require.True(t, failed.IsError)
		require.Contains(t, failed.Text(), "The tool may have run.")

		require.NoError(t, server.Restart())
		require.Equal(t, "1"+gone, count().Text())
	})
}

func TestOutcomeComparesGenerations(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		w.tools(ctx)
		result := func(server string, generation uint64) toolset.Output {
			return w.Outcome(&messages.ToolResult{
				Receipt: messages.Receipt{Key: messages.Key{Server: server, Scope: "s"}, Generation: generation},
				Result:  &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "x"}}},
			}, nil)
		}
		failure := func(code messages.Code, generation uint64) string {
			out := w.Outcome(nil, &messages.Failure{Key: messages.Key{Server: "one", Scope: "s"}, Code: code, Generation: generation})
			require.True(w, out.IsError)
			require.Len(w, out.Parts, 1)
			return out.Parts[0].Text
		}
		require.Len(w, result("one", 3).Parts, 1, "the first outcome")
		require.Len(w, result("one", 3).Parts, 1)
		require.Len(w, result("one", 4).Parts, 2)
		require.Len(w, result("one", 3).Parts, 1, "an older one that comes late")
		require.Len(w, result("one", 4).Parts, 1)
		require.Len(w, result("two", 9).Parts, 1)
		require.Len(w, result("other", 1).Parts, 1)
		require.Len(w, result("other", 2).Parts, 1, "a server of somebody else")

		require.NotContains(w, failure(messages.CodeLost, 4), "is gone")
		require.NotContains(w, failure(messages.CodeBusy, 0), "is gone")
		require.Regexp(w, `may be gone\. State .* is gone\.$`, failure(messages.CodeLost, 5))
		require.NotContains(w, failure(messages.CodeServerError, 5), "is gone")
		require.Regexp(w, `is gone\.$`, failure(messages.CodeServerError, 6))
		require.Equal(w, 1, strings.Count(failure(messages.CodeExpired, 7), "is gone."))
		require.Len(w, result("one", 7).Parts, 1)

		require.Equal(w, "(no content)", w.Outcome(nil, nil).Text())
		require.Equal(w, "x", (*toolset.Toolset)(nil).Outcome(&messages.ToolResult{
			Result: &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "x"}}},
		}, nil).Text())
	})
}

// A session may move to another member of a cluster with its state, or without.
func TestOutcomeComparesMembers(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		w.tools(ctx)
		told := func(member string, generation uint64) string {
			parts := w.Outcome(&messages.ToolResult{
				Receipt: messages.Receipt{Key: messages.Key{Server: "one", Scope: "s"}, Generation: generation, Supervisor: member},
				Result:  &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "x"}}},
			}, nil).Parts
			if len(parts) == 1 {
				return ""
			}
			return parts[1].Text
		}
		require.Empty(w, told("a", 3), "the first outcome")
		require.Contains(w, told("b", 3), "may be gone.", "a has left it to b, or both count apart")
		require.Empty(w, told("b", 3))
		require.Empty(w, told("a", 3), "an older one that comes late")
		require.Contains(w, told("b", 4), "is gone.")
		require.Contains(w, told("a", 4), "may be gone.")
		require.Contains(w, told("c", 1), "is gone.", "it counts apart")

		out := w.Outcome(nil, &messages.Failure{Key: messages.Key{Server: "one", Scope: "s"}, Code: messages.CodeLost, Supervisor: "d", Generation: 4})
		require.Equal(w, 1, strings.Count(out.Text(), "may be gone."))
	})
}
