package mcpbridge

import "github.com/mcpactor/mcpactor/internal/identity"

// Presence is what a failed dial has shown about the server: whether the server is down, or the failure concerns only the
// key.
type Presence uint8

// The presences of a server. The zero value is that of a server that cannot be reached.
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
	sum := identity.NewSum()
	switch {
	case s.URL != "":
		sum.Add("url", s.URL)
	case s.InMemory != nil:
		sum.Add("memory", identity.Of(s.InMemory))
	default:
		sum.Add("command", s.Command, s.Dir)
		sum.Add(s.Args...)
		sum.AddMap(s.Env)
	}
	return sum.String()
}
