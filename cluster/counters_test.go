package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// counters is an MCP server with a counter for each MCP session. It counts the sessions that it
// has opened for each scope.
type counters struct {
	url  string
	mu   sync.Mutex
	open map[string]int  // by scope
	live map[string]bool // the sessions that are open, by their ids

	waiting, proceed chan struct{} // of the tool "wait"
	closing, close   chan struct{} // of sessions that are closed; nil if that does not wait
}

// left returns how many sessions are open.
func (s *counters) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

func newCounters(t *testing.T) *counters {
	s := &counters{open: map[string]int{}, live: map[string]bool{}, waiting: make(chan struct{}), proceed: make(chan struct{})}
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		var count atomic.Int64
		server := mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "add"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(count.Add(1))}}}, nil, nil
		})
		mcp.AddTool(server, &mcp.Tool{Name: "wait"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			s.waiting <- struct{}{}
			<-s.proceed
			return &mcp.CallToolResult{}, nil, nil
		})
		return server
	}, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			if s.closing != nil {
				s.closing <- struct{}{}
				<-s.close
			}
			s.mu.Lock()
			delete(s.live, r.Header.Get("Mcp-Session-Id"))
			s.mu.Unlock()
		}
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" {
			defer func() {
				if id := w.Header().Get("Mcp-Session-Id"); id != "" {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.open[r.Header.Get("Scope")]++
					s.live[id] = true
				}
			}()
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// sessions returns how many sessions were opened for a scope.
func (s *counters) sessions(scope string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[scope]
}

// start starts a member, which is stopped at the end of the test.
func (s *counters) start(t *testing.T, cfg cluster.Config) *cluster.Member {
	t.Helper()
	cfg.Supervisor.Servers = []supervisor.Server{{Name: "counter", URL: s.url, PerKey: func(_ context.Context, key messages.Key) (supervisor.Server, error) {
		return supervisor.Server{URL: s.url, Headers: map[string]string{"Scope": key.Scope}}, nil
	}}}
	return startMember(t, cfg)
}

// startMember starts a member with an actor system of its own. It is stopped at the end of the test.
func startMember(t *testing.T, cfg cluster.Config) *cluster.Member {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	m, err := cluster.Start(ctx, actor.NewActorSystem(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		require.NoError(t, m.Stop(ctx))
	})
	return m
}

// startAll starts members at the same time, and waits until each knows all.
func (s *counters) startAll(t *testing.T, cfgs ...cluster.Config) []*cluster.Member {
	t.Helper()
	members := make([]*cluster.Member, len(cfgs))
	var wait sync.WaitGroup
	for i, cfg := range cfgs {
		wait.Go(func() { members[i] = s.start(t, cfg) })
	}
	wait.Wait()
	for _, m := range members {
		knows(t, m, len(members))
	}
	return members
}

// knows waits until a member knows as many members.
func knows(t *testing.T, m *cluster.Member, count int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(m.Members()) == count }, 20*time.Second, 10*time.Millisecond)
}

func call(t *testing.T, m *cluster.Member, scope string) *messages.ToolResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	result, err := m.Client().CallTool(ctx, "counter", scope, &mcp.CallToolParams{Name: "add"})
	require.NoError(t, err)
	return result
}

func text(r *messages.ToolResult) string { return r.Result.Content[0].(*mcp.TextContent).Text }

func inProcess(hub *cluster.InProcess, name string) cluster.Config {
	return cluster.Config{Member: name, InProcess: hub}
}

// free returns a free address of loopback.
func free(t *testing.T) string {
	addr, err := clusterapi.FreeAddr("127.0.0.1")
	require.NoError(t, err)
	return addr
}
