package actors

import "time"

// dispatcher runs mailboxes, and what leaves them, on goroutines that stay for
// a while: a new one for each run would begin with a small stack and grow it
// each time, which took half of the time of the actors' part of a call.
type dispatcher chan func()

// idleWorker is how long a goroutine waits for work.
const idleWorker = 100 * time.Millisecond

// Schedule runs f on a goroutine that waits for work, or on a new one.
func (d dispatcher) Schedule(f func()) {
	select {
	case d <- f:
	default:
		go d.serve(f)
	}
}

// Throughput is how many messages a mailbox takes before it lets others run.
func (d dispatcher) Throughput() int { return 300 }

// serve runs f, and whatever comes while it waits.
func (d dispatcher) serve(f func()) {
	timer := time.NewTimer(idleWorker)
	defer timer.Stop()
	for {
		f()
		timer.Reset(idleWorker)
		select {
		case f = <-d:
		case <-timer.C:
			return
		}
	}
}
