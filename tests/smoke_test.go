package tests

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"net/http/httptest"
	"net/http"
)

func TestSmoke(t *testing.T) {
	srv := mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	mcp.AddTool(srv, &mcp.Tool{Name: "echo"}, func(ctx context.Context, req *mcp.CallToolRequest, in struct{ Text string }) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, nil))
	defer h.Close()
	sse := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return srv }, nil))
	defer sse.Close()
	system := actor.NewActorSystem()
	s, err := supervisor.Start(system, supervisor.Config{
		Servers: []mcpbridge.Server{{Name: "mem", InMemory: srv}, {Name: "http", URL: h.URL}, {Name: "sse", URL: sse.URL, Transport: "sse"}},
		Logger:  zerolog.New(zerolog.NewTestWriter(t)),
	})
	require.NoError(t, err)
	for _, name := range []string{"mem", "http", "sse"} {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		r, err := s.Client().CallTool(ctx, name, "a", &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"Text": "hi"}})
		cancel()
		require.NoError(t, err)
		fmt.Println(r, r.Result.Content[0].(*mcp.TextContent).Text, r.Generation)
	}
	require.NoError(t, s.Stop(context.Background()))
}
