package streamable

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// awaitedResponses are the requests of a session whose response may come on any of its streams, because the server
// has answered 202, or the stream with the response broke off. The response to any other
// request counts only in the answer to its own POST.
type awaitedResponses struct {
	mu      sync.Mutex
	waiting map[string]awaitedRequest // by the id of the SDK, as JSON
	early   map[string][]byte         // responses that came before their 202, by the same id
	size    int                       // of all of early
	streams chan struct{}             // closed when the stream that was claimed ends; nil without such a stream
}

// awaitedRequest is a request whose response may come on any stream.
type awaitedRequest struct {
	ex       *wire.Exchange
	brokeOff bool // the stream with the response broke off
}

// await notes that the response to the last request of an exchange may come on any stream.
func (a *awaitedResponses) await(ex *wire.Exchange, brokeOff bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string]awaitedRequest{}
	}
	a.waiting[string(ex.MessageID())] = awaitedRequest{ex, brokeOff}
}

// earlyFor is how long a response that nobody waits for is kept. maxEarly bounds how many are kept.
const (
	earlyFor = time.Second
	maxEarly = 64
)

// keep keeps a response that may have come before its 202, for earlyFor. It does not keep one that is nil, because it is too
// large. All responses together may have limit bytes. The caller holds mu.
func (a *awaitedResponses) keep(key string, data []byte, limit int) {
	if _, twice := a.early[key]; twice || data == nil || len(a.early) == maxEarly || len(data) > limit-a.size {
		return
	}
	if a.early == nil {
		a.early = map[string][]byte{}
	}
	a.early[key] = bytes.Clone(data)
	a.size += len(data)
	time.AfterFunc(earlyFor, func() { a.takeEarly(key) })
}

// takeEarly removes and returns a response that was kept, or returns nil.
func (a *awaitedResponses) takeEarly(key string) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	data := a.early[key]
	delete(a.early, key)
	a.size -= len(data)
	return data
}

// keyOf returns an id of the SDK as JSON.
func keyOf(id jsonrpc.ID) string {
	number, _ := id.Raw().(int64)
	return strconv.FormatInt(number, 10)
}

// forget notes that nobody waits for the response to an exchange any longer.
func (a *awaitedResponses) forget(ex *wire.Exchange) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) == 0 {
		return
	}
	if id := string(ex.MessageID()); a.waiting[id].ex == ex {
		delete(a.waiting, id)
	}
}

// take removes and returns the exchange that waits for a response, with an id of the SDK. If there is none, it keeps the response
// and returns nil: both is one step, because the 202 may come right now.
func (a *awaitedResponses) take(id jsonrpc.ID, data []byte, limit int) *wire.Exchange {
	key := keyOf(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	one, waits := a.waiting[key]
	if !waits {
		a.keep(key, data, limit)
		return nil
	}
	delete(a.waiting, key)
	return one.ex
}

// broken returns the exchanges whose streams broke off.
func (a *awaitedResponses) broken() (all []*wire.Exchange) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.waiting {
		if one.brokeOff {
			all = append(all, one.ex)
		}
	}
	return all
}

// claim asks for the right to open the stream on which responses are awaited. If ended is nil, the caller has the right,
// and calls release when its stream has ended. Otherwise another stream is open until ended is closed.
func (a *awaitedResponses) claim() (ended <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.streams != nil {
		return a.streams
	}
	a.streams = make(chan struct{})
	return nil
}

// release notes that the claimed stream has ended.
func (a *awaitedResponses) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.streams != nil {
		close(a.streams)
		a.streams = nil
	}
}
