package tests

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// ownedServer returns a server whose only tool has the name of its owner.
func ownedServer(owner string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "owned", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: toolOf(owner)}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	return s
}

func toolOf(owner string) string { return fmt.Sprintf("tool_of_%x", owner) }

// accountOf returns the account of a scope. Two neighbors differ in one byte, which is not UTF-8.
func accountOf(scope string) string {
	n, _ := strconv.Atoi(scope)
	return "ren" + string([]byte{0xe8 + byte(n%2)}) + fmt.Sprint(n/2)
}

// Scopes come and go by the hundred, and the collector takes what they leave. Each sees its own list.
func TestScopesWithServersOfTheirOwnSeeTheirOwnLists(t *testing.T) {
	many := 1000
	if testing.Short() {
		many = 100
	}
	for name, test := range map[string]struct {
		scopes int
		start  func(t *testing.T) mcpbridge.Server
		adapt  func(s *mcpbridge.Server, scope string) error
	}{
		"memory": {
			many, func(*testing.T) mcpbridge.Server { return mcpbridge.Server{InMemory: ownedServer("nobody")} },
			func(s *mcpbridge.Server, scope string) error { s.InMemory = ownedServer(accountOf(scope)); return nil },
		},
		"http": {
			many, func(t *testing.T) mcpbridge.Server {
				of := sync.Map{} // one for each account, as a server with accounts would have
				srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
					account := r.Header.Get("X-Account")
					server, _ := of.LoadOrStore(account, ownedServer(account))
					return server.(*mcp.Server)
				}, nil))
				t.Cleanup(srv.Close)
				return mcpbridge.Server{URL: srv.URL, NoStream: true}
			},
			func(s *mcpbridge.Server, scope string) error {
				s.Headers = map[string]string{"X-Account": accountOf(scope)}
				return nil
			},
		},
		"stdio": {12, describing, func(s *mcpbridge.Server, scope string) error {
			s.Env = map[string]string{describeVar: "1", "GORACE": "atexit_sleep_ms=0", "OWNER": accountOf(scope)}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			base := test.start(t)
			base.Name = "s"
			sup, err := supervisor.Start(nil, supervisor.Config{MaxSessions: 4, Servers: []mcpbridge.Server{keyed(base, test.adapt)}})
			require.NoError(t, err)
			defer func() { require.NoError(t, sup.Stop(context.Background())) }()
			done, collected := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(collected)
				for {
					select {
					case <-done:
						return
					case <-time.After(time.Millisecond):
						runtime.GC()
					}
				}
			}()
			defer func() { close(done); <-collected }()
			var workers sync.WaitGroup
			for worker := range 4 {
				workers.Go(func() {
					for i := worker; i < test.scopes; i += 4 {
						scope := fmt.Sprint(i)
						op := &messages.ListTools{Header: messages.To("s", scope), Shared: true}
						result, err := sup.Client().Do(t.Context(), op)
						if err != nil || len(result.(*messages.ToolList).Result.Tools) != 1 || result.(*messages.ToolList).Result.Tools[0].Name != toolOf(accountOf(scope)) {
							t.Errorf("scope %s: %v, %v", scope, result, err)
							return
						}
					}
				})
			}
			workers.Wait()
		})
	}
}
