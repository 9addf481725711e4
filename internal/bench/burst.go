package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

const (
	// burstWidth is how many calls a careful program lets run at once over HTTP: as
	// many as there are calls would be as many sockets.
	burstWidth = 64
	// Busy is the unit of the share of calls that were refused.
	Busy = "busy/op"
)

// burst is many calls of one key at once, until the last is answered.
func (p *place) burst() (all []*Case) {
	calls := 10_000
	if p.cfg.Quick {
		calls = 100
	}
	for _, w := range []wire{p.overMemory(), p.overJSON()} {
		width := burstWidth
		if w.url == "" {
			width = calls
		}
		c := &Case{
			Scenario: "burst", Params: params("transport", w.name, "calls", calls), Ops: calls, Rounds: 4,
			About: "calls of one key at once, the time of all by their number", Baseline: nameBare,
		}
		c.contenders = []contender{
			{nameBare, func(ctx context.Context) (*running, error) {
				s, err := w.open(ctx)
				if err != nil {
					return nil, err
				}
				return bursting(narrow(width, s.call), s.close), nil
			}},
			{nameMutexMap, func(context.Context) (*running, error) {
				m := newMutexMap(many, w.open)
				return bursting(narrow(width, func(ctx context.Context) error { return m.call(ctx, oneKey) }), m.close), nil
			}},
			{nameClient, func(context.Context) (*running, error) { // with room for all
				s, err := supervise(w.server, supervisor.Config{MaxWaiting: calls})
				if err != nil {
					return nil, err
				}
				return bursting(func(ctx context.Context) error { return s.call(ctx, oneKey) }, s.close), nil
			}},
			{"bounded", func(context.Context) (*running, error) { // as it is by default
				s, err := supervise(w.server, supervisor.Config{})
				if err != nil {
					return nil, err
				}
				return bursting(func(ctx context.Context) error { return s.call(ctx, oneKey) }, s.close), nil
			}},
		}
		all = append(all, c)
	}
	return all
}

// narrow lets so many calls run at once.
func narrow(width int, call func(context.Context) error) func(context.Context) error {
	gate := make(chan struct{}, width)
	return func(ctx context.Context) error {
		gate <- struct{}{}
		defer func() { <-gate }()
		return call(ctx)
	}
}

// bursting makes all calls of a round at once. The latencies are those of the calls
// that were not refused.
func bursting(call func(context.Context) error, close func() error) *running {
	return &running{callers: 1, close: close, round: func(ctx context.Context, n int) (Sample, error) {
		if err := call(ctx); err != nil { // there is a session
			return nil, err
		}
		var mu sync.Mutex
		latencies := make([]time.Duration, 0, n)
		var busy atomic.Int64
		var start sync.WaitGroup
		start.Add(1)
		done := atOnce(n, func() error {
			start.Wait()
			began := time.Now()
			err := call(ctx)
			took := time.Since(began)
			if errors.Is(err, messages.CodeBusy) {
				busy.Add(1)
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, took)
			return err
		})
		time.Sleep(20 * time.Millisecond) // all stand at the start
		var m meter
		m.start()
		start.Done()
		err := <-done
		s := m.stop(n)
		s.latencies(latencies)
		s[Busy] = float64(busy.Load()) / float64(n)
		return s, err
	}}
}
