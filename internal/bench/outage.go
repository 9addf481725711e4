package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpactor/mcpactor/supervisor"
)

// dials is the unit of attempts to open a session while a server is away.
const dials = "dials/op"

// dialCounter is a client that counts its attempts to open a session.
type dialCounter interface {
	client
	dials() (int64, error)
}

// outage is the time from the return of a server until each of 40 keys has answered a
// caller, who has repeated the call since the server went away.
func (p *setup) outage() (all []*benchCase) {
	keys, lengths := 40, []time.Duration{2 * time.Second, 10 * time.Second, time.Minute}
	if p.cfg.Quick {
		keys, lengths = 8, []time.Duration{time.Second}
	}
	for _, way := range []struct {
		name  string
		start func() (*flakyServer, error)
	}{{"http-refused", p.startRefusing}, {"http-503", p.startUnavailable}, {"stdio", p.startExiting}} {
		for _, length := range lengths {
			rounds := 3
			if p.cfg.Quick || length >= time.Minute {
				rounds = 1
			}
			through := func(open opener) starter {
				return func(context.Context) (*running, error) {
					server, err := way.start()
					if err != nil {
						return nil, err
					}
					c, err := open(server.route)
					if err != nil {
						server.close()
						return nil, err
					}
					round := 0
					return &running{
						close: func() error {
							defer server.close()
							return c.close()
						},
						round: func(ctx context.Context, _ int) (sample, error) {
							round++
							return server.outage(ctx, c.(dialCounter), keys, length, round)
						},
					}, nil
				}
			}
			all = append(all, &benchCase{
				name: fmt.Sprintf("outage/way=%s/away=%s", way.name, length), ops: 1, rounds: rounds,
				contenders: []contender{{mutexMapName, through(openMutexMap(unlimited))}, {clientName, through(openClient(supervisor.Config{}))}},
			})
		}
	}
	return all
}

// outage takes the server away for some time. Each key has a caller meanwhile, who
// repeats the call until it succeeds.
func (s *flakyServer) outage(ctx context.Context, c dialCounter, keys int, length time.Duration, round int) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, length+time.Minute)
	defer cancel()
	if !s.survives {
		round = 0
	}
	call := func(i int) error { return c.call(ctx, fmt.Sprint("key-", round, "-", i)) }
	if !s.survives { // the sessions are open before the outage
		if err := concurrently(keys, keys, call); err != nil {
			return nil, err
		}
	}
	before, err := c.dials()
	if err != nil {
		return nil, err
	}
	if err := s.leave(); err != nil {
		return nil, err
	}
	ends := make([]time.Time, keys)
	answered := make(chan error, 1)
	go func() {
		answered <- concurrently(keys, keys, func(i int) error {
			for ctx.Err() == nil && call(i) != nil {
				sleep(ctx, s.retry)
			}
			ends[i] = time.Now()
			return ctx.Err()
		})
	}()
	sleep(ctx, length)
	after, failed := c.dials()
	failed = errors.Join(failed, s.comeBack())
	returned := time.Now()
	if err := errors.Join(failed, <-answered); err != nil {
		return nil, fmt.Errorf("not all keys work a minute after the return: %w", err)
	}
	var last float64
	var took []float64
	for _, end := range ends {
		took = append(took, float64(end.Sub(returned)))
		last = max(last, took[len(took)-1])
	}
	return sample{nsPerOp: last, p50: median(took), dials: float64(after - before)}, nil
}

// sleep pauses, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
