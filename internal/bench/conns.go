package bench

import "context"

// ConnsPerOp is the unit of how many connections are opened for a call.
const ConnsPerOp = "conns/op"

// countConns has the connections of all contenders counted, where they arrive. Those
// that a contender keeps are open before.
func (c *Case) countConns(accepted func(context.Context) (int64, error)) {
	for i, one := range c.contenders {
		c.contenders[i].start = func(ctx context.Context) (*running, error) {
			r, err := one.start(ctx)
			if err != nil {
				return nil, err
			}
			return &running{callers: r.callers, close: r.close, round: func(ctx context.Context, n int) (Sample, error) {
				if _, err := r.round(ctx, r.callers); err != nil {
					return nil, err
				}
				before, err := accepted(ctx)
				if err != nil {
					return nil, err
				}
				s, err := r.round(ctx, n)
				if err != nil {
					return nil, err
				}
				after, err := accepted(ctx)
				s[ConnsPerOp] = float64(after-before) / float64(n+r.callers) // which warm up
				return s, err
			}}, nil
		}
	}
}
