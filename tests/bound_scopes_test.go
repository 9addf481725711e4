package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// newCurious returns a server whose tool "told" returns the capabilities that its client has declared.
func newCurious() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "curious", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "told"}, func(_ context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		can := req.Session.InitializeParams().Capabilities
		text, err := json.Marshal(map[string]any{"elicitation": can.Elicitation, "sampling": can.Sampling, "roots": can.RootsV2})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, err
	})
	return s
}

// Servers are told what the scope declares, on the first MCP session and on those after it, and with methods beyond MCP
// as well.
func TestScopeDeclaresItsOwnCapabilities(t *testing.T) {
	for _, protocol := range protocols {
		for _, custom := range [][]string{nil, {"x/method"}} {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
				h := start(t, supervisor.Config{
					Capabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}},
					Servers:      []mcpbridge.Server{{Name: "s", InMemory: newCurious(), ProtocolVersion: protocol, CustomMethods: custom}},
				})
				somebody := spawn(h, func(actor.Context) {})
				for scope, can := range map[string]*mcp.ClientCapabilities{
					"asks":  {Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}},
					"roots": {RootsV2: &mcp.RootCapabilities{ListChanged: true}}, "nothing": {},
				} {
					require.IsType(t, &messages.Bound{}, h.send(&messages.Bind{Scope: scope, Owner: somebody, Capabilities: can}).reply())
				}
				for scope, told := range map[string]string{
					"asks":    `{"elicitation":{"form":{}},"roots":null,"sampling":null}`,
					"roots":   `{"elicitation":null,"roots":{"listChanged":true},"sampling":null}`,
					"nothing": `{"elicitation":null,"roots":null,"sampling":null}`,
					"unbound": `{"elicitation":null,"roots":null,"sampling":{}}`,
				} {
					for range 2 {
						require.Equal(t, told, h.send(call(scope, "told")).text(), "%s %s", protocol, scope)
						h.send(&messages.Restart{Key: messages.Key{Server: "s", Scope: scope}}).reply()
					}
				}
				h.stopAndVerify()
			})
		}
	}
}

// What a scope declares from now on is told to the next MCP session. The one that is open keeps its state.
func TestCapabilitiesOfAnOpenSessionStayAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		h := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", InMemory: newCurious()}}})
		before := h.send(call("a", "told")).text()
		somebody := spawn(h, func(actor.Context) {})
		h.send(&messages.Bind{Scope: "a", Owner: somebody, Handler: somebody, Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}}).reply()
		require.Equal(t, before, h.send(call("a", "told")).text())
		h.send(&messages.Restart{Key: messages.Key{Server: "s", Scope: "a"}}).reply()
		require.NotEqual(t, before, h.send(call("a", "told")).text())
		h.send(&messages.Bind{Scope: "a"}).reply()
		h.send(&messages.Restart{Key: messages.Key{Server: "s", Scope: "a"}}).reply()
		require.Equal(t, before, h.send(call("a", "told")).text())
		h.stopAndVerify()
	})
}

func TestHandlerOfAScopeAnswersWhatOnlyTheScopeDeclares(t *testing.T) {
	overEachProtocol(t, defaultConfig, func(h *harness) {
		user := spawn(h, func(c actor.Context) {
			c.Respond(&messages.Elicited{Result: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}})
		})
		h.send(&messages.Bind{Scope: "a", Handler: user}).fails(messages.CodeInvalid) // nothing is declared
		form := &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}}
		h.send(&messages.Bind{Scope: "a", Capabilities: form}).fails(messages.CodeInvalid) // it belongs to nobody
		h.send(&messages.Bind{Scope: "a", Handler: user, Capabilities: form}).reply()
		require.Equal(h.t, "accept Ada", h.send(call("a", "elicit")).text())
		require.NotContains(h.t, fmt.Sprint(h.send(call("b", "elicit")).reply()), "Ada")
	})
}

func TestSubscriberOfAScopeGetsTheNotificationsOfItsServers(t *testing.T) {
	overEachProtocol(t, defaultConfig, func(h *harness) {
		got := make(chan messages.Notification, 100)
		subscriber := spawn(h, func(c actor.Context) { got <- c.Message().(messages.Notification) })
		owner := spawn(h, func(actor.Context) {})
		h.send(&messages.Bind{Scope: "a", Owner: owner, Subscriber: subscriber}).reply()
		for _, scope := range []string{"a", "b"} {
			h.send(&messages.Open{Header: messages.To("s", scope)}).reply()
		}
		h.send(call("b", "change")).text()
		time.Sleep(time.Second)
		kinds := map[string]bool{}
		for len(got) > 0 {
			n := <-got
			require.Equal(h.t, "s/a", n.GetStamp().Key.String())
			kinds[fmt.Sprintf("%T", n)] = true
		}
		require.Equal(h.t, map[string]bool{"*messages.ToolsChanged": true, "*messages.PromptsChanged": true, "*messages.ResourcesChanged": true}, kinds)

		h.send(&messages.Bind{Scope: "a", Owner: owner}).reply()
		h.send(call("b", "touch")).text()
		h.send(call("b", "change")).text()
		time.Sleep(time.Second)
		require.Empty(h.t, got)
	})
}

// A session that is resumed by another process was told what its scope has declared to the first one, and what its client
// has said of itself. It lists for no scope that declares something else.
func TestResumedSessionHasDeclaredWhatItsScopeDeclaredFirst(t *testing.T) {
	for _, bind := range []messages.Bind{
		{Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}},
		{Introduction: introduced("2025-06-18", "ann")},
	} {
		synctest.Test(t, func(t *testing.T) {
			defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
			server := faults.Local(faults.NewTools().Handler)
			defer server.Close()
			cfg := supervisor.Config{Store: &resume.Memory{}, LeaveOpen: true, Servers: []mcpbridge.Server{{
				Name: "s", URL: server.URL() + "/mcp", HTTPClient: &http.Client{Transport: server}, ListClass: func(messages.Key) string { return "all" },
			}}}
			h := start(t, cfg)
			bind.Scope, bind.Owner = "a", spawn(h, func(actor.Context) {})
			h.send(&bind).reply()
			h.send(call("a", "count")).ok()
			h.stopAndVerify()

			cfg.LeaveOpen = false
			h = start(t, cfg)
			shared := func(scope string) bool {
				return h.send(&messages.ListTools{Header: messages.To("s", scope), Shared: true}).reply().(*messages.ToolList).Listing.Shared
			}
			h.send(call("a", "count")).ok()
			require.Equal(t, uint64(1), h.session("a").Generation, "it was resumed")
			require.False(t, shared("a"))
			require.False(t, shared("b"))
			require.True(t, shared("c"), "it is that of b")
			h.stopAndVerify()
		})
	}
}
