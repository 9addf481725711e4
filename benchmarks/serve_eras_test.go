package benchmarks

import (
	"context"
	"fmt"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// protocolWithoutSessions is the protocol in which each request says what its client can do.
const protocolWithoutSessions = "2026-07-28"

// BenchmarkServeEras measures calls of old clients, with sessions, and of new ones, without, through mcpactor serve in front of an
// old and a new server, beside a direct connection in the protocol of the client. The client and the server are of the SDK. With
// entry=stdio the client starts mcpactor, or the server; with entry=http both listen. mcpactor starts its server.
func BenchmarkServeEras(b *testing.B) {
	mcpactor, err := buildMcpactor()
	require.NoError(b, err)
	servers := []struct{ how, mode string }{{"old-server", serveOldStdio}, {"new-server", serveStdio}}
	for _, from := range []struct{ name, version string }{{"old", protocolWithSessions}, {"new", protocolWithoutSessions}} {
		starting := func(command ...string) func(route) (client, error) {
			return func(route) (client, error) {
				return openBare(route{name: "stdio", open: func(ctx context.Context) (session, error) {
					return connect(ctx, &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...)}, from.version)
				}})
			}
		}
		open := func(url string) (client, error) {
			return openBare(route{open: dialsHTTP(url, tuned, false, from.version)})
		}
		overPipe := []contender{{"direct", starting(self, serveStdio, "", "")}}
		overHTTP := []contender{{"direct", func(route) (client, error) { return open(origin + pathSSE) }}}
		for _, server := range servers {
			serve := func(flags ...string) []string {
				command := append([]string{mcpactor, "serve", "--no-cache", "--log-level", "error"}, flags...)
				return append(command, "--", self, server.mode, "", "")
			}
			overPipe = append(overPipe, contender{server.how, starting(serve()...)})
			overHTTP = append(overHTTP, contender{server.how, listening(func(port string) []string { return serve("--listen", "127.0.0.1:"+port) }, open)})
		}
		for _, callers := range []int{1, 32} {
			measure := func(b *testing.B, c client) { measureCalls(b, callers, c) }
			b.Run(fmt.Sprintf("entry=stdio/client=%s/callers=%d", from.name, callers), func(b *testing.B) { compare(b, route{}, overPipe, measure) })
			b.Run(fmt.Sprintf("entry=http/client=%s/callers=%d", from.name, callers), func(b *testing.B) { compare(b, route{}, overHTTP, measure) })
		}
	}
}

// onlyOld makes a server one that does not know protocol 2026-07-28.
func onlyOld(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "server/discover" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}
		}
		return next(ctx, method, req)
	}
}
