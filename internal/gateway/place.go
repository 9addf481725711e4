package gateway

import (
	"sync"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// place is where a server is reached. What one client learns there, all others know that reach the server in the same place, and
// nobody else: if the configuration of the server depends on the scope, each client has a place of its own.
type place struct {
	*silence

	mu    sync.Mutex
	cause error // why the server is down, if its lists were waited for in vain
}

// newPlace returns the place of a server. See [newSilence] for the store.
func newPlace(store mcpbridge.Store, srv mcpbridge.Server) *place {
	return &place{silence: newSilence(store, srv)}
}

// noteDown notes why the server is down, or that it is not.
func (p *place) noteDown(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cause = cause
}

// down returns why the server is down, or nil.
func (p *place) down() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}
