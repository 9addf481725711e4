package toolset_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// user is the key of a value of a caller's context.
type user struct{}

func TestListHasTheAttributesOfItsFirstCallerAndACallThoseOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system, seen := newSystem(), map[string][]any{}
		sup, err := supervisor.Start(system, supervisor.Config{
			Servers: []mcpbridge.Server{{Name: "one", InMemory: newServer("one", "a").mcp}},
			Interceptors: []actors.Interceptor{func(next actors.Runner) actors.Runner {
				return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
					run, _ := messages.AttributesOf(ctx).Get("run")
					seen[op.Method()] = append(seen[op.Method()], run, messages.TraceOf(ctx).Parent, ctx.Value(user{}))
					return next(ctx, op)
				}
			}},
		})
		require.NoError(t, err)
		defer func() {
			require.NoError(t, sup.Stop(context.Background()))
			time.Sleep(3 * time.Second) // until Proto.Actor's throttle of dead letters ends
		}()
		tools, err := toolset.New(system, sup, toolset.Config{Servers: []toolset.Filter{{Name: "one"}}})
		require.NoError(t, err)
		defer tools.Close()

		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		ctx := messages.WithAttributes(t.Context(), messages.NewAttributes(map[string]string{"run": "7"}))
		ctx = messages.WithTrace(context.WithValue(ctx, user{}, "ann"), messages.Trace{Parent: parent})
		_, err = tools.Tools(ctx)
		require.NoError(t, err)
		_, err = tools.Call(ctx, "one__a", nil)
		require.NoError(t, err)
		require.Equal(t, map[string][]any{"tools/list": {"7", parent, nil}, "tools/call": {"7", parent, "ann"}}, seen)

		call, err := tools.Approve(ctx, "one__a", nil)
		require.NoError(t, err)
		require.Equal(t, messages.NewAttributes(map[string]string{"run": "7"}), call.Attributes)
		require.Equal(t, messages.Trace{Parent: parent}, call.Trace)
		call.ID = "use-1"
		reply, err := sup.Client().Do(t.Context(), call)
		require.NoError(t, err)
		require.Equal(t, "use-1", reply.RequestID())
	})
}
