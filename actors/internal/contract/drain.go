package contract

import (
	"github.com/mcpactor/mcpactor/messages"
)

// Changes reports whether a drain asks for more than the one before: it leaves running calls less
// time, or leaves an MCP session open that would be closed to restart the session.
func (o Drain) Changes(before Drain) bool {
	return o.urgency() > before.urgency() || o.Leave && !before.Leave && o.urgency() == before.urgency()
}

// urgency orders drains by the time that they leave running calls, the longest first.
func (o Drain) urgency() int {
	switch {
	case o.Now:
		return 3
	case !o.Evict:
		return 2
	case o.Restart:
		return 1
	}
	return 0
}

// Code returns the code of calls that are cut off.
func (o *Drain) Code() messages.Code {
	if o.Moves {
		return messages.CodeLost
	}
	return messages.CodeClosed
}
