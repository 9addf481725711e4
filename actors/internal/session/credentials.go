package session

import (
	"errors"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// credentials says whether the server has refused the credentials, until that is forgotten or a connection is opened.
type credentials struct {
	refused *mcpbridge.Error // why, or nil
	until   time.Time        // until then, no dial with the same credentials
}

// refusal returns why the credentials were refused, or nil, for a dial, which gives up if they are still the same.
func (c *credentials) refusal() *mcpbridge.Error {
	if time.Now().Before(c.until) {
		return c.refused
	}
	return nil
}

// endedDial reports whether a dial was given up because the credentials are still those that the server has refused.
func (c *credentials) endedDial(err error) bool {
	return c.refused != nil && errors.Is(err, c.refused)
}
