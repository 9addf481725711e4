//go:build unix

package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/supervisor"
)

// memory returns how many bytes of heap and stacks are in use.
func memory() float64 {
	var m runtime.MemStats
	for range 2 { // finalizers run after the first
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkIdle lets members idle for a second for each operation. It reports the memory of all
// members, and the CPU time that they take for heartbeats and leases. The witness is a value in the process, or the hosts, which
// write to their directories.
func BenchmarkIdle(b *testing.B) {
	for _, c := range []struct {
		witness string
		start   func(*testing.B, int, route, time.Duration) []*cluster.Member
		lease   time.Duration
		members []int
	}{
		{"process", clusterOf, 2 * time.Second, []int{1, 2, 4, 8}},
		{"process", clusterOf, 200 * time.Millisecond, []int{1, 2, 4, 8}},
		{"hosts", clusterOfHosts, 2 * time.Second, []int{3, 8}},
	} {
		for _, n := range c.members {
			b.Run(fmt.Sprintf("witness=%s/lease=%v/members=%d", c.witness, c.lease, n), func(b *testing.B) {
				before := memory()
				members := c.start(b, n, overNothing(5), c.lease)
				for _, m := range members { // every member has written to every other one
					for i := range 2 * n {
						_, err := call(b.Context(), m.Client(), scope(i))
						require.NoError(b, err)
					}
				}
				report := countCPU(b)
				for b.Loop() {
					<-time.After(time.Second)
				}
				report()
				b.ReportMetric(memory()-before, "B")
				for _, m := range members {
					m.Stop(context.Background())
				}
			})
		}
	}
}

// BenchmarkMemory opens 20,000 sessions, which takes all shards, with a member that is alone, and
// with a supervisor without a cluster. It reports the memory that they take.
func BenchmarkMemory(b *testing.B) {
	const sessions = 20_000
	r := overNothing(5)
	open := func(c *supervisor.Client) {
		var next atomic.Int64
		var wait sync.WaitGroup
		for range 64 {
			wait.Go(func() {
				for i := int(next.Add(1)) - 1; i < sessions; i = int(next.Add(1)) - 1 {
					if _, err := call(b.Context(), c, scope(i)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wait.Wait()
	}
	for _, how := range []string{"alone", "member"} {
		b.Run("how="+how, func(b *testing.B) {
			for b.Loop() {
				var client *supervisor.Client
				if how == "alone" {
					client = alone(b, r)
				} else {
					client = clusterOf(b, 1, r, 0)[0].Client()
				}
				before := memory()
				open(client)
				b.ReportMetric(memory()-before, "B")
			}
		})
	}
}
