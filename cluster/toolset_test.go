package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// startPair starts the members a and b, each with an actor system of its own. They are stopped at
// the end of the test.
func startPair(t *testing.T, cfg func(name string) supervisor.Config) (a, b *cluster.Member) {
	t.Helper()
	hub := cluster.NewInProcess()
	start := func(name string) *cluster.Member {
		member := inProcess(hub, name)
		member.Supervisor = cfg(name)
		return startMember(t, member)
	}
	a, b = start("a"), start("b")
	knows(t, a, 2)
	knows(t, b, 2)
	return a, b
}

// scopeOn opens sessions until one is on the member, and returns its scope.
func scopeOn(t *testing.T, m *cluster.Member, server string) (scope string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	name := m.Supervisor().PID().Id
	for i := 0; ; i++ {
		scope = fmt.Sprint("scope-", i)
		info, err := m.Client().Open(ctx, server, scope)
		require.NoError(t, err)
		if info.Supervisor == name {
			return scope
		}
	}
}

func newTools(names ...string) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	for _, name := range names {
		addTool(server, name)
	}
	return server
}

func addTool(server *mcp.Server, name string) {
	mcp.AddTool(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil, nil
	})
}

func TestToolsetFollowsASessionOnOtherMembers(t *testing.T) {
	server := newTools("one")
	a, b := startPair(t, func(string) supervisor.Config {
		return supervisor.Config{Servers: []supervisor.Server{{Name: "s", InMemory: server}}}
	})
	require.Equal(t, []string{"s"}, a.Servers())
	scope := scopeOn(t, b, "s")
	events := make(chan *toolset.DefinitionChanged, 10)
	subscription := a.System().EventStream.Subscribe(func(event any) {
		if changed, ok := event.(*toolset.DefinitionChanged); ok {
			events <- changed
		}
	})
	defer a.System().EventStream.Unsubscribe(subscription)
	tools, err := toolset.New(a.System(), a, toolset.Config{Scope: scope, Servers: []toolset.Filter{{Name: "*"}}})
	require.NoError(t, err)
	defer tools.Close()
	names := func() (names []string) {
		set, err := tools.Tools(t.Context())
		require.NoError(t, err)
		require.Empty(t, set.Missing)
		for _, tool := range set.Tools {
			names = append(names, tool.Name)
		}
		return names
	}
	require.Equal(t, []string{"s__one"}, names())

	addTool(server, "two")
	require.Eventually(t, func() bool { return len(names()) == 2 }, 20*time.Second, 10*time.Millisecond)
	changed := <-events
	require.Equal(t, messages.Key{Server: "s", Scope: scope}, changed.Key)
	require.Equal(t, "two", changed.Tool)
	require.Equal(t, "b", changed.Supervisor)
	result, err := tools.Call(t.Context(), "s__two", nil)
	require.NoError(t, err)
	require.Equal(t, "b", result.Supervisor)
	require.Equal(t, "two", text(result))
	require.Equal(t, "two", tools.Outcome(result, nil).Text())

	require.NoError(t, b.Stop(t.Context()))
	result, err = tools.Call(t.Context(), "s__two", nil)
	require.NoError(t, err)
	require.Equal(t, "a", result.Supervisor)
	require.Contains(t, tools.Outcome(result, nil).Text(), "may be gone.", "both members count from 1")
}
