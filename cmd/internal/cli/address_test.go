package cli

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWordsForAWrongAddressSayWhatToWrite(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for addr, want := range map[string]string{
		"18091":                 `"18091" has no host: write 127.0.0.1:18091`,
		"localhost":             `"localhost" has no port: write localhost:8090`,
		"127.0.0.1":             `"127.0.0.1" has no port: write 127.0.0.1:8090`,
		"127.0.0.1:":            `"127.0.0.1:" has no port: write 127.0.0.1:8090`,
		"127.0.0.1:99999":       `"127.0.0.1:99999": the port must be a number from 0 to 65535`,
		"localhost:-1":          `"localhost:-1": the port must be a number`,
		"localhost:door":        `"localhost:door": the port must be a number`,
		"99999":                 `"99999" has no host: write 127.0.0.1:99999`,
		"http://127.0.0.1:8090": `"http://127.0.0.1:8090" is a URL: write HOST:PORT`,
		"::1":                   `"::1": write an IPv6 address in brackets, and then the port: [::1]:8090`,
		"[::1]":                 `"[::1]": write an IPv6 address in brackets, and then the port: [::1]:8090`,
		"::1:8090":              `"::1:8090": write an IPv6 address in brackets`,
		"nowhere..invalid:8090": `there is no host "nowhere..invalid": use 127.0.0.1, or 0.0.0.0 for all`,
		"192.0.2.1:8090":        `192.0.2.1 is no address of this machine: use 127.0.0.1`,
		taken.Addr().String():   `another program listens at ` + taken.Addr().String() + `: use another port`,
	} {
		_, err := listen(addr)
		var usage *UsageError
		require.ErrorAs(t, err, &usage, addr)
		require.ErrorContains(t, err, "--listen: "+want)
	}
	for addr, host := range map[string]string{
		"127.0.0.1:8090": "127.0.0.1", ":8090": "", "0.0.0.0:0": "0.0.0.0", "[::1]:8090": "::1", "[fe80::1%lo]:8090": "fe80::1%lo", "box.example:8090": "box.example",
	} {
		got, err := ListenHost(addr)
		require.NoError(t, err, addr)
		require.Equal(t, host, got, addr)
	}
}

func TestPageHasTheAddressThatABrowserCanUse(t *testing.T) {
	for want, c := range map[string]struct {
		named, ip string
		secure    bool
	}{
		"http://127.0.0.1:80/debug/mcp/":    {"127.0.0.1", "127.0.0.1", false},
		"http://localhost:80/debug/mcp/":    {"", "0.0.0.0", false},
		"https://localhost:80/debug/mcp/":   {"0.0.0.0", "::", true},
		"http://[::1]:80/debug/mcp/":        {"::1", "::1", false},
		"https://box.example:80/debug/mcp/": {"box.example", "192.0.2.1", true},
	} {
		require.Equal(t, want, urlOf(c.named, &net.TCPAddr{IP: net.ParseIP(c.ip), Port: 80}, c.secure))
	}
}
