package connections

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// conn is a connection whose MCP session can be resumed, or not.
type conn struct {
	dial.Conn
	resume *mcpbridge.Resume
}

func (c *conn) Resume() *mcpbridge.Resume { return c.resume }

func resumable(id string) *conn { return &conn{resume: &mcpbridge.Resume{SessionID: id}} }

var gone = &mcpbridge.Error{Session: mcpbridge.Gone}

// A connection that is lost is detached, and its MCP session is resumed by the next dial.
func TestLostConnectionIsResumedByTheNextDial(t *testing.T) {
	var all Connections
	first, second := resumable("1"), resumable("1")
	all.Opened(first)
	require.True(t, all.Restarted())
	require.False(t, all.Restarted())
	require.Nil(t, all.Resume(), "it is not detached")
	all.Closing = first
	all.Detached(second)
	require.Same(t, first, all.Closing, "another one was detached")
	all.Detached(first)
	require.Nil(t, all.Closing)
	require.Equal(t, first.resume, all.Resume())
	all.Opened(second)
	require.Equal(t, []dial.Conn{second}, all.All())
	require.Nil(t, all.Resume())
}

// An MCP session that has expired is not resumed. It is kept for a second session that was opened beside it.
func TestExpiredConnectionIsKeptAndNotResumed(t *testing.T) {
	var all Connections
	first := resumable("1")
	all.Opened(first)
	all.NoteGone(first, &mcpbridge.Error{Session: mcpbridge.Broken})
	all.NoteGone(resumable("2"), gone)
	require.False(t, all.IsGone(first))
	all.NoteGone(first, gone)
	require.True(t, all.IsGone(first))
	all.Restarted()
	all.Detached(first)
	require.Same(t, first, all.Resumable)
	require.Nil(t, all.Resume())
}

// A connection without an MCP session to resume is forgotten when it is detached, and is closed in a drain.
func TestConnectionThatCannotBeResumedIsForgotten(t *testing.T) {
	var all Connections
	first := &conn{}
	all.Opened(first)
	all.Restarted()
	all.Detached(first)
	require.Empty(t, all.All())

	all.Unwanted(first)
	all.Closing = first
	all.DetachedForGood(first)
	require.Equal(t, []dial.Conn{first}, all.All())
	require.Nil(t, all.Closing)
}

// A drain closes the connections one after the other.
func TestConnectionsAreClosedOneAfterTheOther(t *testing.T) {
	all := Connections{Current: resumable("3"), Old: resumable("2"), Resumable: resumable("1")}
	var closed []dial.Conn
	for left := all.All(); len(left) > 0; left = all.All() {
		closed = append(closed, left[0])
		all.Closing = left[0]
		all.Closed(left[0])
		require.Nil(t, all.Closing)
	}
	require.Len(t, closed, 3)
}
