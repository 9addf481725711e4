package streamable

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// elsewhere are the requests of a session whose response may come on any of its streams, because the server
// has answered 202, or the stream with the response broke off. The response to any other
// request counts only in the answer to its own POST.
type elsewhere struct {
	mu      sync.Mutex
	waiting map[string]awaited // by the id of the SDK, as JSON
	early   map[string][]byte  // responses that came before their 202, by the same id
	size    int                // of all of early
	streams chan struct{}      // closed when the stream that was claimed ends; nil without such a stream
}

// awaited is a request whose response may come on any stream.
type awaited struct {
	ex       *wire.Exchange
	brokeOff bool // the stream with the response broke off
}

// await notes that the response to the last request of an exchange may come on any stream.
func (e *elsewhere) await(ex *wire.Exchange, brokeOff bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting == nil {
		e.waiting = map[string]awaited{}
	}
	e.waiting[string(ex.MessageID())] = awaited{ex, brokeOff}
}

// earlyFor is how long a response that nobody waits for is kept. maxEarly bounds how many are kept.
const (
	earlyFor = time.Second
	maxEarly = 64
)

// keep keeps a response that may have come before its 202, for earlyFor. It does not keep one that is nil, because it is too
// large. All responses together may have limit bytes. The caller holds mu.
func (e *elsewhere) keep(key string, data []byte, limit int) {
	if _, twice := e.early[key]; twice || data == nil || len(e.early) == maxEarly || len(data) > limit-e.size {
		return
	}
	if e.early == nil {
		e.early = map[string][]byte{}
	}
	e.early[key] = bytes.Clone(data)
	e.size += len(data)
	time.AfterFunc(earlyFor, func() { e.takeEarly(key) })
}

// takeEarly removes and returns a response that was kept, or returns nil.
func (e *elsewhere) takeEarly(key string) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	data := e.early[key]
	delete(e.early, key)
	e.size -= len(data)
	return data
}

// keyOf returns an id of the SDK as JSON.
func keyOf(id jsonrpc.ID) string {
	number, _ := id.Raw().(int64)
	return strconv.FormatInt(number, 10)
}

// forget notes that nobody waits for the response to an exchange any longer.
func (e *elsewhere) forget(ex *wire.Exchange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		return
	}
	if id := string(ex.MessageID()); e.waiting[id].ex == ex {
		delete(e.waiting, id)
	}
}

// take removes and returns the exchange that waits for a response, with an id of the SDK. If there is none, it keeps the response
// and returns nil: both is one step, because the 202 may come right now.
func (e *elsewhere) take(id jsonrpc.ID, data []byte, limit int) *wire.Exchange {
	key := keyOf(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	one, waits := e.waiting[key]
	if !waits {
		e.keep(key, data, limit)
		return nil
	}
	delete(e.waiting, key)
	return one.ex
}

// broken returns the exchanges whose streams broke off.
func (e *elsewhere) broken() (all []*wire.Exchange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range e.waiting {
		if one.brokeOff {
			all = append(all, one.ex)
		}
	}
	return all
}

// claim asks for the right to open the stream on which responses are awaited. If ended is nil, the caller has the right,
// and calls release when its stream has ended. Otherwise another stream is open until ended is closed.
func (e *elsewhere) claim() (ended <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.streams != nil {
		return e.streams
	}
	e.streams = make(chan struct{})
	return nil
}

// release notes that the claimed stream has ended.
func (e *elsewhere) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.streams != nil {
		close(e.streams)
		e.streams = nil
	}
}
