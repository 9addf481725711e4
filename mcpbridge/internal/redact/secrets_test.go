package redact

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

func TestSecretsOfAConfigurationAreFoundWhereverTheyAre(t *testing.T) {
	srv := &mcpbridge.Server{
		Args: []string{"--token", "arg-secret-1", "--api-key=arg-secret-2", "--root", "/not/a/secret", "--verbose=nothing-hidden"},
		Setup: []*mcp.CallToolParams{
			{Name: "login", Arguments: map[string]any{"auth": map[string]any{"passwords": []any{"setup-secret-1"}}}},
			{Name: "login", Arguments: struct{ Pin string }{"setup-secret-2"}},
			{Name: "login", Arguments: json.RawMessage(`{"pin":"setup-secret-3"}`)},
		},
	}
	text := "arg-secret-1 arg-secret-2 setup-secret-1 setup-secret-2 setup-secret-3"
	require.NotContains(t, Clean(text, OfServer(srv)...), "secret")
	require.Equal(t, "/not/a/secret nothing-hidden", Clean("/not/a/secret nothing-hidden", OfServer(srv)...))
}

func TestWordsOfAPathStay(t *testing.T) {
	u, err := url.Parse("https://test/assistant/my-documents/v2/mcp")
	require.NoError(t, err)
	require.Equal(t, "no assistant here, nor my-documents", Clean("no assistant here, nor my-documents", OfURL(u)...))
	require.Equal(t, "Cannot POST …", Clean("Cannot POST /assistant/my-documents/v2/mcp", OfURL(u)...))
	for part, word := range map[string]bool{
		"": true, "mcp": true, "server-everything": true, "list_tools.json": true,
		"v2024-11": false, "AbCdEfGhIj": false, "abcdefghijklmnopqrst": false, "ü": false, "a%2Fb": false,
	} {
		require.Equal(t, word, isWord(part), part)
	}
}
