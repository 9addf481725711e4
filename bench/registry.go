package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/mcpactor/mcpactor/supervisor"
)

// registryCallers keep the registry busy.
const registryCallers = 64

// registry is calls of all the keys that there are, in an order without locality.
// The sessions answer at once.
func (p *place) registry() []*Case {
	sizes := []int{10, 1000, 100_000}
	if p.cfg.Quick {
		sizes = []int{10, 1000}
	}
	c := &Case{
		Scenario: "registry", Params: params("callers", registryCallers),
		About: "a call of any of so many keys, whose sessions answer at once, without MCP", Baseline: nameMessage + "-10",
	}
	for _, keys := range sizes {
		c.contenders = append(c.contenders, contender{fmt.Sprint(nameMessage, "-", keys), func(ctx context.Context) (*running, error) {
			s, err := imaginary{}.supervise(supervisor.Config{MaxSessions: keys, MaxDials: 64})
			if err != nil {
				return nil, err
			}
			return scatter(ctx, keys, func(_ context.Context, scope string) error { return s.message(scope) }, s.close)
		}})
	}
	for _, keys := range sizes {
		c.contenders = append(c.contenders, contender{fmt.Sprint(nameMutexMap, "-", keys), func(ctx context.Context) (*running, error) {
			m := newMutexMap(many, imaginary{}.open)
			return scatter(ctx, keys, m.call, m.close)
		}})
	}
	return []*Case{c}
}

// stride is a prime that no number of keys is a multiple of.
const stride = 7919

// scatter opens all keys, and returns a contender that calls them.
func scatter(ctx context.Context, keys int, call func(context.Context, string) error, close func() error) (*running, error) {
	names := make([]string, keys)
	for i := range names {
		names[i] = "conversation-" + strconv.Itoa(i)
	}
	_, err := callers(registryCallers, keys, func(i int) error { return call(ctx, names[i%keys]) })
	if err != nil {
		close() //nolint:errcheck // the call counts
		return nil, err
	}
	var next atomic.Int64
	return warm(registryCallers, func(ctx context.Context) error {
		return call(ctx, names[int(next.Add(stride))%keys])
	}, close), nil
}
