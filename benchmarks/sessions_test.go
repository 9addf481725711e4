package benchmarks

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/supervisor"
)

// BenchmarkFirst measures the first call of a key, which opens its session. The time to close the
// session does not count, its allocations do.
func BenchmarkFirst(b *testing.B) {
	for _, r := range routes() {
		b.Run("transport="+r.name, func(b *testing.B) {
			compare(b, r, []contender{
				{"bare", openBare},
				{"mutex-map", openMutexMap(unlimited)},
				{"mcpactor", openClient(supervisor.Config{})},
			}, measureFirst)
		})
	}
}

// measureFirst calls a new key each time.
func measureFirst(b *testing.B, c client) {
	b.ReportAllocs()
	keys := 0
	measureParts(b, func() time.Duration {
		keys++
		key, began := strconv.Itoa(keys), time.Now()
		require.NoError(b, c.call(b.Context(), key))
		took := time.Since(began)
		require.NoError(b, c.drop(b.Context(), key))
		return took
	})
}

// protocolWithSessions is the newest protocol that has session ids over HTTP.
const protocolWithSessions = "2025-11-25"

// refusals is a round tripper that records when a call was refused last, and how many sessions were
// requested.
type refusals struct {
	inner     http.RoundTripper
	last      atomic.Pointer[time.Time]
	requested atomic.Int64
}

func (r *refusals) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost && req.Header.Get("Mcp-Session-Id") == "" {
		r.requested.Add(1)
	}
	resp, err := r.inner.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusNotFound && req.Method == http.MethodPost {
		now := time.Now()
		r.last.Store(&now)
	}
	return resp, err
}

// overExpiring is the way to the server whose sessions expire on command. The baselines know that it
// speaks no newer protocol; the supervisor finds out with its first session.
func overExpiring() (route, *refusals) {
	rec := &refusals{inner: tuned.Transport}
	client := &http.Client{Transport: rec}
	r := overHTTP("http-json", origin+pathExpiring, client)
	r.server.HTTPClient = client
	r.open = dialsHTTP(r.server.URL, client, false, protocolWithSessions)
	return r, rec
}

// expire lets the sessions at pathExpiring expire.
func expire(b *testing.B) {
	resp, err := tuned.Get(origin + pathExpire)
	require.NoError(b, err)
	resp.Body.Close()
}

// manyRestarts has a budget for sessions that expire all the time. The default budget would slow them
// down, as it should.
var manyRestarts = supervisor.Config{Budget: -1}

// openDiscovering asks for the newest protocol first, as the SDK does by default.
func openDiscovering(r route) (client, error) {
	return openBare(overHTTP(r.name, r.server.URL, tuned))
}

// BenchmarkRecovery measures the time from the answer that says that the session expired to the result
// of the call. The baselines bare and discover open a session and call.
func BenchmarkRecovery(b *testing.B) {
	r, rec := overExpiring()
	b.Run("transport="+r.name, func(b *testing.B) {
		compare(b, r, []contender{{"bare", openBare}, {"discover", openDiscovering}}, measureFirst)
		compare(b, r, []contender{
			{"mutex-map", openMutexMap(unlimited)},
			{"message", openMessage(manyRestarts)},
			{"mcpactor", openClient(manyRestarts)},
		}, func(b *testing.B, c client) { measureExpired(b, 1, c, rec) })
	})
}

// BenchmarkHerd measures many callers that meet one expired session, until the last has its result. The
// baseline opens a session for the same calls.
func BenchmarkHerd(b *testing.B) {
	const callers = 200
	r, rec := overExpiring()
	b.Run(fmt.Sprintf("transport=%s/callers=%d", r.name, callers), func(b *testing.B) {
		b.Run("how=bare", func(b *testing.B) {
			for b.Loop() {
				s, err := r.open(b.Context())
				require.NoError(b, err)
				require.NoError(b, concurrently(callers, callers, func(int) error { return s.call(b.Context()) }))
				b.StopTimer()
				s.close()
				b.StartTimer()
			}
		})
		compare(b, r, []contender{{"mutex-map", openMutexMap(unlimited)}, {"mcpactor", openClient(manyRestarts)}},
			func(b *testing.B, c client) { measureExpired(b, callers, c, rec) })
	})
}

// measureExpired lets the session expire before each operation, which is a call of each caller. The time
// begins with the refusal of a single caller, else with the start of all. It reports how many sessions
// are opened for one that expired.
func measureExpired(b *testing.B, callers int, c client, rec *refusals) {
	all := func() {
		require.NoError(b, concurrently(callers, callers, func(int) error { return c.call(context.Background(), oneKey) }))
	}
	var opened int64
	measureParts(b, func() time.Duration {
		all() // the session is open before it expires
		expire(b)
		rec.last.Store(nil)
		before, began := rec.requested.Load(), time.Now()
		all()
		ended := time.Now()
		opened += rec.requested.Load() - before
		require.NotNil(b, rec.last.Load(), "no call was refused, although the session expired")
		if callers == 1 {
			began = *rec.last.Load()
		}
		return ended.Sub(began)
	})
	b.ReportMetric(float64(opened)/float64(b.N), "rebuilds/op")
}
