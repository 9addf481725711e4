//go:build unix

package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
)

// largeScope begins the scopes whose results are large.
const largeScope = "large-"

// bySize opens sessions with large results for some scopes.
type bySize struct{ small, large instant }

func (d bySize) Dial(_ context.Context, req clusterapi.DialRequest) (clusterapi.Conn, error) {
	if len(req.Key.Scope) > len(largeScope) && req.Key.Scope[:len(largeScope)] == largeScope {
		return d.large, nil
	}
	return d.small, nil
}

// keys is how many keys the benchmarks of several members call.
const keys = 1000

// BenchmarkThroughput makes calls of many keys from 64 callers, which are spread over the members.
// The members share the processors.
func BenchmarkThroughput(b *testing.B) {
	for _, r := range []route{overNothing(5), overMemory()} {
		for _, n := range []int{1, 3} {
			members := clusterOf(b, n, r, 0)
			openAll(b, members)
			b.Run(fmt.Sprintf("transport=%s/members=%d", r.transport, n), func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(32)
				var callers, next atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					client := members[int(callers.Add(1))%n].Client()
					for pb.Next() {
						if _, err := call(b.Context(), client, scope(int(next.Add(7919)%keys))); err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			})
			for _, m := range members {
				m.Stop(context.Background())
			}
		}
	}
}

func scope(i int) string { return fmt.Sprint("conversation-", i) }

// openAll calls all keys once, and returns how many sessions each member has.
func openAll(b *testing.B, members []*cluster.Member) map[string]int {
	var mu sync.Mutex
	on := map[string]int{}
	var wait sync.WaitGroup
	var next atomic.Int64
	for range 64 {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < keys; i = int(next.Add(1)) - 1 {
				member, err := call(b.Context(), members[i%len(members)].Client(), scope(i))
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				on[member]++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return on
}

// BenchmarkJoin has a third member join two members with 1,000 open sessions. The time of an operation is
// that from its start until all keys were called again.
func BenchmarkJoin(b *testing.B) {
	r := overMemory()
	hub := cluster.NewInProcess()
	members := []*cluster.Member{joins(b, hub, r, "member-0", 0), joins(b, hub, r, "member-1", 0)}
	know(b, members)
	openAll(b, members)
	var moved int
	var started, slowest time.Duration
	for b.Loop() {
		began := time.Now()
		third := joins(b, hub, r, "member-2", 0)
		started += time.Since(began)
		know(b, append(members[:2:2], third))
		again := time.Now()
		moved += openAll(b, members)["member-2"]
		slowest += time.Since(again)
		b.StopTimer()
		require.NoError(b, third.Stop(context.Background()))
		know(b, members)
		openAll(b, members)
		b.StartTimer()
	}
	b.ReportMetric(float64(started.Milliseconds())/float64(b.N), "start-ms/op")
	b.ReportMetric(float64(slowest.Milliseconds())/float64(b.N), "calls-ms/op")
	b.ReportMetric(float64(moved)/float64(b.N), "moved/op")
	b.ReportMetric(keys, "keys")
}
