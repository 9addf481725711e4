package bench

import (
	"context"
	"sync"
	"time"
)

// herdSize is how many callers meet the session that expired.
func (p *place) herdSize() int {
	if p.cfg.Quick {
		return 20
	}
	return 200
}

// Rebuilds is the unit of how many sessions were opened for one that expired.
const Rebuilds = "rebuilds/op"

// herd is 200 callers that hit one expired session at once, until the last of them
// has its result.
func (p *place) herd() []*Case {
	size := p.herdSize()
	return []*Case{{
		Scenario: "herd", Params: params("transport", nameJSON, "callers", size),
		About:    "callers that meet one expired session, until the last has its result; bare: initialize, then the same calls",
		Baseline: nameBare,
		contenders: []contender{
			{nameBare, func(context.Context) (*running, error) {
				w, _ := p.expiring()
				return oneByOne(func(ctx context.Context, _ int) (time.Duration, error) {
					began := time.Now()
					s, err := w.open(ctx)
					if err != nil {
						return 0, err
					}
					defer s.close() //nolint:errcheck // it is not measured
					err = together(size, func() error { return s.call(ctx) })
					return time.Since(began), err
				}, noClose), nil
			}},
			{"one-call", func(context.Context) (*running, error) { // initialize, then one call
				w, _ := p.expiring()
				return oneByOne(w.firstBare, noClose), nil
			}},
			{nameMutexMap, func(context.Context) (*running, error) {
				w, seen := p.expiring()
				m := newMutexMap(many, w.open)
				return p.stampede(seen, func(ctx context.Context) error { return m.call(ctx, oneKey) }, m.close), nil
			}},
			{nameClient, func(context.Context) (*running, error) {
				w, seen := p.expiring()
				s, err := supervise(w.server, patient)
				if err != nil {
					return nil, err
				}
				return p.stampede(seen, func(ctx context.Context) error { return s.call(ctx, oneKey) }, s.close), nil
			}},
		},
	}}
}

// stampede makes the session expire before each herd.
func (p *place) stampede(seen *witness, call func(context.Context) error, close func() error) *running {
	size := p.herdSize()
	return &running{callers: 1, close: close, round: func(ctx context.Context, n int) (Sample, error) {
		rebuilds := int64(0)
		s, err := each(n, func(int) (time.Duration, error) {
			if err := together(size, func() error { return call(ctx) }); err != nil { // all is warm
				return 0, err
			}
			if err := p.expire(ctx); err != nil {
				return 0, err
			}
			before, began := seen.asked.Load(), time.Now()
			err := together(size, func() error { return call(ctx) })
			took := time.Since(began)
			rebuilds += seen.asked.Load() - before
			return took, err
		})
		if err == nil {
			s[Rebuilds] = float64(rebuilds) / float64(n)
		}
		return s, err
	}}
}

// together calls so many times at once, and returns when all are done, with an error
// of one of them.
func together(n int, call func() error) error {
	var wg sync.WaitGroup
	var once sync.Once
	var failed error
	for range n {
		wg.Go(func() {
			if err := call(); err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	wg.Wait()
	return failed
}
