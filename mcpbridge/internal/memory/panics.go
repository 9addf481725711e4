package memory

import (
	"context"
	"runtime"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
)

// contained are the servers with the middleware that contains panics.
var contained struct {
	mu      sync.Mutex
	servers map[weak.Pointer[mcp.Server]]bool
}

// contain makes a panic in a handler of a server fail only the request, if the request came over a session of the
// bridge. Otherwise the panic would end the process. Other sessions of the same server are not affected.
func contain(server *mcp.Server) {
	contained.mu.Lock()
	defer contained.mu.Unlock()
	p := weak.Make(server)
	if contained.servers[p] {
		return
	}
	if contained.servers == nil {
		contained.servers = map[weak.Pointer[mcp.Server]]bool{}
	}
	contained.servers[p] = true
	runtime.AddCleanup(server, forget, p)
	server.AddReceivingMiddleware(recovering)
}

// forget removes a server that was garbage-collected.
func forget(p weak.Pointer[mcp.Server]) {
	contained.mu.Lock()
	defer contained.mu.Unlock()
	delete(contained.servers, p)
}

// sessionKey is the key of the bridge's session in the contexts of a server's handlers.
type sessionKey struct{}

// recovering is middleware that turns a panic into an error.
func recovering(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		if session, ours := ctx.Value(sessionKey{}).(*transport.Session); ours {
			defer func() {
				if r := recover(); r != nil {
					p := guard.New(r)
					session.Panicked(p)
					result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: p.Brief()}
				}
			}()
		}
		return next(ctx, method, req)
	}
}
