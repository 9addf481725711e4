package tests

import (
	"context"
	"go/build"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// B1, C1 over HTTP+SSE.
func TestLegacySSESessionIsRebuilt(t *testing.T) {
	tools := faults.NewTools()
	tools.SSE = true
	overHTTPWith(t, supervisor.Config{}, tools, func(h *harness, e *testServer) {
		require.Equal(t, "1", h.send(call("a", "count")).text())

		require.Equal(t, 1, e.Expire(faults.Expiries()[0]))
		r := h.send(call("a", "count"))
		require.Equal(t, "1", r.text())
		require.EqualValues(t, 2, r.ok().Generation)
		require.True(t, r.ok().Replayed)

		require.NoError(t, e.Restart())
		awaitEvent(h, func(*messages.SessionLost) bool { return true })
		r = h.send(call("a", "count"))
		require.Equal(t, "1", r.text())
		require.EqualValues(t, 3, r.ok().Generation)
	})
}

func TestInMemorySessionsAreTheirOwn(t *testing.T) {
	tools := faults.NewTools()
	h := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", InMemory: tools.Server()}}})
	h.executed = tools.Executions
	require.Equal(t, "1", h.send(call("a", "count")).text())
	require.Equal(t, "1", h.send(call("b", "count")).text())
	list := h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply().(*messages.ToolList)
	require.Len(t, list.Result.Tools, 10)
	require.IsType(t, &messages.Ack{}, h.send(&messages.Ping{Header: messages.To("s", "a")}).reply())
	require.ErrorContains(t, h.send(call("a", "nonsense")).fails(messages.CodeInvalid), "unknown tool")
	unmarshalable := call("a", "count")
	unmarshalable.Params.Arguments = func() {}
	require.Contains(t, h.send(unmarshalable).fails(messages.CodeInvalid).Detail, "unsupported type")
	if slices.Contains(build.Default.ReleaseTags, "go1.27") { // whose encoding/json does not encode it
		var deep any
		for range 10_001 {
			deep = []any{deep}
		}
		unmarshalable.Params.Arguments = deep
		h.send(unmarshalable).fails(messages.CodeInvalid)
	}
	require.Equal(t, "2", h.send(call("a", "count")).text())
	require.Equal(t, 2, h.dials.dialed())
	h.stopAndVerify()
}

// F8
func TestResultOverTheLimitIsAProtocolFailureThatNamesIt(t *testing.T) {
	for name, form := range map[string]func(*faults.Tools){
		"as JSON":       func(tools *faults.Tools) { tools.JSON = true },
		"as a stream":   func(*faults.Tools) {},
		"over HTTP+SSE": func(tools *faults.Tools) { tools.SSE = true },
	} {
		t.Run(name, func(t *testing.T) {
			tools := faults.NewTools()
			form(tools)
			cfg := supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", MaxResult: 1 << 16}}}
			overHTTPWith(t, cfg, tools, func(h *harness, _ *testServer) {
				other := h.send(call("a", "wait"))
				require.Len(t, h.send(call("a", "big", with("size", 5_000))).text(), 5_000)
				require.Contains(t, h.send(call("a", "big", with("size", 1<<17))).fails(messages.CodeProtocol).Detail, "65536")
				require.Len(t, h.send(call("a", "big", with("size", 10))).text(), 10)
				require.Equal(t, 1, h.dials.dialed())
				tools.Release()
				other.ok() // it shares the session
			})
		})
	}
}

// F8
func TestResultOfManyMegabytesIsPassedOn(t *testing.T) {
	overHTTP(t, supervisor.Config{}, func(h *harness, _ *testServer) {
		require.Len(t, h.send(call("a", "big", with("size", 8<<20))).text(), 8<<20)
	})
}

// The options of a server take effect on its requests.
func TestServerOptionsReachTheWire(t *testing.T) {
	e := serve(t, faults.NewTools())
	defer e.close()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	var seen atomic.Int64
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("X-Tenant") == "blue" {
			seen.Add(1)
		}
		return transport.RoundTrip(r)
	})}
	h := start(t, supervisor.Config{Servers: []mcpbridge.Server{{
		Name: "s", URL: e.URL(), Headers: map[string]string{"X-Tenant": "blue"},
		HTTPClient: client, NoStream: true, ProtocolVersion: "2025-06-18",
	}}})
	info := h.send(&messages.Open{Header: messages.To("s", "a")}).reply().(*messages.SessionInfo)
	require.Equal(t, "2025-06-18", info.Server.ProtocolVersion)
	require.Equal(t, "1", h.send(call("a", "count")).text())
	h.stopAndVerify()
	require.Zero(t, e.Count("GET"))
	require.Zero(t, e.Count("server/discover"))
	require.Equal(t, 1, e.Count("DELETE"))
	require.EqualValues(t, 4, seen.Load(), "initialize, its notification, the call and DELETE")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server that does not answer server/discover is initialized instead, and this is
// remembered.
func TestServerThatIgnoresDiscoverIsAskedInTheOldWay(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
		e.Inject("server/discover", faults.Hang())
		require.Equal(t, "1", h.send(call("a", "count")).text())
		began := time.Now()
		require.Equal(t, "1", h.send(call("b", "count")).text())
		require.Less(t, time.Since(began), 4*time.Second)
		require.Equal(t, 1, e.Count("server/discover"))
		require.Equal(t, 2, e.Count("initialize"))
	})
}

// server/discover is sent once for a server, and not for each session.
func TestOldServerIsAskedForTheNewestProtocolOnce(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
		for _, scope := range []string{"a", "b", "c", "d"} {
			require.Equal(t, "1", h.send(call(scope, "count")).text())
		}
		require.Equal(t, 1, e.Count("server/discover"))
		require.Equal(t, 4, e.Count("initialize"))
		require.Equal(t, "2025-11-25", h.session("a").Protocol)
		require.False(t, h.session("a").Stateless)
	})
}

// After a restart, a stateless server may have other tools. The subscription is made again,
// and ToolsChanged is published.
func TestSubscriptionToARestartedStatelessServerIsMadeAgain(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newStatelessTools, func(h *harness, e *testServer) {
		h.send(&messages.Open{Header: messages.To("s", "a")}).reply()
		require.True(t, h.session("a").Stateless)
		require.Equal(t, "2026-07-28", h.session("a").Protocol)
		e.awaitRequests("subscriptions/listen", 1)
		require.NoError(t, e.Restart())
		awaitEvent(h, func(*messages.ToolsChanged) bool { return true })
		e.awaitRequests("subscriptions/listen", 2)
		require.Zero(t, countEvents[*messages.SessionLost](h))
	})
}

// Arguments that a tool declares as headers are sent as headers, also on a session that has
// not listed the tools.
func TestArgumentsThatAreHeadersReachANewSession(t *testing.T) {
	desk := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	region := map[string]any{"type": "string", "x-mcp-header": "Region"}
	desk.AddTool(&mcp.Tool{Name: "where", InputSchema: map[string]any{"type": "object", "properties": map[string]any{"region": region}}},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: req.Extra.Header.Get("Mcp-Param-Region")}}}, nil
		})
	server, err := faults.Serve(func() http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return desk }, &mcp.StreamableHTTPOptions{Stateless: true})
	})
	require.NoError(t, err)
	defer server.Close()
	h := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", URL: server.URL()}}})
	for range 2 {
		require.Equal(t, "north", h.send(call("a", "where", with("region", "north"))).text())
	}
	require.Equal(t, 3, server.Count("tools/call"), "one was refused")
	require.Equal(t, 1, server.Count("tools/list"))
	h.stopAndVerify()
}
