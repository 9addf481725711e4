package streamable

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// elsewhere are the requests of a session whose response may come on any of its streams: the server
// has answered 202, or the stream with the response broke off. The response to any other
// request counts only in the answer to its own POST.
type elsewhere struct {
	mu      sync.Mutex
	waiting map[string]awaited // by the id of the SDK, as JSON
	early   map[string][]byte  // responses that nobody waits for: their 202 may come soon
	size    int                // of all of early
	streams chan struct{}      // closed when the session has no stream to wait at; nil if it has none
}

// awaited is a request whose response may come on any stream.
type awaited struct {
	ex       *wire.Exchange
	brokeOff bool // the stream with the response
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

// earlyFor is how long a response that nobody waits for is kept, and maxEarly how many are.
const (
	earlyFor = time.Second
	maxEarly = 64
)

// keep keeps a response with an id of the SDK that has come before its 202, for a moment. All together
// have limit bytes at most.
func (e *elsewhere) keep(id jsonrpc.ID, data []byte, limit int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := keyOf(id)
	if _, twice := e.early[key]; twice || len(e.early) == maxEarly || len(data) > limit-e.size {
		return
	}
	if e.early == nil {
		e.early = map[string][]byte{}
	}
	e.early[key] = bytes.Clone(data)
	e.size += len(data)
	time.AfterFunc(earlyFor, func() { e.kept(key) })
}

// kept returns the response that was kept, or nil, and keeps it no more.
func (e *elsewhere) kept(key string) []byte {
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

// forget notes that nobody waits for the response any more.
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

// take returns the exchange that waits for the response with an id of the SDK, or nil. It waits no
// more.
func (e *elsewhere) take(id jsonrpc.ID) *wire.Exchange {
	key := keyOf(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	ex := e.waiting[key].ex
	delete(e.waiting, key)
	return ex
}

// broken returns the exchanges that wait since their streams broke off.
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

// claim makes the caller the one who opens a stream for those who wait: then ended is nil, and the
// caller calls release in the end. Otherwise another has one open, until ended is closed.
func (e *elsewhere) claim() (ended <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.streams != nil {
		return e.streams
	}
	e.streams = make(chan struct{})
	return nil
}

// release notes that the stream of the one who has claimed it has ended.
func (e *elsewhere) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.streams != nil {
		close(e.streams)
		e.streams = nil
	}
}
