package gateway

import (
	"slices"

	"github.com/mcpactor/mcpactor/internal/identity"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// holderOf returns the attribute that names the clients of a scope as the holder of handles, in sessions that other clients share. No other client has the
// name, and one that returns has it again.
func holderOf(scope string) messages.Attributes {
	holder := messages.NewAttributes(map[string]string{messages.HolderAttribute: scope})
	if holder.Validate() != nil { // it is too long
		sum := identity.NewSum()
		sum.Add(scope)
		holder = messages.NewAttributes(map[string]string{messages.HolderAttribute: sum.String()})
	}
	return holder
}

// mints reports whether an operation calls a tool that mints a handle: it may wait for its turn.
func mints(handles []mcpbridge.Handle, op messages.Operation) bool {
	call, isCall := op.(*messages.CallTool)
	return isCall && slices.ContainsFunc(handles, func(h mcpbridge.Handle) bool { return h.Mint == call.Params.Name })
}
