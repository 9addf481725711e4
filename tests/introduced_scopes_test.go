package tests

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/introduction"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// newListener returns a server whose tool "told" returns what its client has said of itself.
func newListener() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "listener", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "told"}, func(_ context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		said := req.Session.InitializeParams()
		text, err := json.Marshal([]any{said.ProtocolVersion, said.ClientInfo.Name, said.Capabilities.Experimental})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, err
	})
	return s
}

// heeding returns a server whose PerKey tells it what the client of the scope says of itself.
func heeding(base mcpbridge.Server) mcpbridge.Server {
	srv := base
	srv.PerKey = func(ctx context.Context, _ messages.Key) (mcpbridge.Server, error) {
		one := base
		if in := introduction.Of(ctx); in != nil {
			one.ProtocolVersion, one.ClientInfo, one.Initialize = in.ProtocolVersion, in.ClientInfo, in.Initialize
		}
		return one, nil
	}
	return srv
}

// introduced returns what a client with a name says of itself.
func introduced(version, name string) *messages.Introduction {
	return &messages.Introduction{
		ProtocolVersion: version, ClientInfo: &mcp.Implementation{Name: name, Version: "1"},
		Initialize: map[string]json.RawMessage{"capabilities": json.RawMessage(`{"experimental": {"acme": {"of": "` + name + `"}}}`)},
	}
}

// startListener starts a supervisor of a listener that heeds introductions.
func startListener(t *testing.T) (h *harness, owner *actor.PID) {
	base := mcpbridge.Server{Name: "s", InMemory: newListener(), ProtocolVersion: "2025-11-25", ClientInfo: &mcp.Implementation{Name: "base"}}
	h = start(t, supervisor.Config{Servers: []mcpbridge.Server{heeding(base)}})
	return h, spawn(h, func(actor.Context) {})
}

// Servers are told what the client of the scope says of itself, on the first MCP session and on those after it.
func TestServerThatHeedsItIsToldWhatTheClientOfAScopeSaysOfItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		h, owner := startListener(t)
		for scope, in := range map[string]*messages.Introduction{
			"old": introduced("2025-06-18", "ann"), "older": introduced("2025-03-26", "bob"), "none": nil,
		} {
			require.IsType(t, &messages.Bound{}, h.send(&messages.Bind{Scope: scope, Owner: owner, Introduction: in}).reply())
		}
		for range 2 {
			for scope, told := range map[string]string{
				"old":   `["2025-06-18","ann",{"acme":{"of":"ann"}}]`,
				"older": `["2025-03-26","bob",{"acme":{"of":"bob"}}]`,
				"none":  `["2025-11-25","base",null]`, "unbound": `["2025-11-25","base",null]`,
			} {
				require.Equal(t, told, h.send(call(scope, "told")).text(), scope)
				h.send(&messages.Restart{Key: messages.Key{Server: "s", Scope: scope}}).reply()
			}
		}
		h.stopAndVerify()
	})
}

// What the client says from now on is told to the next MCP session. The one that is open keeps its state.
func TestIntroductionOfAnOpenSessionStaysAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		h, owner := startListener(t)
		before := h.send(call("a", "told")).text()
		h.send(&messages.Bind{Scope: "a", Owner: owner, Introduction: introduced("2025-06-18", "ann")}).reply()
		require.Equal(t, before, h.send(call("a", "told")).text())
		h.send(&messages.Restart{Key: messages.Key{Server: "s", Scope: "a"}}).reply()
		require.Equal(t, `["2025-06-18","ann",{"acme":{"of":"ann"}}]`, h.send(call("a", "told")).text())
		h.send(&messages.Bind{Scope: "a"}).reply()
		h.send(&messages.Restart{Key: messages.Key{Server: "s", Scope: "a"}}).reply()
		require.Equal(t, before, h.send(call("a", "told")).text())
		h.stopAndVerify()
	})
}

func TestIntroductionOfNobodyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		h, owner := startListener(t)
		in := introduced("2025-06-18", "ann")
		f := h.send(&messages.Bind{Scope: "a", Introduction: in}).fails(messages.CodeInvalid)
		require.Equal(t, "introduction: the binding belongs to nobody: set Owner, Handler or Subscriber", f.Detail)
		require.Equal(t, `["2025-11-25","base",null]`, h.send(call("a", "told")).text())
		for _, bind := range []*messages.Bind{{Owner: owner}, {Subscriber: owner}} {
			bind.Scope, bind.Introduction = "a", in
			require.IsType(t, &messages.Bound{}, h.send(bind).reply())
		}
		h.stopAndVerify()
	})
}
