package wire

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// maxRequests bounds the requests of a server that it was not told the answer to. At most half
	// of them are questions that somebody thinks about; further ones are refused. So when
	// no other request is let in, it is the server that does not take the answers.
	maxRequests = 128
	// maxRequestBytes bounds the parameters of these requests together.
	maxRequestBytes = 16 << 20
	// maxTold bounds the notifications that the SDK has and has not handled. A large one counts as
	// many, one for each toldBytes.
	maxTold   = 128
	toldBytes = 1 << 20
	// AnswerTime is how long the server may take no answer while it waits to be read, and how long
	// it may take over one.
	AnswerTime = 30 * time.Second
)

// ErrUntaken ends a connection, or the stream on which a server asks.
var ErrUntaken = errors.New("the server asks again and again, and does not take the answers")

// Requests bounds what a server says over one connection: the SDK answers each request in a goroutine
// of its own, of which it would start any number, and keeps any number of notifications that it has
// not handled. The zero value is ready for use, and its methods may be called from any goroutine.
type Requests struct {
	mu      sync.Mutex
	open    map[jsonrpc.ID]int // the SDK has them, and no answer; with their sizes
	answers int                // on their way to the server
	bytes   int                // of the requests, with those that are answered
	full    time.Time          // since when the server waits to be read and takes no answer; zero if it does not wait
	room    chan struct{}      // closed when there is room again; nil while nobody waits

	told   int        // the notifications that the SDK has, as far as is known
	mark   jsonrpc.ID // of the request that follows some of them; invalid before the first
	marked int        // how many precede it; 0 if it is answered
}

// Admit waits until the SDK may get a request or notification. It returns false for a request that the
// server has asked already, which the SDK would drop without an answer, and [ErrUntaken]
// after [AnswerTime] in which the server took no answer.
func (r *Requests) Admit(ctx context.Context, msg *jsonrpc.Request) (ok bool, err error) {
	for {
		room, full, again := r.admit(msg)
		if room == nil {
			return !again, nil
		}
		timer := time.NewTimer(time.Until(full.Add(AnswerTime)))
		select {
		case <-room:
		case <-ctx.Done():
			err = ctx.Err()
		case <-timer.C:
			r.hasRoom()
			err = ErrUntaken
		}
		if timer.Stop(); err != nil {
			return false, err
		}
	}
}

// hasRoom ends the time in which there was none.
func (r *Requests) hasRoom() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = time.Time{}
}

// admit lets a message in, or returns what to wait for, and since when there is no room.
func (r *Requests) admit(msg *jsonrpc.Request) (room <-chan struct{}, full time.Time, again bool) {
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

// Mark returns a request that the SDK gets after many notifications, or nil. The SDK handles
// notifications one after the other, and answers the request when it has handled those before.
func (r *Requests) Mark() *jsonrpc.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.marked > 0 || r.told < maxTold/2 {
		return nil
	}
	if !r.mark.IsValid() {
		r.mark, _ = jsonrpc.MakeID("mcpactor-" + Nonce())
	}
	r.marked = r.told
	return &jsonrpc.Request{ID: r.mark, Method: "ping"}
}

// IsMark reports whether the SDK answers the request of [Requests.Mark], and notes it. The answer is
// not for the server.
func (r *Requests) IsMark(id jsonrpc.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.marked == 0 || id != r.mark {
		return false
	}
	r.told, r.marked, r.full = r.told-r.marked, 0, time.Time{}
	r.wake()
	return true
}

// Answering notes that the answer to a request is on its way. From here on the server may use the id
// again. done notes that the answer was taken, or given up.
func (r *Requests) Answering(id jsonrpc.ID) (done func(taken bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := r.open[id]
	delete(r.open, id)
	r.answers++
	return func(taken bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bytes -= size // the SDK has the request until here
		if r.answers--; taken {
			r.full = time.Time{}
		}
		r.wake()
	}
}

// wake lets those look again who wait for room.
func (r *Requests) wake() {
	if r.room != nil {
		close(r.room)
		r.room = nil
	}
}
