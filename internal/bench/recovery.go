package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpactor/mcpactor/supervisor"
)

// first is the first call of a key, which opens its session. The time to close the
// session does not count, its allocations do.
func (p *setup) first() (all []*benchCase) {
	for _, r := range []route{p.overMemory(), p.overStdio(nil), p.overJSON(), p.overSSE()} {
		all = append(all, &benchCase{name: "first/transport=" + r.transport, contenders: []contender{
			{bareName, firstCalls(r, openBare)},
			{mutexMapName, firstCalls(r, openMutexMap(unlimited))},
			{clientName, firstCalls(r, openClient(supervisor.Config{}))},
		}})
	}
	return all
}

// firstCalls starts a contender that calls a new key each time.
func firstCalls(r route, open opener) starter {
	return func(context.Context) (*running, error) {
		c, err := open(r)
		if err != nil {
			return nil, err
		}
		keys := 0
		return &running{close: c.close, round: func(ctx context.Context, n int) (sample, error) {
			return oneByOne(n, func() (time.Duration, error) {
				keys++
				key := strconv.Itoa(keys)
				began := time.Now()
				if err := c.call(ctx, key); err != nil {
					return 0, err
				}
				took := time.Since(began)
				return took, c.drop(ctx, key)
			})
		}}, nil
	}
}

// protocolWithSessions is the newest protocol that has session ids over HTTP.
const protocolWithSessions = "2025-11-25"

const headerSession = "Mcp-Session-Id"

// recorder is a round tripper that records when a call was refused last, and how many
// sessions were requested.
type recorder struct {
	inner     http.RoundTripper
	refused   atomic.Pointer[time.Time]
	requested atomic.Int64
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost && req.Header.Get(headerSession) == "" {
		r.requested.Add(1)
	}
	resp, err := r.inner.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusNotFound && req.Method == http.MethodPost {
		now := time.Now()
		r.refused.Store(&now)
	}
	return resp, err
}

// overExpiring is the way to the server whose sessions expire on command. The baselines
// know that it speaks no newer protocol; the supervisor finds out with its first session.
func (p *setup) overExpiring() (route, *recorder) {
	rec := &recorder{inner: p.tuned.Transport}
	client := &http.Client{Transport: rec}
	r := p.overHTTP(nameJSON, p.origin+pathExpiring, client)
	r.server.HTTPClient = client
	r.open = p.opensHTTP(r.server.URL, client, false, protocolWithSessions)
	return r, rec
}

// manyRestarts has a budget for sessions that expire all the time. The default budget
// would slow them down, as it should.
var manyRestarts = supervisor.Config{Budget: 1 << 30}

// recovery is the time from the answer that says that the session expired to the result
// of the call.
func (p *setup) recovery() []*benchCase {
	expiring, _ := p.overExpiring()
	discovering := p.overHTTP(nameJSON, p.origin+pathExpiring, p.tuned)
	return []*benchCase{{name: "recovery/transport=" + nameJSON, contenders: []contender{
		{bareName, firstCalls(expiring, openBare)},
		{"discover", firstCalls(discovering, openBare)}, // asks for the newest protocol first
		{mutexMapName, p.expired(1, openMutexMap(unlimited))},
		{messageName, p.expired(1, openMessage(manyRestarts))},
		{clientName, p.expired(1, openClient(manyRestarts))},
	}}}
}

// rebuilds is the unit of how many sessions are opened for one that expired.
const rebuilds = "rebuilds/op"

// herd is many callers that meet one expired session, until the last has its result.
func (p *setup) herd() []*benchCase {
	callers := p.size(200, 20)
	return []*benchCase{{name: fmt.Sprintf("herd/transport=%s/callers=%d", nameJSON, callers), contenders: []contender{
		{bareName, p.openedFor(callers)},
		{mutexMapName, p.expired(callers, openMutexMap(unlimited))},
		{clientName, p.expired(callers, openClient(manyRestarts))},
	}}}
}

// openedFor starts a contender that opens a session of the SDK for so many calls at once.
func (p *setup) openedFor(callers int) starter {
	return func(context.Context) (*running, error) {
		r, _ := p.overExpiring()
		return &running{close: func() error { return nil }, round: func(ctx context.Context, n int) (sample, error) {
			return oneByOne(n, func() (time.Duration, error) {
				began := time.Now()
				s, err := r.open(ctx)
				if err != nil {
					return 0, err
				}
				defer s.close() //nolint:errcheck // the calls are what is measured
				err = concurrently(callers, callers, func(int) error { return s.call(ctx) })
				return time.Since(began), err
			})
		}}, nil
	}
}

// expired starts a contender whose session expires before each operation, which is a
// call of each of so many callers. The time begins with the refusal of a single caller,
// else with the start of all.
func (p *setup) expired(callers int, open opener) starter {
	return func(context.Context) (*running, error) {
		r, rec := p.overExpiring()
		c, err := open(r)
		if err != nil {
			return nil, err
		}
		return &running{close: c.close, round: func(ctx context.Context, n int) (sample, error) {
			all := func() error {
				return concurrently(callers, callers, func(int) error { return c.call(ctx, oneKey) })
			}
			var opened int64
			s, err := oneByOne(n, func() (time.Duration, error) {
				if err := errors.Join(all(), p.expire(ctx)); err != nil { // the session is open before it expires
					return 0, err
				}
				rec.refused.Store(nil)
				before, began := rec.requested.Load(), time.Now()
				if err := all(); err != nil {
					return 0, err
				}
				ended := time.Now()
				opened += rec.requested.Load() - before
				refused := rec.refused.Load()
				if refused == nil {
					return 0, errors.New("bench: no call was refused, although the session expired")
				}
				if callers == 1 {
					began = *refused
				}
				return ended.Sub(began), nil
			})
			if err == nil {
				s[rebuilds] = float64(opened) / float64(n)
			}
			return s, err
		}}, nil
	}
}
