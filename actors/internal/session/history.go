package session

import "time"

// history is what a session knows of the connections that it has had.
type history struct {
	wasOpen      bool      // there has been a connection
	openedUnused bool      // the last connection was opened for no call, and no call came since
	openedAt     time.Time // when the last connection was opened
	since        time.Time // when the last MCP session was opened
	lostAt       time.Time // when the last connection ended
	wantedAt     time.Time // when a call last came while no connection was wanted
}

// stableAfter is how long a connection must last before a session without calls is
// reopened once more.
const stableAfter = time.Minute

// opened notes that there is a connection. isNew says that its MCP session is another one than before, and isUnused that no
// call waits for it. If it is not the first one, opened returns how long a connection was missed.
func (h *history) opened(isNew, isUnused bool) (missed time.Duration, again bool) {
	h.openedAt = time.Now()
	again = h.wasOpen
	if again {
		missed = min(h.openedAt.Sub(h.lostAt), h.openedAt.Sub(h.wantedAt))
		h.openedUnused = isUnused
	}
	if !again || isNew {
		h.since = h.openedAt
	}
	h.wasOpen = true
	return missed, again
}

// ended notes that the connection has ended, and returns how long it lasted.
func (h *history) ended(at time.Time) (lived time.Duration) {
	h.lostAt, lived = at, at.Sub(h.openedAt)
	h.openedUnused = h.openedUnused && lived < stableAfter
	return lived
}

// lifetime returns how long the last MCP session was open, or 0 if there was none.
func (h *history) lifetime() time.Duration {
	switch {
	case !h.wasOpen:
		return 0
	case h.lostAt.After(h.openedAt):
		return h.lostAt.Sub(h.since)
	}
	return time.Since(h.since)
}
