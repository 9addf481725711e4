package loopback

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostsThatAreThisMachine(t *testing.T) {
	for host, want := range map[string]struct{ is, isUnder bool }{
		"localhost": {true, true}, "LOCALHOST": {true, true}, "localhost.": {true, true},
		"127.0.0.1": {true, true}, "127.8.8.8": {true, true}, "::1": {true, true}, "::ffff:127.0.0.1": {true, true},
		"mcp.localhost": {false, true}, "MCP.Localhost.": {false, true},
		"": {}, "example.com": {}, "evil-localhost": {}, "localhost.evil.com": {}, "127.0.0.1.evil.com": {},
		"10.0.0.1": {}, "0.0.0.0": {}, "::": {}, "::ffff:10.0.0.1": {}, "[::1]": {}, "169.254.169.254": {},
	} {
		require.Equal(t, want.is, Is(host), host)
		require.Equal(t, want.isUnder, IsUnder(host), host)
	}
	for address, want := range map[string]bool{
		"http://127.0.0.1:1/callback": true, "http://localhost:1/": true, "http://[::1]:1/c": true,
		"http://127.0.0.1/callback": false, "http://127.0.0.1:1": false, "https://127.0.0.1:1/c": false,
		"http://mcp.localhost:1/c": false, "http://example.com:1/c": false, "http://%zz": false, "": false,
	} {
		require.Equal(t, want, IsPort(address), address)
	}
}
