package mcpbridge

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestEndpointIsWhereAServerIsReached(t *testing.T) {
	memory := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	base := Server{Name: "a", Command: "x", Args: []string{"b", "c"}, Env: map[string]string{"TOKEN": "very-secret"}}
	for name, c := range map[string]struct {
		one, other Server
		same       bool
	}{
		"name and limits": {base, Server{Name: "b", Command: "x", Args: base.Args, Env: base.Env, MaxResult: 5}, true},
		"arguments":       {base, Server{Command: "x", Args: []string{"bc"}, Env: base.Env}, false},
		"environment":     {base, Server{Command: "x", Args: base.Args}, false},
		"an argument that is a variable": {
			Server{Command: "x", Args: []string{"A", "B"}}, Server{Command: "x", Env: map[string]string{"A": "B"}}, false,
		},
		"url":            {Server{URL: "http://x", Headers: map[string]string{"A": "b"}}, Server{URL: "http://x"}, true},
		"another url":    {Server{URL: "http://x"}, Server{URL: "http://y"}, false},
		"memory":         {Server{InMemory: memory}, Server{InMemory: memory}, true},
		"another memory": {Server{InMemory: memory}, Server{InMemory: new(mcp.Server)}, false},
	} {
		require.Equal(t, c.same, c.one.Endpoint() == c.other.Endpoint(), name)
	}
	require.NotContains(t, base.Endpoint(), "secret")
}
