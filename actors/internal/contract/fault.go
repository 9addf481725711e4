package contract

import (
	"fmt"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// ForCaller returns the cause, for the callers that wait for the session. If a call broke
// the connection, the cause does not contain what the server answered to that call.
func ForCaller(f *actors.Fault) string {
	if f.Dialing {
		return f.Cause.Class.String() + ": " + f.Cause.ForCaller()
	}
	return f.Cause.Error()
}

// Fail is the only place that panics. Proto.Actor then restarts the session. The reason is
// a [*actors.Fault], or the reason of a panic that was recovered.
func Fail(reason any) {
	panic(reason)
}

// BugFault returns the fault for a panic that is a bug.
func BugFault(key messages.Key, reason any) *actors.Fault {
	cause := &mcpbridge.Error{Class: mcpbridge.Internal, Detail: fmt.Sprintf("panic: %T", reason)}
	return &actors.Fault{Key: key, Class: mcpbridge.Internal, Cause: cause}
}
