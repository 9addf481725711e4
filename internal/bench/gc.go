package bench

import (
	"context"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The units of what garbage collection takes.
const (
	PeakHeap = "peak-heap-B" // the most that the heap of our process came to
	OpsPerGC = "ops/gc"      // from one collection to the next
)

// collection is how much garbage a process may have before it is collected.
type collection struct {
	name    string
	percent int   // GOGC
	limit   int64 // GOMEMLIMIT
}

// collections are those that are measured. The first is Go's default.
func (p *place) collections() []collection {
	all := []collection{{"100", 100, math.MaxInt64}, {"200", 200, math.MaxInt64}, {"400", 400, math.MaxInt64}, {"800", 800, math.MaxInt64}, {"off-256MiB", -1, 256 << 20}}
	if p.cfg.Quick {
		return []collection{all[0], all[len(all)-1]}
	}
	return all
}

// gc is warm calls with several settings of the garbage collector.
func (p *place) gc() (all []*Case) {
	callerCounts := []int{1, 64}
	if p.cfg.Quick {
		callerCounts = []int{1, 8}
	}
	for _, w := range []wire{p.overMemory(), p.overJSON()} {
		for _, n := range callerCounts {
			c := &Case{
				Scenario: "gc", Params: params("transport", w.name, "callers", n), Rounds: 5, Longer: 5, // several collections each
				About: "a warm call, by GOGC of our process", Baseline: nameBare + "-100",
			}
			for _, how := range []contender{{nameBare, startBare(w, n)}, {nameClient, startClient(w, n)}} {
				for _, g := range p.collections() {
					c.contenders = append(c.contenders, contender{how.name + "-" + g.name, g.around(how.start, n)})
				}
			}
			all = append(all, c)
		}
	}
	return all
}

// around returns a contender that exists only in its rounds, and has a setting there:
// what the others keep alive would put off its collections.
func (g collection) around(start func(context.Context) (*running, error), callers int) func(context.Context) (*running, error) {
	return func(context.Context) (*running, error) {
		return &running{callers: callers, close: noClose, round: func(ctx context.Context, n int) (s Sample, err error) {
			defer debug.SetGCPercent(debug.SetGCPercent(g.percent))
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(g.limit))
			r, err := start(ctx)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, r.close()) }()
			runtime.GC() // what others have left
			before, peak := readGC().cycles, watchHeap()
			s, err = r.round(ctx, n)
			most, cycles := peak(), readGC().cycles-before
			if err != nil {
				return nil, err
			}
			s[PeakHeap], s[OpsPerGC] = most, float64(n)/float64(max(1, cycles))
			return s, nil
		}}, nil
	}
}

// gcState is what the runtime says.
type gcState struct {
	cycles uint64  // collections that nobody asked for
	heap   float64 // what it takes, live and garbage
}

func readGC() gcState {
	s := []metrics.Sample{
		{Name: "/gc/cycles/automatic:gc-cycles"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(s)
	return gcState{s[0].Value.Uint64(), float64(s[1].Value.Uint64() + s[2].Value.Uint64())}
}

// watchHeap looks at the heap now and then, and returns what says how large it was at
// most.
func watchHeap() (peak func() float64) {
	stop, result := make(chan struct{}), make(chan float64)
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for most := 0.0; ; {
			most = max(most, readGC().heap)
			select {
			case <-tick.C:
			case <-stop:
				result <- most
				return
			}
		}
	}()
	return func() float64 { close(stop); return <-result }
}
