package tests

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// endpoint is a real MCP server on a real socket, which can be made to misbehave.
type endpoint struct {
	*faults.Server
	*faults.Tools
	t *testing.T
}

// serve starts an endpoint with tools.
func serve(t *testing.T, tools *faults.Tools) *endpoint {
	t.Helper()
	server, err := faults.Serve(tools.Handler)
	require.NoError(t, err)
	return &endpoint{server, tools, t}
}

// end ends the server with all that is left on it.
func (e *endpoint) end() {
	e.Server.Close()
	e.Tools.Close()
}

// overHTTP runs a scenario on a real endpoint named "s".
func overHTTP(t *testing.T, cfg supervisor.Config, scenario func(w *world, e *endpoint)) {
	t.Helper()
	overEndpoint(t, cfg, faults.NewTools(), scenario)
}

// overEndpoint is overHTTP for an endpoint with given tools.
func overEndpoint(t *testing.T, cfg supervisor.Config, tools *faults.Tools, scenario func(w *world, e *endpoint)) {
	t.Helper()
	before := lookAround()
	e := serve(t, tools)
	defer e.end() // also when the scenario fails
	if len(cfg.Servers) == 0 {
		cfg.Servers = []mcpbridge.Server{{Name: "s"}}
	}
	cfg.Servers[0].URL = e.URL()
	if tools.SSE {
		cfg.Servers[0].Transport = mcpbridge.TransportSSE
	}
	w := start(t, cfg)
	defer w.stop()
	w.executed = e.Executions
	if !tools.SSE { // the server notices the end of a connection when it does
		w.overlaps = e.Overlaps
	}
	scenario(w, e)
	w.stop()
	e.end()
	w.verify()
	before.verify(t)
}

// running waits until n calls have begun.
func (e *endpoint) running(n int) {
	e.t.Helper()
	require.Eventually(e.t, func() bool { return len(e.Executions()) >= n }, 20*time.Second, time.Millisecond)
}

// counted waits until n requests of a kind have come.
func (e *endpoint) counted(kind string, n int) {
	e.t.Helper()
	require.Eventually(e.t, func() bool { return e.Count(kind) >= n }, 20*time.Second, time.Millisecond, fmt.Sprint(kind, " ", n))
}

// posts is a fault for all that is not the standalone stream.
func posts(f faults.Fault) faults.Fault {
	return func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
		if r.Method == http.MethodPost {
			f(w, r, next)
			return
		}
		next.ServeHTTP(w, r.Request)
	}
}
