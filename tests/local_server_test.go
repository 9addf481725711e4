package tests

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// overLocalHTTP runs a scenario in a bubble of fake time, over HTTP without a socket, on a
// server named "s".
func overLocalHTTP(t *testing.T, cfg supervisor.Config, tools func() *faults.Tools, scenario func(h *harness, e *testServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		one := tools()
		overLocalServer(t, cfg, one, faults.Local(one.Handler), scenario)
	})
}

// overLocalServer is overLocalHTTP for a given server. The caller makes the server in the
// bubble.
func overLocalServer(t *testing.T, cfg supervisor.Config, tools *faults.Tools, server *faults.Server, scenario func(h *harness, e *testServer)) {
	t.Helper()
	e := &testServer{server, tools, t}
	defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
	defer e.close()                   // also when the scenario fails
	if len(cfg.Servers) == 0 {
		cfg.Servers = []mcpbridge.Server{{Name: "s"}}
		if tools.SSE {
			cfg.Servers[0].Transport = mcpbridge.TransportSSE
		}
	}
	cfg.Servers[0].URL, cfg.Servers[0].HTTPClient = e.URL()+"/mcp", &http.Client{Transport: server}
	h := start(t, cfg)
	defer h.stop()
	h.executed = e.Executions
	if !tools.SSE {
		h.overlaps = e.Overlaps
	}
	scenario(h, e)
	h.stop()
	e.close()
	h.verify()
}

// config returns the configuration of a server "s" without a socket.
func (e *testServer) config() mcpbridge.Server {
	return mcpbridge.Server{Name: "s", URL: e.URL() + "/mcp", HTTPClient: &http.Client{Transport: e.Server}}
}

// newHTTPTools returns tools for streamable HTTP.
func newHTTPTools() *faults.Tools { return faults.NewTools() }

// newSSETools returns tools for HTTP+SSE.
func newSSETools() *faults.Tools {
	tools := faults.NewTools()
	tools.SSE = true
	return tools
}

// newStatelessTools returns tools for streamable HTTP without sessions.
func newStatelessTools() *faults.Tools {
	tools := faults.NewTools()
	tools.Stateless = true
	return tools
}
