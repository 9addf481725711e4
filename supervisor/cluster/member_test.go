//go:build !race

package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/cluster"
)

// counter is an MCP server whose sessions count.
func counter(t *testing.T) (url string, sessions *atomic.Int64) {
	sessions = new(atomic.Int64)
	newServer := func() *mcp.Server {
		sessions.Add(1)
		var count atomic.Int64
		s := mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil)
		mcp.AddTool(s, &mcp.Tool{Name: "add"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(count.Add(1))}}}, nil, nil
		})
		return s
	}
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newServer() }, nil))
	t.Cleanup(server.Close)
	return server.URL, sessions
}

func startMember(t *testing.T, hub *cluster.InProcess, url, name string) *cluster.Member {
	t.Helper()
	m, err := cluster.Start(t.Context(), actor.NewActorSystem(), cluster.Config{
		Supervisor: supervisor.Config{Servers: []supervisor.Server{{Name: "counter", URL: url}}, Logger: zerolog.New(os.Stderr).Level(zerolog.WarnLevel)},
		Member:     name, Provider: "in-process", InProcess: hub,
	})
	require.NoError(t, err)
	t.Cleanup(func() { at := time.Now(); err := m.Stop(context.Background()); t.Log(name, time.Since(at), err) })
	return m
}

func TestThreeMembersShareKeys(t *testing.T) {
	hub := cluster.NewInProcess()
	url, sessions := counter(t)
	var members []*cluster.Member
	for _, name := range []string{"a", "b", "c"} {
		members = append(members, startMember(t, hub, url, name))
	}
	require.Eventually(t, func() bool {
		for _, m := range members {
			if len(m.Members()) != 3 {
				return false
			}
		}
		return true
	}, 10*time.Second, 10*time.Millisecond)
	before := sessions.Load()
	var wait sync.WaitGroup
	names := sync.Map{}
	for i := range 60 {
		for _, m := range members {
			wait.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				res, err := m.Client().CallTool(ctx, "counter", fmt.Sprint(i), &mcp.CallToolParams{Name: "add"})
				if err != nil {
					t.Error(err)
					return
				}
				names.Store(res.Supervisor, true)
			})
		}
	}
	wait.Wait()
	t.Log(sessions.Load() - before)
	names.Range(func(k, _ any) bool { t.Log(k); return true })
	snap, err := members[0].Client().Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, 60, snap.Total)
	t.Logf("%+v", snap.Members)
	closed, err := members[1].Client().CloseAll(t.Context())
	require.NoError(t, err)
	require.Equal(t, 60, closed.Sessions)
	require.Equal(t, messages.Code(""), messages.Code(""))
}
