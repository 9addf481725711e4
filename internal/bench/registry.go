package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/mcpactor/mcpactor/supervisor"
)

// openers open the keys.
const openers = 64

// registry is calls of all the keys that there are, in an order without locality.
// The sessions answer at once.
//
// With one caller each message finds its session asleep. With many, a session that has
// several messages handles them in one go, which is likelier the fewer keys there are.
func (p *place) registry() (all []*Case) {
	sizes := []int{10, 1000, 100_000}
	if p.cfg.Quick {
		sizes = []int{10, 1000}
	}
	for _, n := range []int{1, 64} {
		c := &Case{
			Scenario: "registry", Params: params("callers", n), Rounds: 5,
			About: "a call of any of so many keys, whose sessions answer at once, without MCP", Baseline: fmt.Sprint(nameMessage, "-", sizes[0]),
		}
		for _, keys := range sizes {
			c.contenders = append(c.contenders, contender{fmt.Sprint(nameMessage, "-", keys), func(ctx context.Context) (*running, error) {
				s, err := imaginary{}.supervise(supervisor.Config{MaxSessions: keys, MaxDials: openers})
				if err != nil {
					return nil, err
				}
				return scatter(ctx, n, keys, func(_ context.Context, scope string) error { return s.message(scope) }, s.close)
			}})
		}
		for _, keys := range sizes {
			c.contenders = append(c.contenders, contender{fmt.Sprint(nameMutexMap, "-", keys), func(ctx context.Context) (*running, error) {
				m := newMutexMap(many, imaginary{}.open)
				return scatter(ctx, n, keys, m.call, m.close)
			}})
		}
		all = append(all, c)
	}
	return all
}

// stride is a prime that no number of keys is a multiple of.
const stride = 7919

// scatter opens all keys, and returns a contender that calls them.
func scatter(ctx context.Context, n, keys int, call func(context.Context, string) error, close func() error) (*running, error) {
	names := make([]string, keys)
	for i := range names {
		names[i] = "conversation-" + strconv.Itoa(i)
	}
	_, err := callers(openers, keys, func(i int) error { return call(ctx, names[i%keys]) })
	if err != nil {
		close() //nolint:errcheck // the call counts
		return nil, err
	}
	var next atomic.Int64
	return warm(n, func(ctx context.Context) error {
		return call(ctx, names[int(next.Add(stride))%keys])
	}, close), nil
}
