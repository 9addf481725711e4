package bench

import (
	"context"

	"github.com/mcpactor/mcpactor/supervisor"
)

// path is what supervision adds to a call: the session answers at once.
func (p *place) path() (all []*Case) {
	for _, n := range p.callerCounts() {
		all = append(all, &Case{
			Scenario: "path", Params: params("callers", n),
			About: "a call on a session that answers at once, without MCP", Baseline: nameMutexMap,
			contenders: []contender{
				{nameMutexMap, startMutexMap(imaginary{}.open, n)},
				{nameMessage, func(context.Context) (*running, error) {
					s, err := imaginary{}.supervise(supervisor.Config{})
					if err != nil {
						return nil, err
					}
					return warm(n, func(context.Context) error { return s.message(oneKey) }, s.close), nil
				}},
				{nameClient, func(context.Context) (*running, error) {
					s, err := imaginary{}.supervise(supervisor.Config{})
					if err != nil {
						return nil, err
					}
					return warm(n, func(ctx context.Context) error { return s.call(ctx, oneKey) }, s.close), nil
				}},
			},
		})
	}
	return all
}
