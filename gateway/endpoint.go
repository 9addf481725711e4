package gateway

import (
	"sync"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// endpoint is what clients have learned about a server. Those that reach the server in the same way share it. If the
// configuration of the server depends on the scope, each client has an endpoint of its own.
type endpoint struct {
	*silence
	of *mcpbridge.Server

	mu    sync.Mutex
	cause error // why the server is down, if a client has waited for its lists in vain
}

// newEndpoint returns the endpoint of a server. For the store, see [newSilence].
func newEndpoint(store mcpbridge.Store, srv *mcpbridge.Server) *endpoint {
	return &endpoint{silence: newSilence(store, *srv), of: srv}
}

// noteDown notes why the server is down, or with nil that it is not.
func (e *endpoint) noteDown(cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cause = cause
}

// down returns why the server is down, or nil.
func (e *endpoint) down() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}
