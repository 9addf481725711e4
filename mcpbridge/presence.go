package mcpbridge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Presence is what a failed dial has shown of the server, and so whose fault the
// failure is: the server's, or that of the key that was dialed.
type Presence uint8

// The presences of a server. The zero value is what a [Dialer] of your own returns
// for a server that cannot be reached.
const (
	// Absent: nothing answered, or what did said that the server cannot now (502, 503,
	// 504). Other keys would find the same.
	Absent Presence = iota
	// Strange: something answered, or was started, and it is no MCP server. The
	// configuration is wrong; or, where there has been a server before, something
	// stands in for it while it is down.
	Strange
	// Present: the server answered. What failed is a matter of the key.
	Present
)

// Endpoint stands for what the server is reached at: its URL, its command with
// arguments, environment and directory, or the server in memory. Servers with the
// same Endpoint are up and down together. It is a hash, which tells no secret, and
// is stable as long as the process runs.
func (s *Server) Endpoint() string {
	sum := sha256.New()
	add := func(parts ...string) {
		for _, part := range parts {
			fmt.Fprintf(sum, "%d:%s", len(part), part)
		}
	}
	switch {
	case s.URL != "":
		add("url", s.URL)
	case s.InMemory != nil:
		add("memory", fmt.Sprintf("%p", s.InMemory))
	default:
		add("command", s.Command, s.Dir)
		add(s.Args...)
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			add(name, s.Env[name])
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
