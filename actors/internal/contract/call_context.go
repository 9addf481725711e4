package contract

import (
	"github.com/mcpactor/mcpactor/internal/caller"
)

// Value returns what a context of the call has for a key: the attributes and the trace of
// its operation, and the values of its caller.
func (k *Call) Value(key any) any {
	switch key.(type) {
	case caller.AttributesKey:
		return &k.Op.Head().Attributes
	case caller.TraceKey:
		return &k.Op.Head().Trace
	}
	return k.Values.Value(key)
}
