package actors

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// leftover is an MCP session that the server may still have, and that no session actor
// uses: closing it failed, or it is in the store, from before a restart of this process.
// The next close command for its key closes it.
type leftover struct {
	conn   mcpbridge.Conn    // nil for an MCP session from the store
	resume *mcpbridge.Resume // from the store, if conn is nil
	reason string            // why it could not be closed
}

// sessionID returns the id of the MCP session, or "".
func (l leftover) sessionID() string {
	resume := l.resume
	if l.conn != nil {
		resume = l.conn.Resume()
	}
	if resume == nil {
		return ""
	}
	return resume.SessionID
}

// close closes the MCP session within a timeout. reason says why it could not, or is empty. existed is
// false when the server did not know the MCP session. It may block.
func (l leftover) close(cfg *Config, timeout time.Duration, key messages.Key) (existed bool, reason string) {
	conn := l.conn
	if conn == nil {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		var err error
		conn, err = dial(ctx, cfg.Dialer, mcpbridge.DialRequest{Key: key, Resume: l.resume, Only: true, Down: func(*mcpbridge.Error) {}})
		if e := mcpbridge.AsError(err); e != nil {
			if e.Session == mcpbridge.Gone {
				return false, ""
			}
			return false, e.Error()
		}
	}
	attached := l.conn != nil || conn.Info().Attached
	if err := closeWithin(timeout, conn.Close); err != nil {
		return false, err.Error()
	}
	return attached, ""
}
