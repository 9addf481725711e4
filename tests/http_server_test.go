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

// testServer is a real MCP server on a real socket, which can be made to misbehave.
type testServer struct {
	*faults.Server
	*faults.Tools
	t *testing.T
}

// serve starts an endpoint with tools.
func serve(t *testing.T, tools *faults.Tools) *testServer {
	t.Helper()
	server, err := faults.Serve(tools.Handler)
	require.NoError(t, err)
	return &testServer{server, tools, t}
}

// close ends the server with all that is left on it.
func (e *testServer) close() {
	e.Server.Close()
	e.Tools.Close()
}

// overHTTP runs a scenario on a real endpoint named "s".
func overHTTP(t *testing.T, cfg supervisor.Config, scenario func(h *harness, e *testServer)) {
	t.Helper()
	overHTTPWith(t, cfg, faults.NewTools(), scenario)
}

// overHTTPWith is overHTTP for an endpoint with given tools.
func overHTTPWith(t *testing.T, cfg supervisor.Config, tools *faults.Tools, scenario func(h *harness, e *testServer)) {
	t.Helper()
	before := resourcesInUse()
	e := serve(t, tools)
	defer e.close() // also when the scenario fails
	if len(cfg.Servers) == 0 {
		cfg.Servers = []mcpbridge.Server{{Name: "s"}}
	}
	cfg.Servers[0].URL = e.URL()
	if tools.SSE {
		cfg.Servers[0].Transport = mcpbridge.TransportSSE
	}
	h := start(t, cfg)
	defer h.stop()
	h.executed = e.Executions
	if !tools.SSE { // the server notices the end of a connection when it does
		h.overlaps = e.Overlaps
	}
	scenario(h, e)
	h.stop()
	e.close()
	h.verify()
	before.verify(t)
}

// awaitExecutions waits until n calls have begun.
func (e *testServer) awaitExecutions(n int) {
	e.t.Helper()
	require.Eventually(e.t, func() bool { return len(e.Executions()) >= n }, 20*time.Second, time.Millisecond)
}

// awaitRequests waits until n requests of a kind have come.
func (e *testServer) awaitRequests(kind string, n int) {
	e.t.Helper()
	require.Eventually(e.t, func() bool { return e.Count(kind) >= n }, 20*time.Second, time.Millisecond, fmt.Sprint(kind, " ", n))
}

// onPOST is a fault for all that is not the standalone stream.
func onPOST(f faults.Fault) faults.Fault {
	return func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
		if r.Method == http.MethodPost {
			f(w, r, next)
			return
		}
		next.ServeHTTP(w, r.Request)
	}
}
