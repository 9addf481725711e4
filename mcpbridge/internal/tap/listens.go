package tap

import (
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// listens are the requests for subscriptions/listen that the server has not answered yet. Its methods may be called from any
// goroutine.
type listens struct {
	mu      sync.Mutex
	waiting map[jsonrpc.ID]chan struct{} // closed when the request is answered
}

// begin adds a request, and returns a channel that is closed when it is answered.
func (l *listens) begin(id jsonrpc.ID) (answered <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting = map[jsonrpc.ID]chan struct{}{}
	}
	l.waiting[id] = make(chan struct{})
	return l.waiting[id]
}

// end notes that the request with an id is answered, if it is one.
func (l *listens) end(id jsonrpc.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if answered := l.waiting[id]; answered != nil {
		close(answered)
		delete(l.waiting, id)
	}
}

// acknowledged returns the id, on the wire, of the request that the parameters of an acknowledgement name, or none.
func acknowledged(raw json.RawMessage) (onWire jsonrpc.ID) {
	var params mcp.SubscriptionsAcknowledgedParams
	_ = json.Unmarshal(raw, &params)
	onWire, _ = jsonrpc.MakeID(params.Meta[mcp.MetaKeySubscriptionID])
	return onWire
}
