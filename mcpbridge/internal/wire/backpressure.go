package wire

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// maxRequests bounds the requests of a server whose answers it has not yet accepted. At most half of
	// them are questions that wait for a handler, because the bridge refuses further ones. So when this
	// bound is reached, the cause is a server that does not accept answers.
	maxRequests = 128
	// maxRequestBytes bounds the parameters of these requests together.
	maxRequestBytes = 16 << 20
	// maxTold bounds the notifications that the SDK has and has not handled. A large one counts
	// once for each toldBytes.
	maxTold   = 128
	toldBytes = 1 << 20
	// AnswerTime is how long the sending of one answer may take. It is also how long a connection on
	// which nothing is read, because a bound is reached, may last while the server accepts no answer.
	AnswerTime = 30 * time.Second
)

// ErrUntaken ends a connection, or the stream over which a server sends requests.
var ErrUntaken = errors.New("the server asks again and again, and does not take the answers")

// Backpressure bounds the requests and notifications that a server sends over one connection. The SDK has
// no bounds: it answers each request in a goroutine of its own, and keeps all notifications that it has not
// handled. The zero value is ready for use, and its methods may be called from any goroutine.
type Backpressure struct {
	mu      sync.Mutex
	open    map[jsonrpc.ID]int // requests that the SDK has not answered, with their sizes
	answers int                // how many answers are on their way to the server
	bytes   int                // the size of the requests, including those whose answers are on their way
	full    time.Time          // when the bound was reached, or the last answer was accepted since; zero if nobody waits
	room    chan struct{}      // closed when there is room again; nil while nobody waits

	told    int        // the notifications that the SDK may not have handled
	barrier jsonrpc.ID // see Barrier; invalid before the first one
	before  int        // how many notifications precede the barrier; 0 without a barrier under way
}

// Admit waits until the SDK may get a request or notification. It returns false for a request whose id
// is that of an open one, because the SDK would drop it without an answer. It returns [ErrUntaken] after
// [AnswerTime] in which the server accepted no answer.
func (r *Backpressure) Admit(ctx context.Context, msg *jsonrpc.Request) (ok bool, err error) {
	for {
		room, full, again := r.admit(msg)
		if room == nil {
			return !again, nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(time.Until(full.Add(AnswerTime))):
			r.hasRoom()
			return false, ErrUntaken
		}
	}
}

// hasRoom notes that nobody waits for room any longer.
func (r *Backpressure) hasRoom() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = time.Time{}
}

// admit counts a message, or returns a channel to wait for, and the time since which there is no room.
func (r *Backpressure) admit(msg *jsonrpc.Request) (room <-chan struct{}, full time.Time, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, again = r.open[msg.ID]
	size, count := len(msg.Params), len(r.open)+r.answers
	switch {
	case !msg.IsCall() && r.told < maxTold:
		r.told += 1 + size/toldBytes
	case msg.IsCall() && again:
	case msg.IsCall() && count < maxRequests && (count == 0 || r.bytes+size <= maxRequestBytes):
		if r.open == nil {
			r.open = map[jsonrpc.ID]int{}
		}
		r.open[msg.ID] = size
		r.bytes += size
	default:
		if r.room == nil {
			r.room = make(chan struct{})
		}
		if r.full.IsZero() {
			r.full = time.Now()
		}
		room = r.room
	}
	return room, r.full, again
}

// Barrier returns a ping that the SDK gets after many notifications, or nil. The SDK handles messages in
// their order: its answer shows that it has handled the notifications before the ping.
func (r *Backpressure) Barrier() *jsonrpc.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.before > 0 || r.told < maxTold/2 {
		return nil
	}
	if !r.barrier.IsValid() {
		r.barrier, _ = jsonrpc.MakeID("mcpactor-" + Nonce())
	}
	r.before = r.told
	return &jsonrpc.Request{ID: r.barrier, Method: "ping"}
}

// IsBarrier reports whether an answer of the SDK is for a [Backpressure.Barrier], and notes the answer. Such
// an answer is not sent to the server.
func (r *Backpressure) IsBarrier(id jsonrpc.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.before == 0 || id != r.barrier {
		return false
	}
	r.told, r.before, r.full = r.told-r.before, 0, time.Time{}
	r.wake()
	return true
}

// Answering notes that the answer to a request is on its way. From here on the server may use the id
// again. done notes that the server has accepted the answer, or that it was not sent.
func (r *Backpressure) Answering(id jsonrpc.ID) (done func(taken bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := r.open[id]
	delete(r.open, id)
	r.answers++
	return func(taken bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bytes -= size // until here the SDK keeps the request
		if r.answers--; taken {
			r.full = time.Time{}
		}
		r.wake()
	}
}

// wake wakes all calls of Admit that wait for room.
func (r *Backpressure) wake() {
	if r.room != nil {
		close(r.room)
		r.room = nil
	}
}
