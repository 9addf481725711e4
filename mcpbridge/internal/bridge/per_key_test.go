package bridge

import (
	"context"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Keys with the same result share an endpoint, which is forgotten with its last session.
func TestKeysWithTheSameResultShareAnEndpoint(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	base := mcpbridge.Server{Name: "test", InMemory: server}
	srv := base
	srv.PerKey = func(_ context.Context, key messages.Key) (mcpbridge.Server, error) {
		one := base
		one.Dir = key.Scope[:1]
		return one, nil
	}
	b := New([]mcpbridge.Server{srv}, nil)
	defer b.Close()
	at := b.servers["test"]
	var conns []dial.Conn
	for i := range 6 {
		key := messages.Key{Server: "test", Scope: fmt.Sprint(i%2, i)}
		c, err := b.Dial(t.Context(), dial.Request{Key: key, Down: func(*mcpbridge.Error) {}, Resolved: func(_ context.Context, s *mcpbridge.Server) error {
			require.Equal(t, key.Scope[:1], s.Dir)
			return nil
		}})
		require.NoError(t, err)
		conns = append(conns, c)
	}
	require.Len(t, at.derived.endpoints, 2)
	require.Same(t, conns[0].(*conn).at, conns[2].(*conn).at)
	require.NotSame(t, conns[0].(*conn).at, conns[1].(*conn).at)
	require.Equal(t, 3, conns[0].(*conn).at.users)
	for i, c := range conns {
		require.NotEmpty(t, at.derived.endpoints)
		require.NoError(t, c.Detach(t.Context()))
		require.NoError(t, c.Close(t.Context()), "%d: it is released once", i)
	}
	require.Empty(t, at.derived.endpoints)

	refusal := &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: "not now"}
	_, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test", Scope: "x"}, Resolved: func(context.Context, *mcpbridge.Server) error { return refusal }})
	require.ErrorIs(t, err, refusal)
	require.Empty(t, at.derived.endpoints)
}

func TestResultsThatDifferDoNotShareAnEndpoint(t *testing.T) {
	seen := map[string]int{}
	for i, config := range []mcpbridge.Server{
		{Command: "x"},
		{Command: "x", Args: []string{"ab"}},
		{Command: "x", Args: []string{"a", "b"}},
		{Command: "x", Args: []string{"TOKEN", "a"}},
		{Command: "x", Env: map[string]string{"TOKEN": "a"}},
		{Command: "x", Env: map[string]string{"TOKEN": "b"}},
		{Command: "x", Dir: "a"},
		{URL: "https://x"},
		{URL: "https://x", Headers: map[string]string{"TOKEN": "a"}},
		{URL: "https://x", Headers: map[string]string{"TOKEN": "b"}},
		{URL: "https://x", Setup: []*mcp.CallToolParams{{Name: "a"}}},
		{URL: "https://x", Setup: []*mcp.CallToolParams{{Name: "a", Arguments: map[string]any{"b": 1}}}},
		{URL: "https://x", Headers: map[string]string{"TOKEN": "\xe9"}},
		{URL: "https://x", Headers: map[string]string{"TOKEN": "\xe8"}},
		{InMemory: new(mcp.Server)},
	} {
		result, err := resultOf(&config)
		require.NoError(t, err)
		require.NotContains(t, seen, result, "%d", i)
		seen[result] = i
	}
}
