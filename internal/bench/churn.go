package bench

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/mcpactor/mcpactor/supervisor"
)

// churn is calls of keys in rotation, of which only a tenth may be open: each call
// opens a session and makes another go.
func (p *place) churn() (all []*Case) {
	limit, keys := 100, 1000
	if p.cfg.Quick {
		limit, keys = 10, 100
	}
	for _, w := range []wire{p.overMemory(), p.overJSON()} {
		for _, n := range []int{1, 8} {
			all = append(all, &Case{
				Scenario: "churn", Params: params("transport", w.name, "cap", limit, "keys", keys, "callers", n),
				About: "a call of the next of many keys, which evicts another", Baseline: namePerCall,
				contenders: []contender{
					{namePerCall, startPerCall(w, n)},
					{nameMutexMap, func(ctx context.Context) (*running, error) {
						m := newMutexMap(limit, w.open)
						return rotate(ctx, n, limit, keys, m.call, m.close)
					}},
					{nameClient, func(ctx context.Context) (*running, error) {
						s, err := supervise(w.server, supervisor.Config{MaxSessions: limit})
						if err != nil {
							return nil, err
						}
						return rotate(ctx, n, limit, keys, s.call, s.close)
					}},
				},
			})
		}
	}
	return all
}

// rotate returns a contender that calls one key after the other, and begins with as
// many as may be open.
func rotate(ctx context.Context, callers, limit, keys int, call func(context.Context, string) error, close func() error) (*running, error) {
	var next atomic.Int64
	one := func(ctx context.Context) error { return call(ctx, strconv.Itoa(int(next.Add(1))%keys)) }
	for range limit {
		if err := one(ctx); err != nil {
			close() //nolint:errcheck // the call counts
			return nil, err
		}
	}
	return warm(callers, one, close), nil
}
