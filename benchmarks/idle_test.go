package benchmarks

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/supervisor"
)

// BenchmarkIdle measures the memory (heap and stacks) of sessions that nobody uses, in the client's
// process. What a supervisor or a map takes by itself does not count.
func BenchmarkIdle(b *testing.B) {
	const sessions = 500
	for _, stream := range []string{"with", "without"} {
		own := newHTTPClient(256) // whose connections are all of this benchmark
		r := overHTTP("http-json", origin+pathJSON, own)
		r.server.HTTPClient, r.server.NoStream = own, stream == "without"
		r.open = dialsHTTP(r.server.URL, own, r.server.NoStream, "")
		b.Run("transport="+r.name+"/stream="+stream, func(b *testing.B) {
			compare(b, r, []contender{
				{"bare", openBare},
				{"mutex-map", openMutexMap(unlimited)},
				{"mcpactor", openClient(supervisor.Config{MaxSessions: sessions})},
			}, func(b *testing.B, c client) {
				if s, ok := c.(*supervised); ok {
					s.growTables()
				}
				each := func(do func(context.Context, string) error) {
					for i := range sessions {
						require.NoError(b, do(b.Context(), strconv.Itoa(i)))
					}
					own.CloseIdleConnections() // of sessions that are dropped
				}
				each(c.call) // what the process keeps after its first sessions does not count
				each(c.drop)
				var bytes, goroutines float64
				for b.Loop() {
					bytesBefore, goroutinesBefore := usage()
					each(c.call)
					bytesAfter, goroutinesAfter := usage()
					bytes, goroutines = bytes+bytesAfter-bytesBefore, goroutines+goroutinesAfter-goroutinesBefore
					each(c.drop)
				}
				b.ReportMetric(bytes/float64(sessions*b.N), "B/session")
				b.ReportMetric(goroutines/float64(sessions*b.N), "goroutines/session")
				b.ReportMetric(0, "ns/op") // it is mostly waiting: leave it out
			})
		})
	}
}

// usage returns what the process holds after its activity has ended: goroutines that wait for more work
// have exited, and their stacks are free.
func usage() (bytes, goroutines float64) {
	const pause = 150 * time.Millisecond // longer than a goroutine waits for more work
	for began, before := time.Now(), -1; before != runtime.NumGoroutine() && time.Since(began) < 3*time.Second; {
		before = runtime.NumGoroutine()
		time.Sleep(pause)
		runtime.GC()
	}
	for range 5 { // finalizers free more, and each collection halves stacks that are too large
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse), float64(runtime.NumGoroutine())
}
