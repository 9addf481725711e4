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

// contained are the servers whose panics are contained: each gets the middleware once.
var contained struct {
	mu      sync.Mutex
	servers map[weak.Pointer[mcp.Server]]bool
}

// contain makes a panic in a handler of a server fail the request, if the request came over one of our
// sessions. Without this the panic would end the process. Sessions of others, to which the
// same server may be connected, are as they were.
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

// forget forgets a server that is gone.
func forget(p weak.Pointer[mcp.Server]) {
	contained.mu.Lock()
	defer contained.mu.Unlock()
	delete(contained.servers, p)
}

// sessionKey is the key of our session in the contexts of a server's handlers.
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
