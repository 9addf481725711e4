package contract

import (
	"context"
	"errors"
	"time"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Leftover is an MCP session that the server may still have, and that no session actor
// uses: closing it failed, or it is in the store, from before a restart of this process.
// The next close command for its key closes it.
type Leftover struct {
	Conn   dial.Conn         // nil for an MCP session from the store
	Resume *mcpbridge.Resume // from the store, if conn is nil
	Reason string            // why it could not be closed
}

// SessionID returns the id of the MCP session, or "".
func (l Leftover) SessionID() string {
	resume := l.Resume
	if l.Conn != nil {
		resume = l.Conn.Resume()
	}
	if resume == nil {
		return ""
	}
	return resume.SessionID
}

// IsResumable reports whether another process may resume the MCP session.
func (l Leftover) IsResumable() bool { return l.SessionID() != "" }

// Close closes the MCP session of a key within a timeout. reason says why it could not, or is empty. existed is
// false when the server did not know the MCP session. An opening that will never be answered is given up: it was reported
// when the first attempt failed. Close may block.
func (l Leftover) Close(store KeyStore, timeout time.Duration) (existed bool, reason string) {
	conn := l.Conn
	if conn == nil {
		ctx, cancel := context.WithTimeout(store.Life, timeout)
		defer cancel()
		var err error
		conn, err = Dial(ctx, store.Cfg.Dialer, dial.Request{Key: store.Key, Resume: l.Resume, Only: true, Down: func(*mcpbridge.Error) {}})
		if e := mcpbridge.AsError(err); e != nil {
			if e.Session == mcpbridge.Gone {
				return false, ""
			}
			return false, e.Error()
		}
	}
	attached := l.Conn != nil || conn.Info().Attached
	err := CloseWithin(timeout, conn.Close)
	switch {
	case err == nil:
		return attached, ""
	case errors.Is(err, dial.ErrUnanswered) && !l.IsResumable():
		return false, ""
	}
	return false, err.Error()
}
