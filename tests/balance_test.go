package tests

import (
	"net/http"
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
		server := faults.Local(func() http.Handler { return faults.Balance(cookie, one.Handler(), two.Handler()) })
		overLocalServer(t, supervisor.Config{}, one, server, func(h *harness, e *testServer) {
			h.executed = func() map[string]int {
				sum := one.Executions()
				for id, n := range two.Executions() {
					sum[id] += n
				}
				return sum
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
