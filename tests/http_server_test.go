package tests

import (
	"cmp"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// testServer is an MCP server with the tools of package faults, into which faults can be
// injected.
type testServer struct {
	*faults.Server
	*faults.Tools
	t *testing.T
}

// serve starts a server with tools, on a socket.
func serve(t *testing.T, tools *faults.Tools) *testServer {
	t.Helper()
	server, err := faults.Serve(tools.Handler)
	require.NoError(t, err)
	return &testServer{server, tools, t}
}

// close stops the server, and ends the calls that still run on it.
func (e *testServer) close() {
	e.Server.Close()
	e.Tools.Close()
}

// overHTTP runs a scenario on a server named "s", over HTTP on a socket.
func overHTTP(t *testing.T, cfg supervisor.Config, scenario func(h *harness, e *testServer)) {
	t.Helper()
	overHTTPWith(t, cfg, faults.NewTools(), scenario)
}

// overHTTPWith is overHTTP for a server with the given tools.
func overHTTPWith(t *testing.T, cfg supervisor.Config, tools *faults.Tools, scenario func(h *harness, e *testServer)) {
	t.Helper()
	before := resourcesInUse()
	e := serve(t, tools)
	defer e.close() // also when the scenario fails
	if len(cfg.Servers) == 0 {
		cfg.Servers = []mcpbridge.Server{{Name: "s"}}
	}
	cfg.Servers[0].URL, cfg.BackoffBase = e.URL(), cmp.Or(cfg.BackoffBase, time.Millisecond)
	if tools.SSE {
		cfg.Servers[0].Transport = mcpbridge.TransportSSE
	}
	h := start(t, cfg)
	defer h.stop()
	h.executed = e.Executions
	if !tools.SSE { // with HTTP+SSE the server notices the end of a session only some time later
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

// awaitRequests waits until the server has got n requests of a kind.
func (e *testServer) awaitRequests(kind string, n int) {
	e.t.Helper()
	require.Eventually(e.t, func() bool { return e.Count(kind) >= n }, 20*time.Second, time.Millisecond, fmt.Sprint(kind, " ", n))
}

// onPOST limits a fault to POST requests, so that the standalone stream is served.
func onPOST(f faults.Fault) faults.Fault {
	return func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
		if r.Method == http.MethodPost {
			f(w, r, next)
			return
		}
		next.ServeHTTP(w, r.Request)
	}
}
