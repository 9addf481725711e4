package benchmarks

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/mcpactor/mcpactor/supervisor"
)

// openers is how many goroutines open keys.
const openers = 64

// rotation calls one of many keys after the other, whatever key it is asked for.
type rotation struct {
	client
	keys   []string
	stride int64
	last   atomic.Int64
}

func (m *rotation) call(ctx context.Context, _ string) error {
	return m.client.call(ctx, m.keys[m.last.Add(m.stride)%int64(len(m.keys))])
}

// openRotation opens the first of so many keys. The next call is of a key that is not open, unless all
// are.
func openRotation(opened, keys int, stride int64, open opener) opener {
	return func(r route) (client, error) {
		c, err := open(r)
		if err != nil {
			return nil, err
		}
		m := &rotation{client: c, stride: stride}
		for i := range keys {
			m.keys = append(m.keys, "conversation-"+strconv.Itoa(i))
		}
		m.last.Store(int64(opened) - stride)
		err = concurrently(openers, opened, func(i int) error { return c.call(context.Background(), m.keys[i]) })
		if err != nil {
			c.close()
		}
		return m, err
	}
}

// BenchmarkChurn measures a call of each of many keys in rotation, of which a tenth may be open: each
// call opens a session and evicts another.
func BenchmarkChurn(b *testing.B) {
	const limit, keys = 100, 1000
	for _, r := range []route{overMemory(), overJSON("")} {
		for _, callers := range []int{1, 8} {
			b.Run(fmt.Sprintf("transport=%s/cap=%d/keys=%d/callers=%d", r.name, limit, keys, callers), func(b *testing.B) {
				compare(b, r, []contender{
					{"per-call", openPerCall},
					{"mutex-map", openRotation(limit, keys, 1, openMutexMap(limit))},
					{"mcpactor", openRotation(limit, keys, 1, openClient(supervisor.Config{MaxSessions: limit}))},
				}, func(b *testing.B, c client) { measureCalls(b, callers, c) })
			})
		}
	}
}

// BenchmarkRegistry measures calls on sessions that answer at once, without MCP: what supervision
// adds. The keys are called in an order without locality.
//
// With one caller, each message finds its session idle. With many callers, a session that has several
// messages handles them in one run, which is more likely with fewer keys.
func BenchmarkRegistry(b *testing.B) {
	const stride = 7919 // a prime that does not divide the number of keys
	for _, callers := range []int{1, 8, 64} {
		for _, keys := range []int{1, 10, 1000, 100_000} {
			cfg := supervisor.Config{MaxSessions: keys, MaxDials: openers}
			b.Run(fmt.Sprintf("callers=%d/keys=%d", callers, keys), func(b *testing.B) {
				compare(b, instantly(), []contender{
					{"mutex-map", openRotation(keys, keys, stride, openMutexMap(unlimited))},
					{"message", openRotation(keys, keys, stride, openMessage(cfg))},
					{"mcpactor", openRotation(keys, keys, stride, openClient(cfg))},
				}, func(b *testing.B, c client) { measureCalls(b, callers, c) })
			})
		}
	}
}
