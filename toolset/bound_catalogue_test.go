package toolset_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// newPicky makes a server list the tool "ask" to clients that declare elicitation only, as servers do.
func newPicky(srv *mcpbridge.Server) {
	s := newServer("s0", "a")
	s.add("ask")
	s.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			list, is := result.(*mcp.ListToolsResult)
			if is && req.(*mcp.ListToolsRequest).Session.InitializeParams().Capabilities.Elicitation == nil {
				list.Tools = list.Tools[:1]
			}
			return result, err
		}
	})
	srv.InMemory = s.mcp
}

// ofOneClass is newPicky with one class for all scopes.
func ofOneClass(srv *mcpbridge.Server) {
	newPicky(srv)
	srv.ListClass = func(messages.Key) string { return "all" }
}

// bind has a scope declare elicitation, or nothing.
func (c *crowd) bind(bind messages.Bind, elicitation bool) {
	bind.Capabilities = &mcp.ClientCapabilities{}
	if elicitation {
		bind.Capabilities.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}
	}
	if bind.Owner == nil {
		bind.Owner = c.sup.System().Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	}
	_, err := c.sup.Client().Do(c.Context(), &bind)
	require.NoError(c, err)
}

func TestScopesThatDeclareTheSameShareAList(t *testing.T) {
	for _, change := range []func(*mcpbridge.Server){newPicky, ofOneClass} {
		gather(t, 1, supervisor.Config{}, change, func(_ context.Context, c *crowd) {
			for _, scope := range []string{"a", "b", "c"} {
				c.bind(messages.Bind{Scope: scope}, true)
			}
			c.bind(messages.Bind{Scope: "d"}, false) // as the configuration
			for range 2 {
				for _, scope := range []string{"a", "b", "c"} {
					require.Equal(c, "s0__a s0__ask", c.tools(scope), scope)
				}
				for _, scope := range []string{"d", "e", "f"} {
					require.Equal(c, "s0__a", c.tools(scope), scope)
				}
			}
			c.require(2, 0)
		})
	}
}

func TestScopeWithASubscriberOrAHandlerSharesByListClassOnly(t *testing.T) {
	for sessions, change := range map[int]func(*mcpbridge.Server){4: newPicky, 1: ofOneClass} {
		gather(t, 1, supervisor.Config{}, change, func(_ context.Context, c *crowd) {
			c.bind(messages.Bind{Scope: "a", Subscriber: c.sup.PID()}, true)
			c.bind(messages.Bind{Scope: "b", Subscriber: c.sup.PID()}, true)
			c.bind(messages.Bind{Scope: "c", Handler: c.sup.PID()}, true)
			c.bind(messages.Bind{Scope: "d"}, true)
			for _, scope := range []string{"a", "b", "c", "d"} {
				require.Equal(c, "s0__a s0__ask", c.tools(scope), scope)
			}
			c.require(sessions, 0)
		})
	}
}

// A session that is open was told what its scope has declared before. What it lists is for no other.
func TestListOfASessionThatDeclaredSomethingElseIsNotShared(t *testing.T) {
	gather(t, 1, supervisor.Config{}, ofOneClass, func(ctx context.Context, c *crowd) {
		require.Equal(c, "s0__a", c.tools("a"))
		_, err := c.of("a").Call(ctx, "s0__a", nil)
		require.NoError(c, err)
		c.bind(messages.Bind{Scope: "a"}, true)
		require.Equal(c, "s0__a", c.tools("a"))
		c.bind(messages.Bind{Scope: "b"}, true)
		require.Equal(c, "s0__a s0__ask", c.tools("b"))
		require.Equal(c, "s0__a", c.tools("c"), "the list that a has fetched before")
		_, err = c.sup.Client().Do(ctx, &messages.Restart{Key: messages.Key{Server: "s0", Scope: "a"}})
		require.NoError(c, err)
		synctest.Wait() // until the events of the session have arrived
		require.Equal(c, "s0__a s0__ask", c.tools("a"))
	})
}

// A handler may have answered the questions of the server: what its session lists is for no other also after the
// handler has gone, and so is what is being listed as the handler comes.
func TestSessionThatHadAHandlerListsForNoOther(t *testing.T) {
	can := supervisor.Config{Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}}
	gather(t, 1, can, nil, func(ctx context.Context, c *crowd) {
		_, err := c.sup.Client().Do(ctx, &messages.Bind{Scope: "a", Handler: c.sup.PID()})
		require.NoError(c, err)
		require.Equal(c, "s0__a", c.tools("a"))
		_, err = c.sup.Client().Do(ctx, &messages.Bind{Scope: "a"})
		require.NoError(c, err)
		c.of("a").Close()
		delete(c.sets, "a")
		require.Equal(c, "s0__a", c.tools("a"), "it lists again")
		require.Equal(c, "s0__a", c.tools("b"), "on a session of its own")
		c.require(2, 3)
		require.Equal(c, "s0__a", c.tools("c"))
		c.require(2, 3)
	})
	gather(t, 1, can, nil, func(ctx context.Context, c *crowd) {
		c.servers[0].set(nil, time.Second)
		c.of("a")
		c.of("b")
		answers := make(chan string, 2)
		for _, scope := range []string{"a", "b"} {
			go func() { answers <- c.tools(scope) }()
			synctest.Wait()
		}
		_, err := c.sup.Client().Do(ctx, &messages.Bind{Scope: "a", Handler: c.sup.PID()})
		require.NoError(c, err)
		c.servers[0].add("z")
		require.Equal(c, "s0__a s0__z", <-answers)
		require.Equal(c, "s0__a s0__z", <-answers)
		sessions, _ := c.counts()
		require.Equal(c, 2, sessions, "b does not get what was listed for a")
	})
}
