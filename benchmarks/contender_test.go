package benchmarks

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// client is a way to call the tool of a server. Each key has a session of its own.
type client interface {
	call(ctx context.Context, key string) error
	// drop closes the session of a key, and waits for that.
	drop(ctx context.Context, key string) error
	close()
}

// opener opens a client of a server. It opens no session.
type opener func(route) (client, error)

// contender is a name in the dimension "how".
type contender struct {
	how  string
	open opener
}

// compare runs a sub-benchmark for each contender.
func compare(b *testing.B, r route, contenders []contender, measure func(*testing.B, client)) {
	for _, one := range contenders {
		var c client // stays open while the benchmark runs again with a larger b.N
		b.Run("how="+one.how, func(b *testing.B) {
			if c == nil {
				var err error
				c, err = one.open(r)
				require.NoError(b, err)
			}
			measure(b, c)
		})
		if c != nil {
			c.close()
		}
	}
}

// oneKey is the key of benchmarks with a single key.
const oneKey = "a"

// measureCalls measures calls of so many callers.
func measureCalls(b *testing.B, callers int, c client) {
	if other, ok := c.(*otherProcess); ok {
		other.measure(b, callers)
		return
	}
	b.ReportAllocs()
	require.NoError(b, c.call(context.Background(), oneKey)) // opens the session, which outlives this run
	b.ResetTimer()
	defer countCPU(b)()
	if callers == 1 {
		for b.Loop() {
			require.NoError(b, c.call(b.Context(), oneKey))
		}
		return
	}
	b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := c.call(b.Context(), oneKey); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// countCPU reports the CPU time of this process between this call and that of the function that it
// returns.
func countCPU(b *testing.B) (report func()) {
	began := cpuTime()
	return func() { b.ReportMetric(float64(cpuTime()-began)/float64(b.N), "cpu-ns/op") }
}

// measureParts measures operations, one after the other. An operation returns how long the part took
// that counts as its time.
func measureParts(b *testing.B, operation func() time.Duration) {
	var total time.Duration
	for b.Loop() {
		total += operation()
	}
	b.ReportMetric(float64(total)/float64(b.N), "ns/op")
}

// concurrently runs call n times from several goroutines, with the number of the run.
func concurrently(goroutines, n int, call func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(goroutines)
	for i := range n {
		group.Go(func() error { return call(i) })
	}
	return group.Wait()
}
