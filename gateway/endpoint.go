package gateway

import (
	"context"
	"sync"

	"github.com/mcpactor/mcpactor/internal/listclass"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

// endpoint is what clients have learned about a server. Those that reach the server in the same way share it. If the
// configuration of the server depends on the scope, each client has an endpoint of its own.
type endpoint struct {
	*silence
	used *used
	of   *mcpbridge.Server

	mu    sync.Mutex
	cause error // why the server is down, if a client has waited for its lists in vain
}

// newEndpoint returns the endpoint of a server. store is where it is kept what clients learn, or nil.
func newEndpoint(store mcpbridge.Store, srv *mcpbridge.Server) *endpoint {
	if store == nil { // what is learned ends with the process
		store = new(resume.Memory)
	}
	class := classOf(*srv)
	return &endpoint{silence: newSilence(store, srv.Name, class), used: newUsed(store, srv.Name, class), of: srv}
}

// classOf identifies a server by its command or URL, and not by what belongs to clients.
func classOf(srv mcpbridge.Server) string {
	srv.Auth, srv.HTTPClient, srv.PerKey, srv.ListClass = nil, nil, nil, nil
	return listclass.Of(context.Background(), &srv, messages.Key{Server: srv.Name}, nil)
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
