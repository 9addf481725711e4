package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

type customParams struct {
	mcp.ParamsBase
	Text string `json:"text"`
	ID   int64  `json:"id"`
}

type customResult struct {
	mcp.ResultBase
	Text  string         `json:"text"`
	ID    int64          `json:"id"`
	Given map[string]any `json:"given,omitempty"`
}

// addCustom adds the methods "acme/echo" and "acme/refuse" to a server. ran is called for each
// run.
func addCustom(t *testing.T, server *mcp.Server, ran func()) *mcp.Server {
	t.Helper()
	require.NoError(t, mcp.AddReceivingCustomMethod(server, "acme/echo", func(_ context.Context, _ *mcp.ServerSession, params *customParams) (*customResult, error) {
		ran()
		return &customResult{Text: params.Text, ID: params.ID, Given: params.GetMeta()}, nil
	}))
	require.NoError(t, mcp.AddReceivingCustomMethod(server, "acme/refuse", func(context.Context, *mcp.ServerSession, *customParams) (*customResult, error) {
		return nil, &jsonrpc.Error{Code: -32099, Message: "never"}
	}))
	return server
}

// custom returns a call of a custom method on server "s".
func custom(scope, name string, params any) *messages.Custom {
	return &messages.Custom{Header: messages.To("s", scope), Name: name, Params: params}
}

// customText returns the text in the result of a custom method.
func customText(t *testing.T, p *sentCommand) string {
	t.Helper()
	result, ok := p.reply().(*messages.CustomResult)
	require.True(t, ok, "%v", p.reply())
	var said customResult
	require.NoError(t, json.Unmarshal(result.Result, &said))
	return said.Text
}

// methods are the custom methods of the tests.
var methods = []string{"acme/echo", "acme/refuse", "acme/unknown"}

func TestCustomMethodIsCalled(t *testing.T) {
	for name, version := range map[string]string{"the newest protocol": "", "an older protocol": "2025-06-18"} {
		t.Run(name, func(t *testing.T) {
			server := addCustom(t, faults.NewTools().Server(), func() {})
			plain := faults.NewTools().Server()
			h := start(t, supervisor.Config{Servers: []mcpbridge.Server{
				{Name: "s", InMemory: server, CustomMethods: methods, ProtocolVersion: version}, {Name: "other", InMemory: plain},
			}})
			for _, params := range []any{
				map[string]any{"text": "hello"}, json.RawMessage(`{ "text": "hello" }`), &customResult{Text: "hello"}, struct {
					Text string `json:"text"`
					More []int  `json:"more"`
				}{Text: "hello"},
			} {
				require.Equal(t, "hello", customText(t, h.send(custom("a", "acme/echo", params))))
			}
			require.Empty(t, customText(t, h.send(custom("a", "acme/echo", nil))))
			result := h.send(custom("a", "acme/echo", json.RawMessage(`{"id": 9007199254740993, "_meta": {"mine": "kept"}}`))).reply().(*messages.CustomResult)
			require.Contains(t, string(result.Result), `"id":9007199254740993`)
			require.Contains(t, string(result.Result), `"mine":"kept"`)
			require.Equal(t, messages.Key{Server: "s", Scope: "a"}, result.Key)

			f := h.send(custom("a", "acme/refuse", nil)).fails(messages.CodeServerError)
			require.Contains(t, f.Error(), "never")
			h.send(custom("a", "acme/unknown", nil)).reply()
			for _, params := range []any{"text", 5, []int{1}, func() {}, json.RawMessage(`{`), json.RawMessage(`{"_meta": 5}`)} {
				f := h.send(custom("a", "acme/echo", params)).fails(messages.CodeInvalid)
				require.Contains(t, f.Error(), "params: ")
				require.False(t, f.MayHaveRun)
			}
			h.send(custom("a", "", nil)).fails(messages.CodeInvalid)
			require.Contains(t, h.send(custom("a", "tools/list", nil)).fails(messages.CodeInvalid).Error(), "customMethods")
			elsewhere := custom("a", "acme/echo", nil)
			elsewhere.Key.Server = "other"
			h.send(elsewhere).fails(messages.CodeInvalid)
			require.Equal(t, 1, h.dials.dialed(), "nothing is opened for a method that is not configured")
			h.stopAndVerify()
		})
	}
}

// overCustomHTTP runs a scenario in a bubble of fake time, on a server with custom methods.
func overCustomHTTP(t *testing.T, scenario func(h *harness, e *faults.Server, runs func() int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		runs := make(chan struct{}, 100)
		tools := faults.NewTools()
		server := faults.Local(func() http.Handler {
			one := addCustom(t, tools.Server(), func() { runs <- struct{}{} })
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return one }, nil)
		})
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		defer tools.Close()
		defer server.Close()
		h := start(t, supervisor.Config{Servers: []mcpbridge.Server{{
			Name: "s", URL: server.URL(), HTTPClient: &http.Client{Transport: server},
			CustomMethods: methods, CustomNotifications: []string{"acme/changed"},
		}}})
		defer h.stop()
		scenario(h, server, func() int { return len(runs) })
		h.stop()
		server.Close()
		tools.Close()
		h.verify()
	})
}

// A custom method that may have run is replayed only if the caller asks for it.
func TestCustomMethodIsReplayedOnlyOnRequest(t *testing.T) {
	overCustomHTTP(t, func(h *harness, e *faults.Server, runs func() int) {
		require.Equal(t, "x", customText(t, h.send(custom("a", "acme/echo", map[string]string{"text": "x"}))))
		remove := e.Inject("acme/echo", faults.Times(1, faults.CutAnswer(0)))
		require.True(t, h.send(custom("a", "acme/echo", nil)).fails(messages.CodeLost).MayHaveRun)
		remove()
		before := runs()
		e.Inject("acme/echo", faults.Times(1, faults.CutAnswer(0)))
		again := custom("a", "acme/echo", map[string]string{"text": "y"})
		again.Replay = messages.ReplayAlways
		p := h.send(again)
		require.Equal(t, "y", customText(t, p))
		require.True(t, p.reply().(*messages.CustomResult).Replayed)
		require.Equal(t, before+2, runs())

		// One that certainly did not run is replayed: the session has expired.
		before = runs()
		e.Expire(faults.Expiries()[0])
		require.Equal(t, "z", customText(t, h.send(custom("a", "acme/echo", map[string]string{"text": "z"}))))
		require.Equal(t, before+1, runs())
	})
}

// Notifications beyond MCP are passed on if the configuration has them, in their order.
func TestCustomNotificationsArePassedOn(t *testing.T) {
	overCustomHTTP(t, func(h *harness, e *faults.Server, _ func() int) {
		e.Inject("acme/echo", func(w http.ResponseWriter, r *faults.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 3 {
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"acme/changed\",\"params\":{\"n\":%d,\"secret\":\"hush\"}}\n\n", i)
				fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"acme/other\",\"params\":{}}\n\n")
			}
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"text\":\"done\"}}\n\n", r.ID)
		})
		require.Equal(t, "done", customText(t, h.send(custom("a", "acme/echo", nil))))
		for i := range 3 {
			note := awaitEvent(h, func(n *messages.CustomNotification) bool {
				return string(n.Params) == fmt.Sprintf(`{"n":%d,"secret":"hush"}`, i)
			})
			require.Equal(t, "acme/changed", note.Method)
			require.Equal(t, messages.Key{Server: "s", Scope: "a"}, note.Key)
			require.EqualValues(t, 1, note.Generation)
			require.NotContains(t, fmt.Sprintf("%v %+v", note, note.LogValue()), "hush")
		}
		requireEvents[*messages.CustomNotification](h, 3)
	})
}

func TestNamesOfCustomMethodsAreChecked(t *testing.T) {
	for want, srv := range map[string]mcpbridge.Server{
		"is a method of MCP":       {CustomMethods: []string{"acme/x", "tools/call"}},
		"is a notification, which": {CustomMethods: []string{"notifications/x"}},
		"is not a method":          {CustomMethods: []string{"a b"}},
		"is not a notification":    {CustomNotifications: []string{""}},
		"is a notification of MCP": {CustomNotifications: []string{"notifications/progress"}},
	} {
		srv.Name, srv.Command = "s", "x"
		_, err := supervisor.Start(newHarness(t).system, supervisor.Config{Servers: []mcpbridge.Server{srv}})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "custom")
	}
}
