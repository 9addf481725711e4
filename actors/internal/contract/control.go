package contract

// A session in doubt may open a second session beside its first, in its own slot: see
// [dial.Request.Admit]. That takes a permit to dial, like any other session. The slot is not returned
// before the second session has ended, or a dial has adopted it.
//
//	controlWanted ──▶ waits for a permit ──controlAllowed──▶ opens ──controlOpened──▶ open ──controlEnded──▶
type (
	// ControlWanted asks for such a permit. The reply is controlAllowed.
	ControlWanted struct{ Of Registration }
	// ControlAllowed says whether the second session may be opened.
	ControlAllowed struct{ Is bool }
	// ControlOpened returns the permit.
	ControlOpened struct{ Of *ControlWanted }
	// ControlEnded says that the second session does not use the slot any more, or withdraws the request.
	ControlEnded struct{ Of *ControlWanted }
)

// IgnoreDeadLetterLogging is for the case that the registry has stopped.
func (*ControlWanted) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging is for the case that whoever has asked waits no more.
func (*ControlAllowed) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging is for the case that the registry has stopped.
func (*ControlOpened) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging is for the case that the registry has stopped.
func (*ControlEnded) IgnoreDeadLetterLogging() {}
