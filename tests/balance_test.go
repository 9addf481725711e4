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
func overPods(t *testing.T, cookie string, scenario func(w *world, e *endpoint)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		one, two := httpTools(), httpTools()
		defer two.Close()
		server := faults.Local(func() http.Handler { return faults.Balance(cookie, one.Handler(), two.Handler()) })
		behind(t, supervisor.Config{}, one, server, func(w *world, e *endpoint) {
			w.executed = func() map[string]int {
				sum := one.Executions()
				for id, n := range two.Executions() {
					sum[id] += n
				}
				return sum
			}
			scenario(w, e)
		})
	})
}

// Finding B7: without affinity, the failure says so, and the server is left with a
// bounded number of sessions.
func TestServerThatIsBalancedWithoutAffinityIsNamedAsSuch(t *testing.T) {
	overPods(t, "", func(w *world, e *endpoint) {
		var last *messages.Failure
		for range 60 {
			if f, is := w.send(call("a", "count")).reply().(*messages.Failure); is {
				last = f
			}
			time.Sleep(time.Second)
		}
		require.NotNil(w.t, last)
		require.Contains(w.t, last.Detail, "affinity")
		require.LessOrEqual(w.t, e.Count("initialize"), 60)
		deleted := 0
		for _, n := range e.CountEach("DELETE") {
			deleted += min(n, 1)
		}
		require.GreaterOrEqual(w.t, deleted, len(e.CountEach("DELETE"))-1, "each session but the last is ended")
	})
}
