package actors

import (
	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/messages"
)

// ClientCall is an operation of a client, with the values of the context of its caller. The
// client releases the values when it has the reply.
type ClientCall struct {
	Op     messages.Operation
	Values caller.Values
}

// Value returns what a context of the call has for a key: the attributes and the trace of
// its operation, and the values of its caller.
func (k *call) Value(key any) any {
	switch key.(type) {
	case caller.AttributesKey:
		return &k.op.Head().Attributes
	case caller.TraceKey:
		return &k.op.Head().Trace
	}
	return k.values.Value(key)
}
