package storelimit

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/mcpactor/mcpactor/messages"
)

// turns lets one request about each key run at a time, in the order in which they come.
type turns struct {
	mu     sync.Mutex
	queues map[messages.Key][]*turn // the first turn of each has begun
}

// turn is the turn of one request. Nil is that of a request about no key: it has begun.
type turn struct {
	of     *turns
	key    messages.Key
	begins chan struct{} // closed when the turn begins; nil if it has begun at once
}

// queue returns a turn after those of earlier requests about a key. It must be ended, also if it has not begun.
func (t *turns) queue(key *messages.Key) *turn {
	if key == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	last := &turn{of: t, key: key.Normal()}
	queue := t.queues[last.key]
	if len(queue) > 0 {
		last.begins = make(chan struct{})
	}
	t.queues[last.key] = append(queue, last)
	return last
}

// await waits until the turn begins, as long as a request may take.
func (t *turn) await(ctx context.Context) error {
	if t == nil || t.begins == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case <-t.begins:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: the store has not answered the last request for the key", ctx.Err())
	}
}

// end ends the turn, and begins the next one if this one had begun.
func (t *turn) end() {
	if t == nil {
		return
	}
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	queue := t.of.queues[t.key]
	if queue[0] != t {
		t.of.queues[t.key] = slices.DeleteFunc(queue, func(other *turn) bool { return other == t })
		return
	}
	if queue = queue[1:]; len(queue) == 0 {
		delete(t.of.queues, t.key)
		return
	}
	t.of.queues[t.key] = queue
	close(queue[0].begins)
}
