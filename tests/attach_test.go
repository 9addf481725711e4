package tests

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// A server may refuse a call, or mix up the answers, when its id is that of one that
// is still running. It is the same session, so the ids of the connection before count.
func TestCallsAfterAnAttachAreNotMixedUpWithThoseThatStillRun(t *testing.T) {
	for name, tools := range map[string]*faults.Tools{"SSE": faults.NewTools(), "JSON": faults.NewTools()} {
		t.Run(name, func(t *testing.T) {
			tools.JSON = name == "JSON"
			overEndpoint(t, supervisor.Config{}, tools, func(w *world, e *endpoint) {
				require.Equal(t, "1", w.send(call("a", "count")).text())
				count := 1
				for range 2 { // the second time, the connection before was attached as well
					hang := w.calls(20, "a", "wait")
					e.running(count + 20)
					e.Stop() // all connections, with the listener
					require.NoError(t, e.Start())
					for _, p := range hang {
						p.fails(messages.CodeLost)
					}
					count += 20
					want, got := map[string]bool{}, map[string]bool{}
					for _, p := range w.calls(40, "a", "count") {
						count++
						want[strconv.Itoa(count)] = true
						got[p.text()] = true
						require.EqualValues(t, 1, p.ok().Generation)
					}
					require.Equal(t, want, got)
				}
				running := w.send(call("a", "wait"))
				e.running(count + 1)
				e.Release() // those of all connections
				require.Equal(t, strconv.Itoa(count+1), running.text())
				require.Equal(t, 1, e.Count("initialize"))
			})
		})
	}
}
