package toolset_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// Who watches a toolset is told after each change of its tools, whatever the order of handlers, until the toolset is closed.
func TestToolsetSaysThatItsToolsMayHaveChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // until Proto.Actor's throttle of dead letters ends
		server := faults.NewTools().Server()
		sup, err := supervisor.Start(nil, supervisor.Config{Logger: zerolog.Nop(), Servers: []mcpbridge.Server{{Name: "one", InMemory: server}, {Name: "other", InMemory: faults.NewTools().Server()}}})
		require.NoError(t, err)
		defer func() { require.NoError(t, sup.Stop(context.Background())) }()
		require.Equal(t, "one", sup.Server("one").Name)
		require.Nil(t, sup.Server("neither"))
		require.Nil(t, new(supervisor.Supervisor).Server("one"))
		tools, err := toolset.New(nil, sup, toolset.Config{Scope: "c1", Servers: []toolset.Filter{{Name: "one"}, {Name: "o*", Scope: "user"}}})
		require.NoError(t, err)
		defer tools.Close()
		require.Equal(t, "c1", tools.Scope())
		filters := tools.Filters()
		require.Len(t, filters, 2)
		require.Equal(t, toolset.Filter{Name: "one", Scope: "c1"}, filters[0])
		require.Equal(t, toolset.Filter{Name: "other", Scope: "user"}, filters[1])

		has := func(name string) bool {
			set, err := tools.Tools(t.Context())
			require.NoError(t, err)
			return set.Tool(name) != nil
		}
		changes := make(chan struct{}, 100)
		cancel := tools.OnChange(func() { changes <- struct{}{} })
		second := make(chan struct{}, 100)
		tools.OnChange(func() { second <- struct{}{} })
		require.False(t, has("one__more"))
		_, err = sup.Client().Ping(t.Context(), "one", "c1") // it says on its session that it has changed
		require.NoError(t, err)
		synctest.Wait()
		for len(changes) > 0 {
			<-changes
		}
		mcp.AddTool(server, &mcp.Tool{Name: "more"}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
			return nil, nil, nil
		})
		<-changes
		require.True(t, has("one__more"), "the first call after the change has it")
		synctest.Wait()
		cancel()
		cancel()
		for len(changes) > 0 {
			<-changes
		}
		require.NotEmpty(t, second)
		server.RemoveTools("more")
		synctest.Wait()
		require.Empty(t, changes)
		tools.Close()
		tools.OnChange(func() { t.Error("the toolset is closed") })
		_, err = sup.Client().Do(t.Context(), &messages.CloseAll{})
		require.NoError(t, err)
	})
}
