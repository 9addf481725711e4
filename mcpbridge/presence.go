package mcpbridge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Presence is what a failed dial has shown about the server: whether the server is down, or the failure concerns only the
// key.
type Presence uint8

// The presences of a server. The zero value is what a [Dialer] of your own returns
// for a server that cannot be reached.
const (
	// Absent: there was no answer, or a 502, 503 or 504. The dials of other keys would fail
	// as well.
	Absent Presence = iota
	// Strange: something answered, or was started, that is not an MCP server. Either the
	// configuration is wrong, or, if there was a server before, something else answers
	// while the server is down.
	Strange
	// Present: the server answered. The failure concerns only the key.
	Present
)

// Endpoint identifies the place where the server is reached: its URL, its command with
// arguments, environment and directory, or the server in memory. Servers with the same
// Endpoint are up and down together. The value is a hash that reveals no secrets. It stays
// the same as long as the process runs.
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
