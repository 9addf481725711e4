package cluster_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// counting is a server that counts how often its tools are listed.
type counting struct {
	*mcp.Server
	lists atomic.Int32
	delay atomic.Int64 // of a list
}

func newCounting() *counting {
	s := &counting{Server: mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, &mcp.ServerOptions{Instructions: "Be kind."})}
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				s.lists.Add(1)
				time.Sleep(time.Duration(s.delay.Load()))
			}
			return next(ctx, method, req)
		}
	})
	addTool(s.Server, "one")
	return s
}

// startThree starts members without a store.
func startThree(t *testing.T, s *counting, change func(*supervisor.Server)) []*cluster.Member {
	hub, members := cluster.NewInProcess(), make([]*cluster.Member, 3)
	var wait sync.WaitGroup
	for i, name := range []string{"a", "b", "c"} {
		cfg := inProcess(hub, name)
		one := supervisor.Server{Name: "s", InMemory: s.Server}
		if change != nil {
			change(&one)
		}
		cfg.Supervisor.Servers = []supervisor.Server{one}
		wait.Go(func() { members[i] = startMember(t, cfg) })
	}
	wait.Wait()
	for _, m := range members {
		knows(t, m, 3)
	}
	return members
}

// list lists the tools of a scope on a member.
func list(t *testing.T, m *cluster.Member, scope string) *messages.ToolList {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tools, err := m.Client().ListTools(ctx, "s", scope)
	require.NoError(t, err)
	require.Len(t, tools.Result.Tools, 1)
	return tools
}

func TestMembersAskEachOtherBeforeTheyAskTheServer(t *testing.T) {
	s := newCounting()
	members := startThree(t, s, nil)
	s.delay.Store(int64(50 * time.Millisecond))
	var wait sync.WaitGroup
	for i := range 100 {
		for _, m := range members {
			set, err := toolset.New(m.System(), m, toolset.Config{Scope: fmt.Sprint(i), Servers: []toolset.Filter{{Name: "s"}}})
			require.NoError(t, err)
			defer set.Close()
			wait.Go(func() {
				set, err := set.Tools(t.Context())
				require.NoError(t, err)
				require.Empty(t, set.Missing)
				require.Len(t, set.Tools, 1)
				require.False(t, set.Tools[0].Stale)
			})
		}
	}
	wait.Wait()
	require.EqualValues(t, 1, s.lists.Load())
	snapshot, err := members[0].Client().Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, snapshot.Total, "sessions")
	for i := range 30 {
		from := list(t, members[i%3], fmt.Sprint(i)).Listing
		require.Equal(t, "Be kind.", from.Server.Instructions)
	}
	require.EqualValues(t, 1, s.lists.Load())
}

// Scopes of different classes are listed once for each class, and get no list of another.
func TestMembersShareListsWithinAClassOnly(t *testing.T) {
	s := newCounting()
	members := startThree(t, s, func(srv *supervisor.Server) {
		srv.ListClass = func(key messages.Key) string { return key.Scope[:1] }
	})
	for i := range 60 {
		scope := fmt.Sprint(i%2, "-", i)
		list(t, members[i%3], scope)
	}
	require.EqualValues(t, 2, s.lists.Load())
}

// A member that cannot ask another one asks the server.
func TestMemberThatReachesNoOtherListsItself(t *testing.T) {
	s := newCounting()
	members := startThree(t, s, nil)
	s.delay.Store(int64(200 * time.Millisecond))
	var wait sync.WaitGroup
	for i := range 30 {
		wait.Go(func() { list(t, members[i%2], fmt.Sprint(i)) })
	}
	require.NoError(t, members[2].Stop(t.Context()))
	wait.Wait()
	require.LessOrEqual(t, s.lists.Load(), int32(3), "one of each member at most")
	for i := range 30 {
		list(t, members[i%2], fmt.Sprint("later", i))
	}
	require.LessOrEqual(t, s.lists.Load(), int32(3))
}
