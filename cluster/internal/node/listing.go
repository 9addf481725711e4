package node

import "github.com/mcpactor/mcpactor/messages"

// A list that scopes of several members share is asked for at one member, the owner of the key of the list, before the
// server is asked for it:
//
//	member of the scope     owner of the list       member of the scope
//	       │ operation, List       │                        │
//	       ├──────────────────────▶│ its catalogue has the  │
//	       │◀───────── list ───────┤ list, or lists on the  │
//	       │                       │ scope's own session    │
//	       │                       ├───── operation ───────▶│ session ──▶ server
//	       │◀───────── list ───────┤◀──────── list ─────────┤
//
// The owner of the list lets others wait meanwhile. A member that cannot reach it asks the server itself.

// asksForList reports whether an operation asks the owner of a list.
func (h *history) asksForList() bool { return h.List != (messages.Key{}) }

// routedBy returns the key whose owner a command is for. ok is false if it is for all members.
func (h *history) routedBy(cmd messages.Command) (key messages.Key, ok bool) {
	if h.asksForList() {
		return h.List, true
	}
	return keyOf(cmd)
}
