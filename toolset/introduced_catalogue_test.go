package toolset_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/introduction"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// choosy makes a server list the tool "ask" to the client "asker" only. Its PerKey tells it the name of each client.
func choosy(srv *mcpbridge.Server) {
	s := newServer("s0", "a")
	s.add("ask")
	s.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			list, is := result.(*mcp.ListToolsResult)
			if is && req.(*mcp.ListToolsRequest).Session.InitializeParams().ClientInfo.Name != "asker" {
				list.Tools = list.Tools[:1]
			}
			return result, err
		}
	})
	srv.InMemory = s.mcp
	base := *srv
	srv.PerKey = func(ctx context.Context, _ messages.Key) (mcpbridge.Server, error) {
		one := base
		if in := introduction.Of(ctx); in != nil {
			one.ClientInfo = in.ClientInfo
		}
		return one, nil
	}
}

// choosyOfOneClass is choosy with one class for all scopes.
func choosyOfOneClass(srv *mcpbridge.Server) {
	choosy(srv)
	srv.ListClass = func(messages.Key) string { return "all" }
}

// clientNamed is a client with a name, and each time another value that says the same.
func clientNamed(name string) *messages.Introduction {
	return &messages.Introduction{ClientInfo: &mcp.Implementation{Name: name, Version: "1"}}
}

// bindAs has the client of a scope say its name.
func (c *crowd) bindAs(scope, name string) {
	c.bind(messages.Bind{Scope: scope, Introduction: clientNamed(name)}, false)
}

func TestScopesWhoseClientsSayTheSameShareAList(t *testing.T) {
	for _, change := range []func(*mcpbridge.Server){choosy, choosyOfOneClass} {
		gather(t, 1, supervisor.Config{}, change, func(_ context.Context, c *crowd) {
			for scope, name := range map[string]string{"a": "asker", "b": "asker", "c": "asker", "d": "other", "e": "other"} {
				c.bindAs(scope, name)
			}
			for range 2 {
				for _, scope := range []string{"a", "b", "c"} {
					require.Equal(c, "s0__a s0__ask", c.tools(scope), scope)
				}
				for _, scope := range []string{"d", "e", "f", "g"} { // f and g are not bound
					require.Equal(c, "s0__a", c.tools(scope), scope)
				}
			}
			c.require(3, 0)
		})
	}
}

// A server without PerKey and ListClass is told nothing of the clients: all scopes see the same.
func TestScopesShareTheListsOfAServerThatIsToldNothing(t *testing.T) {
	gather(t, 1, supervisor.Config{}, nil, func(_ context.Context, c *crowd) {
		c.bindAs("a", "asker")
		c.bindAs("b", "other")
		for _, scope := range []string{"a", "b", "c"} {
			require.Equal(c, "s0__a", c.tools(scope), scope)
		}
		c.require(1, 1)
	})
}

// A session that is open was told what the client of its scope has said before. What it lists is for no other.
func TestListOfASessionWhoseClientSaidSomethingElseIsNotShared(t *testing.T) {
	for _, change := range []func(*mcpbridge.Server){choosy, choosyOfOneClass} {
		gather(t, 1, supervisor.Config{}, change, func(ctx context.Context, c *crowd) {
			require.Equal(c, "s0__a", c.tools("a"))
			_, err := c.of("a").Call(ctx, "s0__a", nil)
			require.NoError(c, err)
			c.bindAs("a", "asker")
			require.Equal(c, "s0__a", c.tools("a"))
			c.bindAs("b", "asker")
			require.Equal(c, "s0__a s0__ask", c.tools("b"))
			require.Equal(c, "s0__a", c.tools("c"), "the list that a has fetched before")
			_, err = c.sup.Client().Do(ctx, &messages.Restart{Key: messages.Key{Server: "s0", Scope: "a"}})
			require.NoError(c, err)
			synctest.Wait() // until the events of the session have arrived
			require.Equal(c, "s0__a s0__ask", c.tools("a"))
		})
	}
}
