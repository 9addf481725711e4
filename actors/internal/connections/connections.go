// Package connections has the connections of a session: which one calls run on, and what becomes of those before it.
package connections

import (
	"slices"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Connections are those of one session. They outlive its restarts.
//
//	Current ──restart──▶ Old ──detached──▶ Resumable ──▶ resumed by the next dial, or closed
type Connections struct {
	// Current is the connection that calls run on, or nil.
	Current dial.Conn
	// Old was Current before a fault, or nil. It is released before the next dial.
	Old dial.Conn
	// Resumable was Old, or is nil. The server may still have its MCP session, which
	// the next dial resumes, or which is closed if there is no next dial.
	Resumable dial.Conn
	// Closing is which of them this incarnation is detaching or closing, or nil.
	Closing dial.Conn

	// gone is the connection, of these, whose MCP session the server no longer knows; or nil.
	gone dial.Conn
}

// All returns the connections, in the order in which they are closed.
func (c *Connections) All() (all []dial.Conn) {
	for _, conn := range []dial.Conn{c.Current, c.Old, c.Resumable} {
		if conn != nil {
			all = append(all, conn)
		}
	}
	return all
}

// NoteGone notes that the server no longer knows the MCP session of a connection, if an error says so. Calls may not run on
// the connection any longer.
func (c *Connections) NoteGone(conn dial.Conn, e *mcpbridge.Error) {
	if e != nil && e.Session == mcpbridge.Gone && slices.Contains([]dial.Conn{c.Current, c.Old, c.Resumable}, conn) {
		c.gone = conn
	}
}

// IsGone reports whether the server no longer knows the MCP session of a connection.
func (c *Connections) IsGone(conn dial.Conn) bool { return conn == c.gone }

// Restarted makes Current the old connection when an incarnation begins, and reports whether there was one.
func (c *Connections) Restarted() bool {
	if c.Current == nil {
		return false
	}
	c.Old, c.Current = c.Current, nil
	return true
}

// Unwanted takes a connection that a dial has opened too late: it is to be released.
func (c *Connections) Unwanted(conn dial.Conn) { c.Old, c.Closing = conn, nil }

// Opened notes the connection of a dial, which has resumed the MCP session of Resumable, or has another one.
func (c *Connections) Opened(conn dial.Conn) { c.Current, c.Resumable, c.gone = conn, nil, nil }

// Detached notes that Old is detached. Its MCP session is resumed by the next dial. If it has expired, it is kept for a
// second session that was opened beside it.
func (c *Connections) Detached(conn dial.Conn) {
	if conn != c.Old {
		return
	}
	c.Old, c.Closing = nil, nil
	if c.IsGone(conn) || conn.Resume() != nil {
		c.Resumable = conn
	}
}

// DetachedForGood notes that Old was detached while the session drains: its MCP session is to be closed.
func (c *Connections) DetachedForGood(conn dial.Conn) {
	if conn == c.Old {
		c.Old, c.Resumable = nil, c.Old
	}
	c.Closing = nil
}

// Closed notes that a connection is closed, or could not be closed.
func (c *Connections) Closed(conn dial.Conn) {
	c.Closing = nil
	switch conn {
	case c.Current:
		c.Current = nil
	case c.Old:
		c.Old = nil
	case c.Resumable:
		c.Resumable = nil
	}
}

// Resume returns what the next dial resumes, or nil.
func (c *Connections) Resume() *mcpbridge.Resume {
	if c.Resumable != nil && !c.IsGone(c.Resumable) {
		return c.Resumable.Resume()
	}
	return nil
}
