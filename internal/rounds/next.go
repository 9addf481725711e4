package rounds

import (
	"encoding/json"
	"maps"

	"github.com/mcpactor/mcpactor/messages"
)

// Next is a later round of an operation.
type Next struct {
	messages.Operation
	State   json.RawMessage // or nil
	Answers map[string]json.RawMessage
}

// Sent returns the operation that is sent: that of the first round, with the answers and the state.
func (n *Next) Sent() messages.Operation {
	h := *n.Head()
	h.Extra = maps.Clone(h.Extra)
	if h.Extra == nil {
		h.Extra = map[string]json.RawMessage{}
	}
	delete(h.Extra, "inputResponses")
	delete(h.Extra, "requestState")
	if len(n.Answers) > 0 {
		h.Extra["inputResponses"], _ = json.Marshal(n.Answers) // they are JSON
	}
	if n.State != nil {
		h.Extra["requestState"] = n.State
	}
	return messages.With(n.Operation, h)
}

// IsLater reports whether an operation is a later round: one that [Next.Sent] has returned, or that a caller sends who follows the rounds
// itself.
func IsLater(op messages.Operation) bool {
	extra := op.Head().Extra
	return extra["inputResponses"] != nil || extra["requestState"] != nil
}
