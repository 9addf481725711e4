package bridge

import (
	"context"
	"sync"
	"time"
)

// logWait bounds how long a result waits for the log messages before it. The SDK drops one that it cannot decode.
const logWait = 200 * time.Millisecond

// logOrder keeps the order of log messages and results: the SDK handles a message in a goroutine of its own, which may be later than the
// result that came after it. The zero value is ready for use. Its methods may be called from any goroutine.
type logOrder struct {
	mu            sync.Mutex
	read, handled uint64
	changed       chan struct{} // closed when one is handled; nil while nobody waits
}

// arrived notes that a log message was read from the connection.
func (o *logOrder) arrived() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.read++
}

// passed notes that a log message was passed on.
func (o *logOrder) passed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.handled < o.read { // or else a wait has been too long
		o.handled++
	}
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// await waits until the log messages that were read so far are passed on, or ctx ends.
func (o *logOrder) await(ctx context.Context) {
	var timeout <-chan time.Time
	o.mu.Lock()
	defer o.mu.Unlock()
	for last := o.read; o.handled < last; {
		if o.changed == nil {
			o.changed = make(chan struct{})
		}
		if timeout == nil {
			timer := time.NewTimer(logWait)
			defer timer.Stop()
			timeout = timer.C
		}
		changed := o.changed
		o.mu.Unlock()
		select {
		case <-changed:
			o.mu.Lock()
		case <-ctx.Done():
			o.mu.Lock()
			return
		case <-timeout:
			o.mu.Lock()
			o.handled = max(o.handled, last)
		}
	}
}
