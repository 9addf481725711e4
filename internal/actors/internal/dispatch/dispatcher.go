// Package dispatch runs the mailboxes of actors, and the work that leaves them.
package dispatch

import (
	"slices"
	"sync"
	"time"
)

// Dispatcher runs mailboxes, and what leaves them, on goroutines that stay for
// a while: a new one for each run would begin with a small stack and grow it
// each time, which took half of the time of the actors' part of a call. The one
// that has worked last is the first to work again, so that few are kept busy.
// It may be used from any goroutine. The zero value is ready.
type Dispatcher struct {
	mu     sync.Mutex
	idle   []chan<- func() // goroutines that wait for work, the last one last
	unused int             // how many of the first of them had none since the last sweep
	sweeps bool            // one is coming
}

// idleWorker is how long a goroutine waits for work, at least.
const idleWorker = 100 * time.Millisecond

// Schedule runs f on a goroutine that waits for work, or on a new one.
func (d *Dispatcher) Schedule(f func()) {
	d.mu.Lock()
	last := len(d.idle) - 1
	if last < 0 {
		d.mu.Unlock()
		go d.serve(f)
		return
	}
	worker := d.idle[last]
	d.idle = d.idle[:last]
	d.unused = min(d.unused, last)
	d.mu.Unlock()
	worker <- f
}

// Throughput is how many messages a mailbox takes before it lets others run.
func (d *Dispatcher) Throughput() int { return 300 }

// serve runs f, and whatever comes while it waits.
func (d *Dispatcher) serve(f func()) {
	work := make(chan func(), 1) // nobody waits for us
	for f != nil {
		f()
		d.rest(work)
		f = <-work
	}
}

// rest keeps a goroutine for later.
func (d *Dispatcher) rest(worker chan<- func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = append(d.idle, worker)
	if !d.sweeps {
		d.sweeps = true
		time.AfterFunc(idleWorker, d.sweep)
	}
}

// sweep ends the goroutines that had nothing to do since the sweep before.
func (d *Dispatcher) sweep() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, worker := range d.idle[:d.unused] {
		worker <- nil
	}
	d.idle = slices.Delete(d.idle, 0, d.unused)
	d.unused = len(d.idle)
	if d.sweeps = d.unused > 0; d.sweeps {
		time.AfterFunc(idleWorker, d.sweep)
	}
}
