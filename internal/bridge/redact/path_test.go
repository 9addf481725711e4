package redact

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

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
