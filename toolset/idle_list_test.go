package toolset_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Listing opens no session, and so evicts none, while an idle session of the class is open: here at the cap, for lists
// that nobody has asked for before.
func TestListingEvictsNothingWhileASessionOfTheClassIsIdle(t *testing.T) {
	gather(t, 3, supervisor.Config{MaxSessions: 3}, nil, func(ctx context.Context, c *crowd) {
		var opened []uint64
		for i := range 3 {
			result, err := c.sup.Client().CallTool(ctx, fmt.Sprint("s", i), fmt.Sprint("caller-", i), &mcp.CallToolParams{Name: "a"})
			require.NoError(c, err)
			opened = append(opened, result.Generation)
		}
		for i := range 20 {
			require.Equal(c, "s0__a s1__a s2__a", c.tools(fmt.Sprint(i)))
		}
		c.require(3, 3)
		for i := range 3 {
			result, err := c.sup.Client().CallTool(ctx, fmt.Sprint("s", i), fmt.Sprint("caller-", i), &mcp.CallToolParams{Name: "a"})
			require.NoError(c, err)
			require.Equal(c, opened[i], result.Generation)
		}
		snapshot, err := c.sup.Client().Inspect(ctx)
		require.NoError(c, err)
		require.Zero(c, snapshot.Counters.Evicted)
	})
}

// slow is a server with a tool that takes a minute.
func slow(srv *mcpbridge.Server) {
	s := newServer("s0", "a")
	mcp.AddTool(s.mcp, &mcp.Tool{Name: "slow"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
		}
		return nil, nil, ctx.Err()
	})
	srv.InMemory = s.mcp
}

// A session whose scope gets a handler lists for no other. One that runs a call is not waited for.
func TestSessionThatIsBusyOrOnItsOwnListsForNoOther(t *testing.T) {
	can := &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}
	for name, test := range map[string]func(ctx context.Context, c *crowd){
		"a handler": func(ctx context.Context, c *crowd) {
			_, err := c.sup.Client().Do(ctx, &messages.Bind{Scope: "caller", Handler: c.sup.PID()})
			require.NoError(c, err)
		},
		"a call that runs": func(ctx context.Context, c *crowd) {
			go func() { _, _ = c.sup.Client().CallTool(ctx, "s0", "caller", &mcp.CallToolParams{Name: "slow"}) }()
			synctest.Wait()
		},
	} {
		gather(t, 1, supervisor.Config{Capabilities: can}, slow, func(ctx context.Context, c *crowd) {
			_, err := c.sup.Client().Open(ctx, "s0", "caller")
			require.NoError(c, err)
			test(ctx, c)
			began := time.Now()
			require.Equal(c, "s0__a s0__slow", c.tools("other"), name)
			require.Zero(c, time.Since(began), name)
			c.require(2, 0)
		})
	}
}

// The first listing of a class takes a slot as a call does: if it waited for a free one, a scope had no tools of
// the third server until somebody's session were idle for half an hour.
func TestMoreServersThanSessionsMayBeOpenAreListed(t *testing.T) {
	gather(t, 3, supervisor.Config{MaxSessions: 2}, nil, func(_ context.Context, c *crowd) {
		began := time.Now()
		for _, scope := range []string{"a", "b", "c"} {
			require.Equal(c, "s0__a s1__a s2__a", c.tools(scope))
		}
		require.Zero(c, time.Since(began))
		c.require(2, 3)
	})
}
