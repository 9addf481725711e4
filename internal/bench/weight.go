package bench

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// The units of memory, of a session or of a call.
const (
	BytesPerSession = "B/session"
	BytesPerCall    = "B/call"
	HeapBytes       = "heap-B"
	StackBytes      = "stack-B"
	Goroutines      = "goroutines"
	ServerBytes     = "server-B"     // of a stdio server's process
	SessionsPerGiB  = "sessions/GiB" // by the medians of the others
)

// weight is what the process holds, and its stdio servers.
type weight struct {
	heap, stack, goroutines, servers float64
}

// settleLimit bounds the wait for what was begun to come to rest.
const settleLimit = 3 * time.Second

// weigh returns what is held when all that was begun has come to rest: goroutines
// that wait for more work have gone, and their stacks.
func (p *place) weigh() weight {
	pause := 150 * time.Millisecond // longer than goroutines wait for more work
	if p.cfg.Quick {
		pause = 10 * time.Millisecond
	}
	var m runtime.MemStats
	for began, before := time.Now(), -1; before != runtime.NumGoroutine() && time.Since(began) < settleLimit; {
		before = runtime.NumGoroutine()
		time.Sleep(pause)
		runtime.GC()
	}
	for range 5 { // what finalizers have let go; and each halves the stacks that are too large
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return weight{float64(m.HeapAlloc), float64(m.StackInuse), float64(runtime.NumGoroutine()), p.servers()}
}

// sample returns what each of n things has added.
func (w weight) sample(before weight, n int, unit string) Sample {
	per := 1 / float64(n)
	heap, stack := (w.heap-before.heap)*per, (w.stack-before.stack)*per
	s := Sample{unit: heap + stack, HeapBytes: heap, StackBytes: stack, Goroutines: (w.goroutines - before.goroutines) * per}
	if servers := (w.servers - before.servers) * per; servers > 0 {
		s[ServerBytes] = servers
	}
	return s
}

// density adds how many sessions fit into a gigabyte, with what GOGC=100 lets the heap
// grow: to twice what lives. A weight that was lost in the noise has none.
func (s Sample) density() {
	if s[BytesPerSession] > 0 {
		s[SessionsPerGiB] = (1 << 30) / (2*s[BytesPerSession] + s[ServerBytes])
	}
}

// load holds n things for a moment.
type load struct {
	hold    func(ctx context.Context, n int) error
	release func() error
}

// weighed returns a contender that is weighed before and while it holds. What
// prepare makes is not in the weight.
func (p *place) weighed(unit string, prepare func() (load, error)) *running {
	return &running{callers: 1, close: noClose, round: func(ctx context.Context, n int) (Sample, error) {
		l, err := prepare()
		if err != nil {
			return nil, err
		}
		before := p.weigh()
		if err := l.hold(ctx, n); err != nil {
			return nil, errors.Join(err, l.release())
		}
		s := p.weigh().sample(before, n, unit)
		return s, l.release()
	}}
}
