package contract

// A session in doubt may open a second session beside its first, in its own slot: see
// [dial.Request.Admit]. That takes a permit to dial, like any other session. The slot is not returned
// before the second session has ended, or a dial has adopted it.
//
//	ControlWanted ──▶ waits for a permit ──Allowed──▶ opens ──ControlOpened──▶ open ──ControlEnded──▶
type (
	// ControlWanted asks for such a permit. The reply is [Allowed].
	ControlWanted struct{ Of Registration }
	// ControlOpened returns the permit.
	ControlOpened struct{ Of *ControlWanted }
	// ControlEnded says that the second session does not use the slot any more, or withdraws the request.
	ControlEnded struct{ Of *ControlWanted }
)
