package wire

import (
	"sync"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// Discovery watches the SDK's first request, server/discover. Some servers ignore a method
// that they do not know, and waiting for them would take all the time there is to connect.
type Discovery struct {
	mu      sync.Mutex
	pending bool
	unwell  bool // it was refused for reasons that say nothing of the protocol
	held    int  // how many wait for something else than the server
}

// Hold stops the time for the server until release is called.
func (d *Discovery) Hold() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.held--
	}
}

// Asked notes the method of a request that is sent.
func (d *Discovery) Asked(method string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = method == rpc.MethodDiscover
}

// Answered notes that the server has answered.
func (d *Discovery) Answered() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = false
}

// Refused notes that a request with this method was refused. If the server is unwell, that says
// nothing of the protocol, but the SDK takes the server for one that is old.
func (d *Discovery) Refused(method string, e *mcpbridge.Error) {
	if method == rpc.MethodDiscover && (e.Class == mcpbridge.ServerError || e.Class == mcpbridge.RateLimited) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.unwell = true
	}
}

// IsConclusive reports whether the answer shows which protocols the server speaks.
func (d *Discovery) IsConclusive() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.unwell
}

// IsUnanswered reports whether server/discover waits for the server.
func (d *Discovery) IsUnanswered() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending && d.held == 0
}
