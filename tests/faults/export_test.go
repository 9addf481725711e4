package faults

import "github.com/mcpactor/mcpactor/internal/dial"

// Wrap returns a dialer with the hooks.
func (h Hooks) Wrap(inner dial.Dialer) dial.Dialer { return h.wrap(inner) }
