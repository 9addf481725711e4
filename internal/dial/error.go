package dial

import "github.com/mcpactor/mcpactor/mcpbridge"

// AsError is [mcpbridge.AsError] for the error of a dial. Before there is a session, nothing can
// be lost or expire: these classes become [mcpbridge.Unavailable].
func AsError(err error) *mcpbridge.Error {
	e := *mcpbridge.AsError(err)
	e.Session = mcpbridge.Alive
	switch e.Class {
	case mcpbridge.Cancelled, mcpbridge.Deadline:
		return &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: "timed out while connecting", Err: err}
	case mcpbridge.Lost, mcpbridge.NotSent, mcpbridge.Expired:
		e.Class = mcpbridge.Unavailable
	}
	return &e
}
