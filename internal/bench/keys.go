package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/mcpactor/mcpactor/supervisor"
)

// manyKeys calls one of many keys after the other, whatever key it is asked for.
type manyKeys struct {
	client
	keys   []string
	stride int64
	last   atomic.Int64
}

func (m *manyKeys) call(ctx context.Context, _ string) error {
	return m.client.call(ctx, m.keys[m.last.Add(m.stride)%int64(len(m.keys))])
}

// rotated starts a contender that calls many keys, after it has opened some of them.
func rotated(goroutines, opened, keys int, stride int64, r route, open opener) starter {
	return func(ctx context.Context) (*running, error) {
		c, err := open(r)
		if err != nil {
			return nil, err
		}
		m := &manyKeys{client: c, stride: stride}
		for i := range keys {
			m.keys = append(m.keys, "conversation-"+strconv.Itoa(i))
		}
		err = concurrently(min(openers, opened), opened, func(i int) error { return c.call(ctx, m.keys[i]) })
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		m.last.Store(int64(opened - 1)) // the next key is not open, unless all are
		return repeating(ctx, goroutines, m)
	}
}

// openers is how many goroutines open keys.
const openers = 64

// churn is calls of keys in rotation, of which a tenth may be open: each call opens a
// session and evicts another.
func (p *setup) churn() (all []*benchCase) {
	limit, keys := p.size(100, 10), p.size(1000, 100)
	for _, r := range []route{p.overMemory(), p.overJSON()} {
		for _, n := range []int{1, 8} {
			all = append(all, &benchCase{
				name: fmt.Sprintf("churn/transport=%s/cap=%d/keys=%d/callers=%d", r.transport, limit, keys, n), callers: n,
				contenders: []contender{
					{perCallName, repeated(n, r, openPerCall)},
					{mutexMapName, rotated(n, limit, keys, 1, r, openMutexMap(limit))},
					{clientName, rotated(n, limit, keys, 1, r, openClient(supervisor.Config{MaxSessions: limit}))},
				},
			})
		}
	}
	return all
}

// registry is calls of all the keys that there are, in an order without locality. The
// sessions answer at once.
//
// With one caller, each message finds its session idle. With many callers, a session
// that has several messages handles them in one run, which is more likely with fewer keys.
func (p *setup) registry() (all []*benchCase) {
	sizes := []int{10, 1000, 100_000}[:p.size(3, 2)]
	const stride = 7919 // a prime that does not divide the number of keys
	for _, n := range []int{1, 64} {
		c := &benchCase{name: fmt.Sprintf("registry/callers=%d", n), callers: n, rounds: 5}
		for _, keys := range sizes {
			open := openMessage(supervisor.Config{MaxSessions: keys, MaxDials: openers})
			c.contenders = append(c.contenders, contender{fmt.Sprint(messageName, "-", keys), rotated(n, keys, keys, stride, instantly(), open)})
		}
		for _, keys := range sizes {
			c.contenders = append(c.contenders, contender{fmt.Sprint(mutexMapName, "-", keys), rotated(n, keys, keys, stride, instantly(), openMutexMap(unlimited))})
		}
		all = append(all, c)
	}
	return all
}
