package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// parked is the memory of calls that wait for their session to open.
func (p *place) parked() []*Case {
	calls := 10_000
	if p.cfg.Quick {
		calls = 200
	}
	return []*Case{{
		Scenario: "parked", Unit: BytesPerCall, Ops: calls, Rounds: 5,
		About: "memory of a call that waits for its session to open, the command and its caller included", Baseline: nameMutexMap,
		contenders: []contender{
			{nameMutexMap, func(context.Context) (*running, error) {
				return p.weighed(BytesPerCall, func() (load, error) {
					gate := make(chan struct{})
					m := newMutexMap(many, imaginary{gate}.open)
					return waiting(gate, func(ctx context.Context) error { return m.call(ctx, oneKey) }, m.close), nil
				}), nil
			}},
			{nameMessage, func(context.Context) (*running, error) {
				return p.weighed(BytesPerCall, func() (load, error) {
					gate := make(chan struct{})
					s, err := imaginary{gate}.supervise(supervisor.Config{MaxWaiting: calls})
					if err != nil {
						return load{}, err
					}
					return s.agent(gate, calls), nil
				}), nil
			}},
			{nameClient, func(context.Context) (*running, error) {
				return p.weighed(BytesPerCall, func() (load, error) {
					gate := make(chan struct{})
					s, err := imaginary{gate}.supervise(supervisor.Config{MaxWaiting: calls})
					if err != nil {
						return load{}, err
					}
					return waiting(gate, func(ctx context.Context) error { return s.call(ctx, oneKey) }, s.close), nil
				}), nil
			}},
		},
	}}
}

// waiting is n callers, each in a goroutine, until the gate opens.
func waiting(gate chan struct{}, call func(context.Context) error, end func() error) load {
	var done <-chan error
	return load{
		hold: func(ctx context.Context, n int) error {
			done = atOnce(n, func() error { return call(ctx) })
			return nil
		},
		release: func() error {
			close(gate)
			return errors.Join(<-done, end())
		},
	}
}

// agent is one actor that has sent all the calls.
func (s *supervised) agent(gate chan struct{}, most int) load {
	a := &asker{replies: make(chan any, most)}
	a.pid, _ = s.system.ProcessRegistry.Add(a, s.system.ProcessRegistry.NextId())
	sent := 0
	return load{
		hold: func(_ context.Context, n int) error {
			for ; sent < n; sent++ {
				s.system.Root.RequestWithCustomSender(s.PID(), command(oneKey), a.pid)
			}
			return nil
		},
		release: func() error {
			close(gate)
			var failed error
			for range sent {
				if f, ok := (<-a.replies).(*messages.Failure); ok {
					failed = fmt.Errorf("bench: parked: %w", f)
				}
			}
			return errors.Join(failed, s.close())
		},
	}
}

// atOnce makes so many calls at once, and says when all are done.
func atOnce(n int, call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- together(n, call) }()
	return done
}
