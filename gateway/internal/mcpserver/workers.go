package mcpserver

import "sync/atomic"

// workers are goroutines that run the requests of a client, and end with it. A few of them stay for the next request: a new one
// would grow its stack each time.
type workers struct {
	ended   <-chan struct{}
	next    chan func()  // to a worker that waits
	waiting atomic.Int32 // how many do
}

// maxWaiting bounds how many workers wait.
const maxWaiting = 16

// run runs f on a worker that waits, or on a new one.
func (w *workers) run(f func()) {
	select {
	case w.next <- f:
	default:
		go w.work(f)
	}
}

// work runs f, and then what comes while the worker waits.
func (w *workers) work(f func()) {
	for {
		f()
		if w.waiting.Add(1) > maxWaiting {
			w.waiting.Add(-1)
			return
		}
		select {
		case f = <-w.next:
			w.waiting.Add(-1)
		case <-w.ended:
			return
		}
	}
}
