package debug

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// The page shows which calls wait for an approval, and no argument of them.
func TestPageShowsTheCallsThatWaitForAnApproval(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "pay", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	})
	sup, err := supervisor.Start(nil, supervisor.Config{Servers: []supervisor.Server{{Name: "bank", InMemory: server}}})
	require.NoError(t, err)
	defer func() { require.NoError(t, sup.Stop(context.Background())) }()
	tools, err := toolset.New(nil, sup, toolset.Config{
		Scope: "<b>alice", Servers: []toolset.Filter{{Name: "bank"}},
		Policy: &toolset.Policy{Decide: func(toolset.Proposal) toolset.Decision { return toolset.Decision{Verdict: toolset.Defer} }},
	})
	require.NoError(t, err)
	defer tools.Close()
	h := New(sup, Config{})
	defer h.Close()
	get := func(path string) string {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "localhost"
		h.ServeHTTP(w, r)
		require.Equal(t, 200, w.Code)
		return w.Body.String()
	}
	require.NotContains(t, get("/"), "Waiting for an approval")

	_, err = tools.Call(t.Context(), "bank__pay", `{"secret":"4711"}`)
	require.ErrorIs(t, err, messages.CodeRefused)
	page := get("/")
	require.Contains(t, page, "Waiting for an approval")
	require.Contains(t, page, "bank/&lt;b&gt;alice")
	require.NotContains(t, page, "4711")
	var data struct{ Approvals []waiting }
	require.NoError(t, json.Unmarshal([]byte(get("/?format=json")), &data))
	require.Len(t, data.Approvals, 1)
	require.Equal(t, "pay", data.Approvals[0].Tool)
	require.Equal(t, messages.Key{Server: "bank", Scope: "<b>alice"}, data.Approvals[0].Key)
}
