package admission

import "github.com/mcpactor/mcpactor/messages"

// Decision is what a gate has decided.
type Decision struct {
	Do      Do
	Session *Session             // nil for AllowControl and Continue
	Reason  messages.EvictReason // of Evict
	Control *Control             // of AllowControl
}

// Do is what is to be done.
type Do string

// The decisions. What follows from Evict is reported with Drain, and before the next decision.
const (
	Dial         Do = "dial"          // the session has a slot and a permit
	Evict        Do = "evict"         // the session is to drain
	Abandon      Do = "abandon"       // the session is to end its dial, and may want another
	AllowControl Do = "allow control" // the control has a permit
	Continue     Do = "continue"      // the next decision is to be taken in another step
)

// evict returns the decision to evict a session.
func evict(s *Session, reason messages.EvictReason) (Decision, bool) {
	return Decision{Do: Evict, Session: s, Reason: reason}, true
}
