package toolset

import (
	"context"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// A feed holds nothing for a toolset that is closed, nor for a server that no toolset wants any more.
func TestFeedForgetsWhatNobodyLists(t *testing.T) {
	server := func(name string) mcpbridge.Server {
		return mcpbridge.Server{Name: name, InMemory: mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)}
	}
	two := server("two")
	sup, err := supervisor.Start(nil, supervisor.Config{Servers: []mcpbridge.Server{server("one"), two}})
	require.NoError(t, err)
	defer sup.Stop(context.Background())
	pool, err := NewPool(nil, sup, PoolConfig{Config: func(string) Config { return Config{Servers: []Filter{{Name: "*"}}} }})
	require.NoError(t, err)
	defer pool.Close()
	var last *Toolset
	for i := range 3 {
		last, err = pool.Get(fmt.Sprint(i))
		require.NoError(t, err)
	}
	require.Len(t, pool.feed.lists, 6)
	require.Len(t, pool.feed.of(messages.Key{Server: "one", Scope: "2"}), 1)
	_, err = sup.Reload(t.Context(), []mcpbridge.Server{two, server("three")})
	require.NoError(t, err)
	last.current()
	require.Len(t, pool.feed.lists, 6)
	require.Empty(t, pool.feed.of(messages.Key{Server: "one", Scope: "2"}))
	require.Len(t, pool.feed.of(messages.Key{Server: "three", Scope: "2"}), 1)

	pool.Remove("0")
	require.Len(t, pool.feed.lists, 4)
	last.Close()
	last.Close()
	_, err = sup.Reload(t.Context(), []mcpbridge.Server{two, server("four")})
	require.NoError(t, err)
	last.current()
	require.Len(t, pool.feed.lists, 2, "a call that was under way adds nothing")
	pool.Close()
	require.Empty(t, pool.feed.lists)
}
