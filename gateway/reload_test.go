package gateway

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// filtersOf returns a filter for each server.
func filtersOf(servers []mcpbridge.Server) (all []toolset.Filter) {
	for _, srv := range servers {
		all = append(all, toolset.Filter{Name: srv.Name})
	}
	return all
}

// reload replaces the servers.
func (w *world) reload(filters []toolset.Filter, servers ...mcpbridge.Server) {
	w.Helper()
	_, err := w.sup.Reload(w.Context(), Prepare(servers...))
	require.NoError(w, err)
	require.NoError(w, w.Reload(filters, nil))
}

// toldClient is a client that counts what it is told.
type toldClient struct {
	w *world
	*mcp.ClientSession
	tools, prompts atomic.Int32
}

// told connects a client.
func (w *world) told(connect func(*mcp.ClientOptions) *mcp.ClientSession) *toldClient {
	c := &toldClient{w: w}
	c.ClientSession = connect(&mcp.ClientOptions{
		ToolListChangedHandler:   func(context.Context, *mcp.ToolListChangedRequest) { c.tools.Add(1) },
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) { c.prompts.Add(1) },
	})
	return c
}

// listed returns the names of the tools.
func (c *toldClient) listed() (names []string) {
	c.w.Helper()
	list, err := c.ListTools(c.w.Context(), nil)
	require.NoError(c.w, err)
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// inReload runs a scenario with two servers, of which the client has the first.
func inReload(t *testing.T, scenario func(w *world, c *toldClient, one, two *faults.Server, first, second mcpbridge.Server)) {
	synctest.Test(t, func(t *testing.T) {
		one, two, end := twoServers()
		defer time.Sleep(3 * time.Second)
		defer end()
		first, second := remote("one", one), remote("two", two)
		w := worldOf(t, setup{Prefixed: true, Tools: filtersOf([]mcpbridge.Server{first})}.with(first))
		defer w.stop()
		c := w.told(w.connect)
		require.Subset(t, c.listed(), []string{"one__count"})
		w.call(c.ClientSession, "one__count", nil)
		scenario(w, c, one, two, first, second)
	})
}

func (s setup) with(servers ...mcpbridge.Server) setup {
	s.Supervisor.Servers = servers
	return s
}

func TestClientGetsAServerThatIsAdded(t *testing.T) {
	inReload(t, func(w *world, c *toldClient, one, two *faults.Server, first, second mcpbridge.Server) {
		both := []mcpbridge.Server{first, second}
		w.reload(filtersOf(both), both...)
		time.Sleep(time.Second)
		require.EqualValues(w, 1, c.tools.Load())
		require.Subset(w, c.listed(), []string{"one__count", "two__count"})
		text, isError := w.call(c.ClientSession, "two__count", nil)
		require.False(w, isError)
		require.Equal(w, "1", text)
		text, _ = w.call(c.ClientSession, "one__count", nil)
		require.Equal(w, "2", text)
		require.Equal(w, 1, one.Count("initialize"))
		require.Equal(w, 1, two.Count("initialize"))
		require.EqualValues(w, 1, c.tools.Load())
	})
}

func TestClientLosesAServerThatIsRemoved(t *testing.T) {
	inReload(t, func(w *world, c *toldClient, one, two *faults.Server, first, second mcpbridge.Server) {
		w.reload(filtersOf([]mcpbridge.Server{second}), second)
		time.Sleep(time.Second)
		require.Positive(w, c.tools.Load())
		names := c.listed()
		require.Contains(w, names, "two__count")
		require.NotContains(w, names, "one__count")
		_, err := c.CallTool(w.Context(), &mcp.CallToolParams{Name: "one__count"})
		require.ErrorContains(w, err, "one__count")
		require.Zero(w, one.Sessions())
	})
}

// A server that was changed is opened anew, and the client is told only of what it lists otherwise.
func TestServerThatIsChangedIsOpenedAnew(t *testing.T) {
	inReload(t, func(w *world, c *toldClient, one, two *faults.Server, first, second mcpbridge.Server) {
		both := []mcpbridge.Server{first, second}
		w.reload(filtersOf(both), both...)
		time.Sleep(time.Second)
		w.call(c.ClientSession, "two__count", nil)
		told := c.tools.Load()
		both[0].KeepAlive = time.Minute
		w.reload(filtersOf(both), both...)
		text, isError := w.call(c.ClientSession, "one__count", nil)
		require.False(w, isError)
		require.Equal(w, "1", text[:1])
		require.Equal(w, 2, one.Count("initialize"))
		require.Equal(w, 1, two.Count("initialize"))
		time.Sleep(time.Second)
		require.Equal(w, told, c.tools.Load(), "the lists are the same")
	})
}

func TestFilterThatIsChangedTouchesNoSession(t *testing.T) {
	inReload(t, func(w *world, c *toldClient, one, two *faults.Server, first, second mcpbridge.Server) {
		w.reload([]toolset.Filter{{Name: "one", Deny: []string{"echo"}}}, first)
		time.Sleep(time.Second)
		require.EqualValues(w, 1, c.tools.Load())
		names := c.listed()
		require.Contains(w, names, "one__count")
		require.NotContains(w, names, "one__echo")
		text, _ := w.call(c.ClientSession, "one__count", nil)
		require.Equal(w, "2", text)
		require.Equal(w, 1, one.Count("initialize"))
	})
}

func TestReloadOfAServerThatIsMissingChangesNothing(t *testing.T) {
	inReload(t, func(w *world, c *toldClient, one, two *faults.Server, first, second mcpbridge.Server) {
		err := w.Reload([]toolset.Filter{{Name: "two"}}, nil)
		require.ErrorContains(w, err, `servers[0]: server "two" is not configured`)
		require.Contains(w, c.listed(), "one__count")
		require.Zero(w, c.tools.Load())
	})
}

// A client of a toolset gets the prompts of a server that the toolset gets.
func TestClientOfAToolsetGetsPromptsOfAServerThatIsAdded(t *testing.T) {
	inReload(t, func(w *world, _ *toldClient, one, two *faults.Server, first, second mcpbridge.Server) {
		c := w.told(func(options *mcp.ClientOptions) *mcp.ClientSession {
			return w.dial(w.Tools(w.toolsOf("here", nil), Scope{Ends: true}), options)
		})
		defer c.Close()
		c.listed()
		prompts := func() (names []string) {
			list, err := c.ListPrompts(w.Context(), nil)
			require.NoError(w, err)
			for _, prompt := range list.Prompts {
				names = append(names, prompt.Name)
			}
			return names
		}
		require.NotEmpty(w, prompts())
		require.NotContains(w, prompts(), "two__greet")
		both := []mcpbridge.Server{first, second}
		w.reload(filtersOf(both), both...)
		time.Sleep(time.Second)
		require.EqualValues(w, 1, c.prompts.Load())
		require.Contains(w, prompts(), "two__greet")
	})
}

// While a server that was removed still answers its last call, clients come and have the others.
func TestClientComesWhileAServerThatIsRemovedDrains(t *testing.T) {
	inReload(t, func(w *world, c *toldClient, one, two *faults.Server, first, second mcpbridge.Server) {
		both := []mcpbridge.Server{first, second}
		w.reload(filtersOf(both), both...)
		require.NotNil(w, w.sup.Server("one"))
		_, err := w.sup.Reload(w.Context(), Prepare(second))
		require.NoError(w, err)
		another := w.told(w.connect)
		names := another.listed()
		require.Contains(w, names, "two__count")
		require.NotContains(w, names, "one__count")
		require.NoError(w, w.Reload(filtersOf(both[1:]), nil))
		require.Equal(w, names, another.listed())
	})
}

// A server that clients begin to share leaves no session of one of them, and one that they no longer share no shared session.
func TestServerThatIsSharedLeavesNoOtherSession(t *testing.T) {
	inReload(t, func(w *world, c *toldClient, one, two *faults.Server, first, second mcpbridge.Server) {
		for i := range 4 {
			filter := toolset.Filter{Name: "one"}
			if i%2 == 0 {
				filter.Scope = "shared"
			}
			w.reload([]toolset.Filter{filter}, first)
			_, isError := w.call(c.ClientSession, "one__count", nil)
			require.False(w, isError)
			time.Sleep(5 * time.Second)
			require.Equal(w, 1, one.Sessions())
		}
		require.ErrorContains(w, w.Reload([]toolset.Filter{{Name: "one", Scope: "?scope=team"}}, nil), "servers[0]: scope")
	})
}
