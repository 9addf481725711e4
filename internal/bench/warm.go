package bench

import (
	"context"

	"github.com/mcpactor/mcpactor/supervisor"
)

// The names of contenders.
const (
	nameBare     = "bare"      // one session of the SDK; over HTTP with enough idle connections
	nameUntuned  = "untuned"   // the same with the SDK's default HTTP client
	namePerCall  = "per-call"  // a session of the SDK for each call
	nameMutexMap = "mutex-map" // see mutexMap
	nameMessage  = "message"   // a message to the supervisor, answered by a message
	nameClient   = "client"    // supervisor.Client
)

// callerCounts are the numbers of callers of warm calls.
func (p *place) callerCounts() []int {
	if p.cfg.Quick {
		return []int{1, 8}
	}
	return []int{1, 8, 64, 512}
}

// warm is a call on a session that is open.
func (p *place) warm() (all []*Case) {
	for _, w := range []wire{p.overMemory(), p.overStdio(), p.overJSON(), p.overSSE()} {
		for _, n := range p.callerCounts() {
			c := &Case{
				Scenario: "warm", Params: params("transport", w.name, "callers", n),
				About: "a call of a trivial tool on an open session", Baseline: nameBare,
				contenders: []contender{{nameBare, startBare(w, n)}},
			}
			add := func(name string, start func(context.Context) (*running, error)) {
				c.contenders = append(c.contenders, contender{name, start})
			}
			if n > 64 {
				c.Rounds = 5 // they are long
			}
			if w.url != "" {
				add(nameUntuned, startBare(p.overHTTP(w.name, w.url, p.plain), n))
			}
			add(nameMutexMap, startMutexMap(w.open, n))
			add(nameMessage, startMessage(w, n))
			add(nameClient, startClient(w, n))
			if w.name != "stdio" || n == 1 && !p.cfg.Quick { // else it is processes that are measured
				add(namePerCall, startPerCall(w, n))
			}
			if w.url != "" {
				c.contenders = append(c.contenders, p.others(w.url, n)...)
				c.countConns(p.accepted)
			}
			all = append(all, c)
		}
	}
	return all
}

const oneKey = "a"

// many is a limit that is not reached.
const many = 1 << 20

func startMutexMap(open func(context.Context) (session, error), callers int) func(context.Context) (*running, error) {
	return func(context.Context) (*running, error) {
		m := newMutexMap(many, open)
		return warm(callers, func(ctx context.Context) error { return m.call(ctx, oneKey) }, m.close), nil
	}
}

func startMessage(w wire, callers int) func(context.Context) (*running, error) {
	return func(context.Context) (*running, error) {
		s, err := supervise(w.server, supervisor.Config{})
		if err != nil {
			return nil, err
		}
		return warm(callers, func(context.Context) error { return s.message(oneKey) }, s.close), nil
	}
}

func startClient(w wire, callers int) func(context.Context) (*running, error) {
	return func(context.Context) (*running, error) {
		s, err := supervise(w.server, supervisor.Config{})
		if err != nil {
			return nil, err
		}
		return warm(callers, func(ctx context.Context) error { return s.call(ctx, oneKey) }, s.close), nil
	}
}
