package session

import (
	"errors"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// refusal is why the server has refused the credentials, until it is forgotten or a connection is opened.
type refusal struct {
	cause *mcpbridge.Error // or nil
	until time.Time        // until then, no dial with the same credentials
}

// current returns the refusal for a dial, which gives up if the credentials are still the same, or nil.
func (r *refusal) current() *mcpbridge.Error {
	if time.Now().Before(r.until) {
		return r.cause
	}
	return nil
}

// endedDial reports whether a dial was given up because the credentials are still those that the server has refused.
func (r *refusal) endedDial(err error) bool {
	return r.cause != nil && errors.Is(err, r.cause)
}
