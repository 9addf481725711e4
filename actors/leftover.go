package actors

import (
	"context"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// end ends one session on its server, and returns why it could not. was is false when
// the server did not know it any more.
func (u leftover) close(cfg *Config, key messages.Key) (was bool, reason string) {
	conn := u.conn
	if conn == nil {
		ctx, cancel := context.WithTimeout(context.Background(), cfg.CloseTimeout)
		defer cancel()
		var err error
		conn, err = dial(ctx, cfg.Dialer, mcpbridge.DialRequest{Key: key, Resume: u.resume, Only: true, Down: func(*mcpbridge.Error) {}})
		if e := mcpbridge.AsError(err); e != nil {
			if e.Session == mcpbridge.Gone {
				return false, ""
			}
			return false, e.Error()
		}
	}
	attached := u.conn != nil || conn.Info().Attached
	if err := closeWithin(cfg.CloseTimeout, conn.Close); err != nil {
		return false, err.Error()
	}
	return attached, ""
}

// unended is a session that could not be ended: it has no transport any more, but the
// server may know it still. Closing its key again tries again.
type leftover struct {
	conn   mcpbridge.Conn    // what it had; nil for one of before our restart
	resume *mcpbridge.Resume // what is known of it, where there is no conn
	reason string
}

// id returns the session's id, or "".
func (u leftover) sessionID() string {
	resume := u.resume
	if u.conn != nil {
		resume = u.conn.Resume()
	}
	if resume == nil {
		return ""
	}
	return resume.SessionID
}
