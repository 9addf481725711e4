package bench

import (
	"context"
	"strconv"
	"time"

	"github.com/mcpactor/mcpactor/supervisor"
)

// each measures operations one after the other. do prepares one, runs it, and says
// how long the part took that counts.
func each(n int, do func(i int) (time.Duration, error)) (Sample, error) {
	latencies := make([]time.Duration, n)
	var sum time.Duration
	var m meter
	m.start()
	for i := range n {
		took, err := do(i)
		if err != nil {
			return nil, err
		}
		latencies[i] = took
		sum += took
	}
	s := m.stop(n)
	s[NsPerOp] = float64(sum) / float64(n)
	s.latencies(latencies)
	return s, nil
}

// oneByOne returns a contender that is measured by each.
func oneByOne(do func(ctx context.Context, i int) (time.Duration, error), close func() error) *running {
	return &running{callers: 1, close: close, round: func(ctx context.Context, n int) (Sample, error) {
		return each(n, func(i int) (time.Duration, error) { return do(ctx, i) })
	}}
}

// first is the first call of a key, which opens its session. The closing is not
// in the time, but in the garbage.
func (p *place) first() (all []*Case) {
	for _, w := range []wire{p.overMemory(), p.overStdio(), p.overJSON(), p.overSSE()} {
		all = append(all, &Case{
			Scenario: "first", Params: params("transport", w.name),
			About: "opening a session and its first call", Baseline: nameBare,
			contenders: []contender{
				{nameBare, func(context.Context) (*running, error) { return oneByOne(w.firstBare, noClose), nil }},
				{nameMutexMap, func(context.Context) (*running, error) {
					m := newMutexMap(many, w.open)
					return oneByOne(func(ctx context.Context, i int) (time.Duration, error) {
						key := strconv.Itoa(i)
						began := time.Now()
						err := m.call(ctx, key)
						took := time.Since(began)
						m.remove(key)
						m.closing.Wait()
						return took, err
					}, m.close), nil
				}},
				{nameClient, func(context.Context) (*running, error) {
					s, err := supervise(w.server, supervisor.Config{})
					if err != nil {
						return nil, err
					}
					return oneByOne(func(ctx context.Context, i int) (time.Duration, error) {
						scope := strconv.Itoa(i)
						began := time.Now()
						if err := s.call(ctx, scope); err != nil {
							return 0, err
						}
						took := time.Since(began)
						_, err := s.client.CloseScope(ctx, scope)
						return took, err
					}, s.close), nil
				}},
			},
		})
	}
	return all
}

func noClose() error { return nil }

// firstBare opens a session and calls.
func (w wire) firstBare(ctx context.Context, _ int) (time.Duration, error) {
	began := time.Now()
	s, err := w.open(ctx)
	if err != nil {
		return 0, err
	}
	defer s.close() //nolint:errcheck // it is not measured
	err = s.call(ctx)
	return time.Since(began), err
}
