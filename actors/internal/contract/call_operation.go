package contract

import (
	"github.com/mcpactor/mcpactor/messages"
)

// Matches reports whether the message cancels a call.
func (m *CancelCalls) Matches(k *Call) bool {
	return k == m.Call || m.Call == nil && k.Serial <= m.UpTo
}

// Tool returns the name of the tool that is called, or "".
func (k *Call) Tool() string {
	if op, ok := k.Op.(*messages.CallTool); ok {
		return op.Params.Name
	}
	return ""
}

// Subscription returns the URI that the call subscribes to or unsubscribes from. Such
// calls for one URI run one after the other, so that the last one decides.
func (k *Call) Subscription() (uri string, is bool) {
	switch op := k.Op.(type) {
	case *messages.Subscribe:
		return op.URI, true
	case *messages.Unsubscribe:
		return op.URI, true
	}
	return "", false
}

// IsDurable reports whether the call is found again by its id.
func (k *Call) IsDurable() bool {
	op, is := k.Op.(*messages.CallTool)
	return is && op.Durable && op.ID != ""
}

// Reopen is the operation of a [messages.Restart]: it opens the next session. Its reply is
// [messages.Done].
type Reopen struct{ messages.Header }

// Method returns the name of the command.
func (*Reopen) Method() string { return "Restart" }
