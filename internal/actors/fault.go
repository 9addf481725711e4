package actors

import (
	"fmt"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// forCaller returns the cause, for the callers that wait for the session. If a call broke
// the connection, the cause does not contain what the server answered to that call.
func forCaller(f *Fault) string {
	if f.Dialing {
		return f.Cause.Class.String() + ": " + f.Cause.ForCaller()
	}
	return f.Cause.Error()
}

// fail is the only place that panics. Proto.Actor then restarts the session. The reason is
// a [*Fault], or the reason of a panic that was recovered.
func fail(reason any) {
	panic(reason)
}

// bugFault returns the fault for a panic that is a bug.
func bugFault(key messages.Key, reason any) *Fault {
	cause := &mcpbridge.Error{Class: mcpbridge.Internal, Detail: fmt.Sprintf("panic: %T", reason)}
	return &Fault{Key: key, Class: mcpbridge.Internal, Cause: cause}
}
