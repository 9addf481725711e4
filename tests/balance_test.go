package tests

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// overPods runs a scenario on two servers behind a balancer.
func overPods(t *testing.T, cookie string, scenario func(h *harness, e *testServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		one, two := newHTTPTools(), newHTTPTools()
		defer two.Close()
		server := faults.Local(func() http.Handler { return balanced(cookie, one.Handler(), two.Handler()) })
		overLocalServer(t, supervisor.Config{}, one, server, func(h *harness, e *testServer) {
			h.executed = func() map[string]int {
				sum := one.Executions()
				for id, n := range two.Executions() {
					sum[id] += n
				}
				return sum
			}
			if cookie == "" {
				h.overlaps = nil // a server keeps a session of which the other one says that it does not know it
			}
			scenario(h, e)
		})
	})
}

// H-B7: without affinity, the failure says so, and the number of sessions that stay on the
// server is bounded.
func TestServerThatIsBalancedWithoutAffinityIsNamedAsSuch(t *testing.T) {
	overPods(t, "", func(h *harness, e *testServer) {
		var last *messages.Failure
		for range 60 {
			if f, is := h.send(call("a", "count")).reply().(*messages.Failure); is {
				last = f
			}
			time.Sleep(time.Second)
		}
		require.NotNil(h.t, last)
		require.Contains(h.t, last.Detail, "affinity")
		require.LessOrEqual(h.t, e.Count("initialize"), 60)
		deleted := 0
		for _, n := range e.CountEach("DELETE") {
			deleted += min(n, 1)
		}
		require.GreaterOrEqual(h.t, deleted, len(e.CountEach("DELETE"))-1, "each session but the last is ended")
	})
}

// H-B7: servers of the TypeScript SDK answer 400. Every other call and ping goes to one that does not know the session.
func TestServerThatIsBalancedWithoutAffinityAndAnswers400IsNamedAsSuch(t *testing.T) {
	for _, name := range []string{"typescript-sdk 1.32.2, restarted", "typescript-sdk 1.24.3, example", "server-everything 2026.8.31"} {
		t.Run(name, func(t *testing.T) {
			form := refusalOf(t, name)
			overRawHTTP(t, habits{unknown: form.Respond}, func(p *plain) {
				var calls, pings atomic.Int64
				isOther := func(r *faults.Request) bool {
					return r.Kind == "tools/call" && calls.Add(1)%2 == 0 || r.Kind == "ping" && pings.Add(1)%2 == 1
				}
				p.server.Inject("", onlyIf(isOther, form.Respond))
				for range 10 {
					p.send(call("a", "count")).ok()
					require.Contains(p.t, p.send(call("a", "count")).fails(messages.CodeInvalid).Detail, "is it balanced without affinity?")
					time.Sleep(10 * time.Second) // synctest
				}
			})
		})
	}
}
