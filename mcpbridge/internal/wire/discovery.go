package wire

import (
	"sync"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// Discovery watches the first request of the SDK, server/discover. Some servers do not answer a method that
// they do not know. To wait for their answer would take the whole connect timeout.
type Discovery struct {
	mu      sync.Mutex
	pending bool // server/discover was sent, and is not answered
	unwell  bool // it was refused for reasons that say nothing about the protocol
	held    int  // how many requests wait for something other than the server, such as credentials
}

// Hold notes that a request waits for something other than the server, until release is called.
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

// Refused notes that a request with this method was refused. If the server is unwell, the refusal says nothing
// about its protocol, although the SDK concludes that the server is old.
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

// IsUnanswered reports whether server/discover waits for an answer of the server.
func (d *Discovery) IsUnanswered() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pending && d.held == 0
}
