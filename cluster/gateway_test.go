package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

var _ gateway.Backend = (*cluster.Member)(nil)

// talker is an MCP server over HTTP that asks its client and tells it things.
type talker struct {
	*mcp.Server
	url string

	mu     sync.Mutex
	counts map[string]int // of calls, by session
}

func newTalker(t *testing.T) *talker {
	s := &talker{Server: mcp.NewServer(&mcp.Implementation{Name: "talker", Version: "1"}, nil), counts: map[string]int{}}
	tool := func(name string, f func(context.Context, *mcp.CallToolRequest) (string, error)) {
		mcp.AddTool(s.Server, &mcp.Tool{Name: name}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			text, err := f(ctx, r)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
		})
	}
	tool("count", func(_ context.Context, r *mcp.CallToolRequest) (string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.counts[r.Session.ID()]++
		return fmt.Sprint(s.counts[r.Session.ID()]), nil
	})
	tool("who", func(_ context.Context, r *mcp.CallToolRequest) (string, error) {
		said := r.Session.InitializeParams()
		return said.ClientInfo.Name + " " + said.ProtocolVersion, nil
	})
	tool("ask", func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "hello", RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
		}})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(answer.Content["name"]), nil
	})
	tool("progress", func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		return "", r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 0.5})
	})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.Server }, nil))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// sessions returns how many sessions are open.
func (s *talker) sessions() int { return len(slices.Collect(s.Sessions())) }

// guest is a client of the SDK at the gateway of a member.
type guest struct {
	*testing.T
	*mcp.ClientSession
	ctx    context.Context
	prefix string // of the names of tools

	progress, changed chan struct{}
}

// newGuest connects a client over a transport.
func newGuest(t *testing.T, ctx context.Context, transport mcp.Transport, prefix string) *guest {
	t.Helper()
	g := &guest{T: t, ctx: ctx, prefix: prefix, progress: make(chan struct{}, 10), changed: make(chan struct{}, 10)}
	client := mcp.NewClient(&mcp.Implementation{Name: "guest", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": r.Params.Message + " Ada"}}, nil
		},
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { g.progress <- struct{}{} },
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { g.changed <- struct{}{} },
	})
	var err error
	g.ClientSession, err = client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
	require.NoError(t, err)
	return g
}

// calls calls a tool, and returns the first text of its result.
func (g *guest) calls(tool string) string {
	g.Helper()
	params := &mcp.CallToolParams{Name: g.prefix + tool}
	params.SetProgressToken("p")
	result, err := g.CallTool(g.ctx, params)
	require.NoError(g, err)
	text := result.Content[0].(*mcp.TextContent).Text
	require.False(g, result.IsError, text)
	return text
}

// hears waits for a notification.
func (g *guest) hears(told <-chan struct{}) {
	g.Helper()
	select {
	case <-told:
	case <-g.ctx.Done():
		require.Fail(g, "nothing was heard")
	}
}

// lists reports whether a tool is listed.
func (g *guest) lists(tool string) bool {
	g.Helper()
	list, err := g.ListTools(g.ctx, nil)
	require.NoError(g, err)
	return slices.ContainsFunc(list.Tools, func(t *mcp.Tool) bool { return t.Name == g.prefix+tool })
}

// exchange checks that all that the client and the server say reaches the other.
func (g *guest) exchange(s *talker, added string) {
	g.Helper()
	require.Equal(g, "guest 2025-06-18", g.calls("who"))
	require.Equal(g, "hello Ada", g.calls("ask"))
	g.calls("progress")
	g.hears(g.progress)
	require.False(g, g.lists(added))
	addTool(s.Server, added)
	g.hears(g.changed)
	for !g.lists(added) {
		g.hears(g.changed)
	}
}

// A client at the gateway of a member has a session that another member owns. The session moves when that member stops: with a store
// it keeps its state, and without one the server is told again who its client is.
func TestClientAtTheGatewayOfAMemberUsesASessionOfAnotherMember(t *testing.T) {
	for _, way := range []string{"server", "tools"} {
		for _, stored := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, stored=%v", way, stored), func(t *testing.T) { useAGateway(t, way, stored) })
		}
	}
}

func useAGateway(t *testing.T, way string, stored bool) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	s, records := newTalker(t), new(resume.Memory)
	a, b := startPair(t, func(string) supervisor.Config {
		cfg := supervisor.Config{Servers: gateway.Prepare(supervisor.Server{Name: "s", URL: s.url})}
		if stored {
			cfg.Store = records
		}
		return cfg
	})
	scope := scopeOn(t, b, "s")
	_, err := a.Client().CloseAll(ctx)
	require.NoError(t, err)
	require.Zero(t, s.sessions())

	gw, err := gateway.New(a, gateway.Config{})
	require.NoError(t, err)
	defer gw.Close()
	transport, prefix := gw.Server("s", gateway.Scope{Name: scope, Ends: true}), ""
	if way == "tools" {
		tools, err := toolset.New(nil, a, toolset.Config{Scope: scope, Servers: []toolset.Filter{{Name: "s"}}})
		require.NoError(t, err)
		defer tools.Close()
		transport, prefix = gw.Tools(tools, gateway.Scope{Ends: true}), "s__"
	}
	member := func() string {
		info, err := a.Client().Open(ctx, "s", scope)
		require.NoError(t, err)
		return info.Supervisor
	}
	first := newGuest(t, ctx, transport, prefix)
	require.Equal(t, "1", first.calls("count"))
	require.Equal(t, "b", member())
	require.Equal(t, 1, s.sessions())
	require.NoError(t, first.Close())
	require.Zero(t, s.sessions(), "the scope ends with its client")

	second := newGuest(t, ctx, transport, prefix)
	require.Equal(t, "1", second.calls("count"))
	require.Equal(t, "b", member())
	second.exchange(s, "before")
	require.NoError(t, b.Stop(ctx))
	if stored {
		require.Equal(t, "2", second.calls("count"))
	} else {
		require.Equal(t, "1", second.calls("count"))
	}
	require.Equal(t, "a", member())
	second.exchange(s, "after")
	require.Equal(t, 1, s.sessions())
	require.NoError(t, second.Close())
	require.Zero(t, s.sessions())
}
