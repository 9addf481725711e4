package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpactor/mcpactor/supervisor"
)

// oneKey is the key of cases with a single key.
const oneKey = "a"

// callerCounts are the numbers of concurrent callers of warm calls.
func (p *setup) callerCounts() []int {
	if p.cfg.Quick {
		return []int{1, 8}
	}
	return []int{1, 8, 64}
}

// warm is calls on a session that is open.
func (p *setup) warm() (all []*benchCase) {
	for _, r := range []route{p.overMemory(), p.overStdio(nil), p.overJSON(), p.overSSE()} {
		url := r.server.URL
		for _, n := range p.callerCounts() {
			c := &benchCase{name: fmt.Sprintf("warm/transport=%s/callers=%d", r.transport, n), callers: n}
			add := func(name string, start starter) { c.contenders = append(c.contenders, contender{name, start}) }
			add(bareName, repeated(n, r, openBare))
			if url != "" {
				add(untunedName, repeated(n, p.overHTTP(r.transport, url, p.untuned), openBare))
			}
			add(mutexMapName, repeated(n, r, openMutexMap(unlimited)))
			add(messageName, repeated(n, r, openMessage(supervisor.Config{})))
			add(clientName, repeated(n, r, openClient(supervisor.Config{})))
			if r.transport != "stdio" || n == 1 && !p.cfg.Quick { // otherwise the start of processes is measured
				add(perCallName, repeated(n, r, openPerCall))
			}
			if url != "" {
				c.contenders = append(c.contenders, p.others(url, n)...)
			}
			all = append(all, c)
		}
	}
	return all
}

// repeated starts a contender that makes one call again and again, from several
// goroutines.
func repeated(goroutines int, r route, open opener) starter {
	return func(ctx context.Context) (*running, error) {
		c, err := open(r)
		if err != nil {
			return nil, err
		}
		return repeating(ctx, goroutines, c)
	}
}

// repeating makes the first call of a client, which opens its session.
func repeating(ctx context.Context, goroutines int, c client) (*running, error) {
	if err := c.call(ctx, oneKey); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return &running{close: c.close, round: func(ctx context.Context, n int) (sample, error) {
		return inParallel(goroutines, n, func(int) error { return c.call(ctx, oneKey) })
	}}, nil
}

// path is calls on sessions that answer at once: what supervision adds.
func (p *setup) path() (all []*benchCase) {
	for _, n := range p.callerCounts() {
		all = append(all, &benchCase{name: fmt.Sprintf("path/callers=%d", n), callers: n, contenders: []contender{
			{mutexMapName, repeated(n, instantly(), openMutexMap(unlimited))},
			{messageName, repeated(n, instantly(), openMessage(supervisor.Config{}))},
			{clientName, repeated(n, instantly(), openClient(supervisor.Config{}))},
		}})
	}
	return all
}
