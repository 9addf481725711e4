package tests

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// Request ids are unique over all connections of an MCP session. A server may refuse a
// call, or confuse answers, if its id is that of a call which still runs since the
// connection before.
func TestCallsAfterAResumeAreNotMixedUpWithThoseThatStillRun(t *testing.T) {
	for name, tools := range map[string]*faults.Tools{"SSE": faults.NewTools(), "JSON": faults.NewTools()} {
		t.Run(name, func(t *testing.T) {
			tools.JSON = name == "JSON"
			connections := http.DefaultTransport.(*http.Transport).Clone()
			cfg := supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", HTTPClient: &http.Client{Transport: connections}}}}
			overHTTPWith(t, cfg, tools, func(h *harness, e *testServer) {
				require.Equal(t, "1", h.send(call("a", "count")).text())
				count := 1
				for range 2 { // the second time, the connection before has resumed the session as well
					hang := h.calls(20, "a", "wait")
					e.awaitExecutions(count + 20)
					e.Stop() // closes all connections and the listener
					// The client may not have noticed yet that its idle connections are closed. A
					// call that it sends on one of them may have run, and is lost.
					connections.CloseIdleConnections()
					require.NoError(t, e.Start())
					for _, p := range hang {
						p.fails(messages.CodeLost)
					}
					count += 20
					want, got := map[string]bool{}, map[string]bool{}
					for _, p := range h.calls(40, "a", "count") {
						count++
						want[strconv.Itoa(count)] = true
						got[p.text()] = true
						require.EqualValues(t, 1, p.ok().Generation)
					}
					require.Equal(t, want, got)
				}
				running := h.send(call("a", "wait"))
				e.awaitExecutions(count + 1)
				e.Release() // the calls of all connections
				require.Equal(t, strconv.Itoa(count+1), running.text())
				require.Equal(t, 1, e.Count("initialize"))
				h.stop()
				connections.CloseIdleConnections()
			})
		})
	}
}
