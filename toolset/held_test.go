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
	"github.com/mcpactor/mcpactor/toolset"
)

// holding is a supervisor that says itself what is held, by scope and holder.
type holding struct {
	*supervisor.Supervisor
	held map[[2]string][]messages.HeldHandle
	fail messages.Code
}

// Client returns a client of an actor that answers in place of the supervisor.
func (h *holding) Client() *supervisor.Client {
	return supervisor.NewClient(h.System(), h.System().Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch msg := c.Message().(type) {
		case actor.SystemMessage, actor.AutoReceiveMessage:
		case *messages.ListHandles:
			if h.fail != "" {
				c.Respond(messages.NewFailure(msg, h.fail, ""))
				return
			}
			c.Respond(&messages.HandleList{ID: msg.ID, Handles: h.held[[2]string{msg.Scope, msg.Holder}]})
		default:
			c.Forward(h.PID())
		}
	})))
}

func TestHeldHandlesAreThoseOfTheConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // until Proto.Actor's throttle of dead letters ends
		ctx := t.Context()
		sup, err := supervisor.Start(newSystem(), supervisor.Config{Servers: []supervisor.Server{
			{Name: "one", InMemory: newServer("one", "open", "close").mcp}, {Name: "two", InMemory: newServer("two", "open", "close").mcp},
		}})
		require.NoError(t, err)
		defer sup.Stop(context.WithoutCancel(ctx))
		of := func(server, scope, handle string, age time.Duration) messages.HeldHandle {
			return messages.HeldHandle{
				Key: messages.Key{Server: server, Scope: scope}, Mint: "open", Release: "close", Argument: "id", Handle: handle, Minted: time.Now().Add(-age),
			}
		}
		h := &holding{Supervisor: sup, held: map[[2]string][]messages.HeldHandle{
			{"a", ""}:         {of("one", "a", "h1", time.Hour), of("two", "a", "h2", 0), of("three", "a", "h3", 0)},
			{"a", "bob"}:      {of("one", "b", "h1", time.Minute)}, // which another scope has minted
			{"shared", "bob"}: {of("two", "shared", "h4", time.Hour)},
			{"shared", ""}:    {of("two", "shared", "h4", 0), of("two", "shared", "h5", 0)},
		}}
		tools, err := toolset.New(nil, h, toolset.Config{Scope: "a", Servers: []toolset.Filter{{Name: "one"}, {Name: "two", Scope: "shared"}}})
		require.NoError(t, err)

		note, err := tools.Held(ctx)
		require.NoError(t, err)
		require.Equal(t, "You hold 1 handle. Release it when you are done with it.\n"+
			`- id h1 of server "one", minted by one__open 1 hour ago: release it with one__close`, note, "others share the other scope, and the toolset lacks the other servers")

		bob := messages.WithAttributes(ctx, messages.NewAttributes(map[string]string{messages.HolderAttribute: "bob"}))
		note, err = tools.Held(bob)
		require.NoError(t, err)
		require.Equal(t, "You hold 2 handles. Release each when you are done with it.\n"+
			`- id h4 of server "two", minted by two__open 1 hour ago: release it with two__close`+"\n"+
			`- id h1 of server "one", minted by one__open 1 minute ago: release it with one__close`, note, "the oldest is the first one")

		h.held = nil
		note, err = tools.Held(ctx)
		require.NoError(t, err)
		require.Empty(t, note)

		h.fail = messages.CodeUnavailable
		_, err = tools.Held(ctx)
		require.ErrorIs(t, err, messages.CodeUnavailable)
		tools.Close()
		_, err = tools.Held(ctx)
		require.ErrorIs(t, err, messages.CodeClosed)
	})
}

func TestModelIsToldThatNoHandleWasFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // until Proto.Actor's throttle of dead letters ends
		server := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "open"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "b-17"}}}, nil, nil
		})
		sup, err := supervisor.Start(newSystem(), supervisor.Config{Servers: []supervisor.Server{{
			Name: "web", InMemory: server, Handles: []mcpbridge.Handle{{Mint: "open", Pattern: "(.*)", Release: "close", Argument: "id", Max: 1}},
		}}})
		require.NoError(t, err)
		defer sup.Stop(context.Background())
		told := func(scope string) string {
			tools, err := toolset.New(nil, sup, toolset.Config{Scope: scope, Servers: []toolset.Filter{{Name: "web"}}})
			require.NoError(t, err)
			defer tools.Close()
			result, err := tools.Call(t.Context(), "web__open", nil)
			return tools.Outcome(result, err).Text()
		}
		require.Equal(t, "b-17", told("a"))
		require.Equal(t, "[tool error]\n"+`Server "web" is busy with other calls: no handle of open was released in time. The tool did not run. Try again later.`, told("b"))
	})
}
