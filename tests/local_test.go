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

// locally runs a scenario on a server named "s" without a socket, in a bubble of fake
// time.
func locally(t *testing.T, cfg supervisor.Config, tools func() *faults.Tools, scenario func(w *world, e *endpoint)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		one := tools()
		behind(t, cfg, one, faults.Local(one.Handler), scenario)
	})
}

// behind is locally for a server in the bubble.
func behind(t *testing.T, cfg supervisor.Config, tools *faults.Tools, server *faults.Server, scenario func(w *world, e *endpoint)) {
	t.Helper()
	e := &endpoint{server, tools, t}
	defer time.Sleep(3 * time.Second) // synctest: Proto.Actor's throttle of dead letters ends
	defer e.end()                     // also when the scenario fails
	if len(cfg.Servers) == 0 {
		cfg.Servers = []mcpbridge.Server{{Name: "s"}}
		if tools.SSE {
			cfg.Servers[0].Transport = mcpbridge.TransportSSE
		}
	}
	cfg.Servers[0].URL, cfg.Servers[0].HTTPClient = e.URL()+"/mcp", &http.Client{Transport: server}
	w := start(t, cfg)
	defer w.stop()
	w.executed = e.Executions
	if !tools.SSE {
		w.overlaps = e.Overlaps
	}
	scenario(w, e)
	w.stop()
	e.end()
	w.verify()
}

// httpTools are tools over streamable HTTP, and sseTools over HTTP+SSE.
func httpTools() *faults.Tools { return faults.NewTools() }

func sseTools() *faults.Tools {
	tools := faults.NewTools()
	tools.SSE = true
	return tools
}
