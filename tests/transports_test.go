package tests

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// counter returns a server whose tool "count" counts the calls of all sessions.
func counter() *mcp.Server {
	var n atomic.Int64
	server := mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "count"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(n.Add(1))}}}, nil, nil
	})
	return server
}

// serve serves a handler on an address until the function it returns is called.
func serve(t *testing.T, addr string, h http.Handler) (string, func()) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	s := &http.Server{Handler: h}
	go s.Serve(l) // it ends with Close
	return l.Addr().String(), func() { s.Close() }
}

// B1, C1 over HTTP+SSE
func TestLegacySSESessionIsRebuilt(t *testing.T) {
	handler := func() http.Handler {
		server := counter()
		return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil)
	}
	var refuse atomic.Bool
	inner := handler()
	addr, stop := serve(t, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && refuse.CompareAndSwap(true, false) {
			http.Error(w, "session not found", http.StatusNotFound)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	w := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", URL: "http://" + addr, Transport: mcpbridge.TransportSSE}}})
	require.Equal(t, "1", w.send(call("a", "count")).text())

	refuse.Store(true)
	r := w.send(call("a", "count")).ok()
	require.EqualValues(t, 2, r.Generation)
	require.True(t, r.Replayed)

	stop()
	await(w, func(*messages.SessionLost) bool { return true })
	_, stop = serve(t, addr, handler())
	defer stop()
	r = w.send(call("a", "count")).ok()
	require.EqualValues(t, 3, r.Generation)
	w.end()
}

// A session without an id has nothing to lose: it says so, and keeps its
// generation.
func TestStatelessSessionKeepsItsGeneration(t *testing.T) {
	handler := func() http.Handler {
		server := counter()
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	}
	addr, stop := serve(t, "127.0.0.1:0", handler())
	w := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", URL: "http://" + addr}}})
	info := w.send(&messages.Open{Header: messages.To("s", "a")}).reply().(*messages.SessionInfo)
	require.True(t, info.Stateless)
	require.Equal(t, "1", w.send(call("a", "count")).text())
	stop()
	_, stop = serve(t, addr, handler())
	defer stop()
	r := w.send(call("a", "count", replay(messages.ReplayAlways))) // on a connection that is just being closed
	require.Equal(t, "1", r.text())
	require.EqualValues(t, 1, r.ok().Generation)
	w.end()
}

func TestInMemorySessionsAreTheirOwn(t *testing.T) {
	w := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", InMemory: counter()}}})
	require.Equal(t, "1", w.send(call("a", "count")).text())
	require.Equal(t, "2", w.send(call("b", "count")).text())
	list := w.send(&messages.ListTools{Header: messages.To("s", "a")}).reply().(*messages.ToolList)
	require.Len(t, list.Result.Tools, 1)
	require.IsType(t, &messages.Pong{}, w.send(&messages.Ping{Header: messages.To("s", "a")}).reply())
	require.ErrorContains(t, w.send(call("a", "nonsense")).fails(messages.CodeInvalid), "unknown tool")
	unmarshalable := call("a", "count")
	unmarshalable.Params.Arguments = func() {}
	require.Contains(t, w.send(unmarshalable).fails(messages.CodeInvalid).Detail, "unsupported type")
	require.Equal(t, "3", w.send(call("a", "count")).text())
	require.Equal(t, 2, w.watch.dialed())
	w.end()
}

// F8
func TestResultOverTheLimitIsAProtocolFailureThatNamesIt(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "big", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "big"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Size int `json:"size"`
	},
	) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(make([]byte, in.Size))}}}, nil, nil
	})
	for _, json := range []bool{true, false} {
		t.Run(fmt.Sprint("JSON=", json), func(t *testing.T) { tooLarge(t, server, json) })
	}
}

func tooLarge(t *testing.T, server *mcp.Server, json bool) {
	addr, stop := serve(t, "127.0.0.1:0", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: json}))
	defer stop()
	w := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", URL: "http://" + addr, MaxResult: 1 << 16}}})
	big := func(size int) *pending {
		op := call("a", "big")
		op.Params.Arguments = map[string]any{"size": size}
		return w.send(op)
	}
	require.Len(t, big(5_000).text(), 5_000)
	require.Contains(t, big(1<<17).fails(messages.CodeProtocol).Detail, "65536")
	require.Len(t, big(10).text(), 10)
	require.Equal(t, 1, w.watch.dialed())
	w.end()
}

// What a server's configuration can say about how to talk to it.
func TestServerOptionsReachTheWire(t *testing.T) {
	e := newEndpoint(t)
	defer e.end()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	var seen atomic.Int64
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("X-Tenant") == "blue" {
			seen.Add(1)
		}
		return transport.RoundTrip(r)
	})}
	w := start(t, supervisor.Config{Servers: []mcpbridge.Server{{
		Name: "s", URL: "http://" + e.addr, Headers: map[string]string{"X-Tenant": "blue"},
		HTTPClient: client, NoStream: true, ProtocolVersion: "2025-06-18",
	}}})
	info := w.send(&messages.Open{Header: messages.To("s", "a")}).reply().(*messages.SessionInfo)
	require.Equal(t, "2025-06-18", info.Server.ProtocolVersion)
	require.Equal(t, "1", w.send(call("a", "count")).text())
	w.end()
	require.Zero(t, e.count("GET"))
	require.Zero(t, e.count("POST server/discover"))
	require.Equal(t, 1, e.count("DELETE"))
	require.EqualValues(t, len(e.requests), seen.Load())
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server that ignores a method it does not know is asked in the old way, and
// remembered.
func TestServerThatIgnoresDiscoverIsAskedInTheOldWay(t *testing.T) {
	overHTTP(t, supervisor.Config{}, func(w *world, e *endpoint) {
		e.set(func() {
			e.meddle = func(_ http.ResponseWriter, r *http.Request, body string) bool {
				if strings.Contains(body, `"server/discover"`) {
					<-r.Context().Done()
					return true
				}
				return false
			}
		})
		require.Equal(t, "1", w.send(call("a", "count")).text())
		began := time.Now()
		require.Equal(t, "1", w.send(call("b", "count")).text())
		require.Less(t, time.Since(began), 4*time.Second)
		require.Equal(t, 1, e.count("POST server/discover"))
		require.Equal(t, 2, e.count("POST initialize"))
	})
}
