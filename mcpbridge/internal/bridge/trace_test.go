package bridge

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/messages"
)

func init() {
	testServers["meta"] = func() {
		newMetaServer().Run(context.Background(), &mcp.StdioTransport{})
	}
}

// newMetaServer returns a server with a tool that returns the traceparent and the tracestate of
// each request so far, by its method. It forgets them then.
func newMetaServer() *mcp.Server {
	var mu sync.Mutex
	seen := map[string]traceFields{}
	s := mcp.NewServer(&mcp.Implementation{Name: "meta", Version: "1"}, nil)
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if params := req.GetParams(); params != nil && !strings.HasPrefix(method, "notifications/") {
				mu.Lock()
				seen[method] = traceFields{params.GetMeta()["traceparent"], params.GetMeta()["tracestate"]}
				mu.Unlock()
			}
			return next(ctx, method, req)
		}
	})
	s.AddTool(&mcp.Tool{Name: "seen", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		mu.Lock()
		defer mu.Unlock()
		text, err := json.Marshal(seen)
		clear(seen)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, err
	})
	return s
}

// traceFields are a traceparent and a tracestate, each nil where there is none.
type traceFields [2]any

// seenBy returns what the server has seen, with the call that asks it, which has the given _meta.
func seenBy(t *testing.T, ctx context.Context, c dial.Conn, meta mcp.Meta) map[string]traceFields {
	t.Helper()
	params := &mcp.CallToolParams{Name: "seen", Meta: maps.Clone(meta)}
	result, err := c.Do(ctx, &messages.CallTool{Params: params})
	require.NoError(t, err)
	require.Equal(t, meta, params.Meta, "parameters are read-only")
	var seen map[string]traceFields
	require.NoError(t, json.Unmarshal([]byte(result.(*messages.ToolResult).Result.Content[0].(*mcp.TextContent).Text), &seen))
	return seen
}

const (
	dialParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	callParent = "00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-00"
	ownParent  = "00-2af7651916cd43dd8448eb211c80319c-d7ad6b7169203331-01"
)

func TestTraceOfAnOperationReachesTheServer(t *testing.T) {
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newMetaServer() }, nil))
	defer web.Close()
	old := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return newMetaServer() }, nil))
	defer old.Close()
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for name, srv := range map[string]*mcpbridge.Server{
		"memory":     {Name: "test", InMemory: new(mcp.Server)},
		"stdio":      server("meta"),
		"streamable": {Name: "test", URL: web.URL, HTTPClient: client},
		"sse":        {Name: "test", URL: old.URL, Transport: mcpbridge.TransportSSE, HTTPClient: client},
	} {
		for _, version := range []string{"", "2025-11-25"} {
			t.Run(name+version, func(t *testing.T) {
				configured := *srv
				configured.ProtocolVersion = version
				if srv.InMemory != nil {
					configured.InMemory = newMetaServer()
				}
				b := New([]mcpbridge.Server{configured}, nil)
				defer b.Close()
				dialing := messages.WithTrace(t.Context(), messages.Trace{Parent: dialParent})
				c, err := b.Dial(dialing, dial.Request{Key: messages.Key{Server: "test"}, Down: func(*mcpbridge.Error) {}})
				require.NoError(t, err)
				defer func() { require.NoError(t, c.Close(context.Background())) }()

				seen := seenBy(t, t.Context(), c, nil)
				require.Equal(t, traceFields{}, seen["tools/call"], "nothing is added without a trace")
				handshakes := 0
				for _, handshake := range []string{"initialize", "server/discover"} {
					if fields, sent := seen[handshake]; sent {
						require.Equal(t, traceFields{dialParent, nil}, fields, handshake)
						handshakes++
					}
				}
				require.Positive(t, handshakes)

				ctx := messages.WithTrace(t.Context(), messages.Trace{Parent: callParent, State: "vendor=one"})
				traced := traceFields{callParent, "vendor=one"}
				seen = seenBy(t, ctx, c, mcp.Meta{"mine": "kept"})
				require.Equal(t, traced, seen["tools/call"])
				seen = seenBy(t, ctx, c, mcp.Meta{"traceparent": ownParent})
				require.Equal(t, traceFields{ownParent, nil}, seen["tools/call"], "that of the caller stays, with its tracestate")

				for method, op := range map[string]messages.Operation{"tools/list": &messages.ListTools{}, "ping": &messages.Ping{}} {
					_, err := c.Do(ctx, op)
					require.NoError(t, err, method)
					if method == "ping" && c.Info().Server.ProtocolVersion > protocolLegacy {
						method = rpc.MethodDiscover
					}
					require.Equal(t, traced, seenBy(t, t.Context(), c, nil)[method], method)
				}
			})
		}
	}
}

func TestTraceIsAHeaderUnlessTheUserHasSetOne(t *testing.T) {
	var mu sync.Mutex
	var seen []string // of tools/call
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newMetaServer() }, &mcp.StreamableHTTPOptions{JSONResponse: true})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Method+" "+r.Header.Get("Traceparent")+" "+r.Header.Get("Tracestate"))
		mu.Unlock()
		inner.ServeHTTP(w, r)
	})
	last := func() string {
		mu.Lock()
		defer mu.Unlock()
		return seen[len(seen)-1]
	}
	trace := messages.Trace{Parent: callParent, State: "vendor=one"}
	for name, row := range map[string]struct {
		adapt func(*mcpbridge.Server)
		want  string
	}{
		"none":          {func(*mcpbridge.Server) {}, "POST " + callParent + " vendor=one"},
		"other headers": {func(s *mcpbridge.Server) { s.Headers = map[string]string{"X-Mine": "1"} }, "POST " + callParent + " vendor=one"},
		"configured":    {func(s *mcpbridge.Server) { s.Headers = map[string]string{"traceparent": ownParent} }, "POST " + ownParent + " "},
		"a state":       {func(s *mcpbridge.Server) { s.Headers = map[string]string{"Tracestate": "own=1"} }, "POST " + callParent + " own=1"},
		"credentials": {func(s *mcpbridge.Server) {
			s.Auth = mcpbridge.AuthenticatorFunc(func(context.Context, messages.Key) (mcpbridge.Credentials, error) { return ownTrace{}, nil })
		}, "POST " + ownParent + " "},
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(handler)
			defer web.Close()
			transport := new(http.Transport)
			defer transport.CloseIdleConnections()
			srv := mcpbridge.Server{Name: "test", URL: web.URL, NoStream: true, HTTPClient: &http.Client{Transport: transport}}
			row.adapt(&srv)
			b := New([]mcpbridge.Server{srv}, nil)
			defer b.Close()
			c, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "test"}, Down: func(*mcpbridge.Error) {}})
			require.NoError(t, err)
			fields := seenBy(t, messages.WithTrace(t.Context(), trace), c, nil)["tools/call"]
			require.Equal(t, traceFields{trace.Parent, trace.State}, fields, "_meta has the trace in any case")
			require.Equal(t, row.want, last())
			if name == "none" {
				seenBy(t, t.Context(), c, nil)
				require.Equal(t, "POST  ", last(), "nothing is left of the call before")
			}
			require.NoError(t, c.Close(t.Context()))
		})
	}
}

// ownTrace are credentials with a trace.
type ownTrace struct{}

func (ownTrace) Headers(context.Context) (http.Header, error) {
	return http.Header{"Traceparent": {ownParent}}, nil
}

func (ownTrace) Refresh(context.Context, *http.Request, *http.Response) error { return nil }
