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

// overLocalHTTP runs a scenario on a server named "s" without a socket, in a bubble of fake
// time.
func overLocalHTTP(t *testing.T, cfg supervisor.Config, tools func() *faults.Tools, scenario func(h *harness, e *testServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		one := tools()
		overLocalServer(t, cfg, one, faults.Local(one.Handler), scenario)
	})
}

// overLocalServer is locally for a server in the bubble.
func overLocalServer(t *testing.T, cfg supervisor.Config, tools *faults.Tools, server *faults.Server, scenario func(h *harness, e *testServer)) {
	t.Helper()
	e := &testServer{server, tools, t}
	defer time.Sleep(3 * time.Second) // synctest: Proto.Actor's throttle of dead letters ends
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

// newHTTPTools are tools over streamable HTTP, and sseTools over HTTP+SSE.
func newHTTPTools() *faults.Tools { return faults.NewTools() }

func newSSETools() *faults.Tools {
	tools := faults.NewTools()
	tools.SSE = true
	return tools
}
