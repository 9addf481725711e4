package benchmarks

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// overGateway calls as a framework does, with a client of the SDK for each key on a transport of a gateway.
type overGateway struct {
	*supervised
	gateway  *gateway.Gateway
	connect  func(o *overGateway, key string) (*mcp.ClientSession, error)
	tool     string
	mu       sync.Mutex
	sessions map[string]*mcp.ClientSession
}

// openGateway returns openers of clients that connect in a way, and call a tool by a name.
func openGateway(tool string, connect func(*overGateway, string) (*mcp.ClientSession, error)) opener {
	return func(r route) (client, error) {
		r.server.Name = serverName
		r.server = gateway.Prepare(r.server)[0]
		s, err := supervise(r, supervisor.Config{})
		if err != nil {
			return nil, err
		}
		g, err := gateway.New(s.Supervisor, gateway.Config{})
		return &overGateway{supervised: s, gateway: g, connect: connect, tool: tool, sessions: map[string]*mcp.ClientSession{}}, err
	}
}

// toOneServer connects to the server as it is.
func toOneServer(o *overGateway, key string) (*mcp.ClientSession, error) {
	return sdk.Connect(context.Background(), o.gateway.Server(serverName, gateway.Scope{Name: key}), nil)
}

// toTools connects to a toolset, which stays open.
func toTools(o *overGateway, key string) (*mcp.ClientSession, error) {
	tools, err := toolset.New(nil, o.Supervisor, toolset.Config{Scope: key, Servers: []toolset.Filter{{Name: serverName}}})
	if err != nil {
		return nil, err
	}
	return sdk.Connect(context.Background(), o.gateway.Tools(tools, gateway.Scope{}), nil)
}

func (o *overGateway) call(ctx context.Context, key string) error {
	o.mu.Lock()
	session := o.sessions[key]
	if session == nil {
		var err error
		if session, err = o.connect(o, key); err != nil {
			o.mu.Unlock()
			return err
		}
		o.sessions[key] = session
	}
	o.mu.Unlock()
	params := echoParams()
	params.Name = o.tool
	_, err := session.CallTool(ctx, params)
	return err
}

func (o *overGateway) close() {
	o.gateway.Close()
	o.supervised.close()
}

// BenchmarkTransport measures a call of a client of the SDK on a transport of a gateway, beside one of supervisor.Client, and beside
// that client on the SDK's own transport.
func BenchmarkTransport(b *testing.B) {
	for _, r := range routes() {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("transport=%s/callers=%d", r.name, callers), func(b *testing.B) {
				compare(b, r, []contender{
					{"mcpactor", openClient(supervisor.Config{})},
					{"gateway", openGateway(echoParams().Name, toOneServer)},
					{"gateway-tools", openGateway(toolset.SafeName(serverName, echoParams().Name), toTools)},
					{"bare", openBare},
				}, func(b *testing.B, c client) { measureCalls(b, callers, c) })
			})
		}
	}
}
