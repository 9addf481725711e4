package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// overModern runs a scenario on a server whose answers have what the SDK does not know. params returns the parameters of the
// last request with a method.
func overModern(t *testing.T, answers map[string]string, scenario func(h *harness, params func(method string) string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		asked := make(map[string]string)
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var msg struct {
				ID     json.RawMessage
				Method string
				Params json.RawMessage
			}
			if r.Method != http.MethodPost || json.Unmarshal(body, &msg) != nil {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			asked[msg.Method] = string(msg.Params)
			answer, known := answers[msg.Method+" "+string(msg.Params)]
			if !known {
				answer, known = answers[msg.Method]
			}
			switch {
			case msg.ID == nil:
				w.WriteHeader(http.StatusAccepted)
			case msg.Method == "initialize":
				writeJSON(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`, msg.ID))
			case known:
				writeJSON(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, msg.ID, answer))
			default:
				writeJSON(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, msg.ID))
			}
		})
		server := faults.Local(func() http.Handler { return handler })
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		defer server.Close()
		h := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", URL: server.URL(), HTTPClient: &http.Client{Transport: server}, ProtocolVersion: "2025-11-25"}}})
		defer h.stop()
		scenario(h, func(method string) string { return asked[method] })
		h.stopAndVerify()
	})
}

// verbatimly returns the header of an operation that is passed on for another client.
func verbatimly(extra map[string]json.RawMessage) messages.Header {
	h := messages.To("s", "a")
	h.Verbatim, h.Extra = true, extra
	return h
}

// What the SDK does not know is passed on in both directions, if the caller asks for it.
func TestUnknownFieldsArePassedOn(t *testing.T) {
	const answer = `{"content":[{"type":"text","text":"<&>","later":1},{"type":"hologram","data":[1,2]}],"isError":true,"later":{"a":[1e2]}}`
	overModern(t, map[string]string{"tools/call": answer}, func(h *harness, params func(string) string) {
		p := &mcp.CallToolParams{Meta: mcp.Meta{"mine": "kept"}, Name: "t", Arguments: json.RawMessage(`{"n":9007199254740993}`)}
		reply := h.send(&messages.CallTool{Header: verbatimly(map[string]json.RawMessage{
			"task": json.RawMessage(`{"ttl":5}`), "name": json.RawMessage(`"other"`), "_meta": json.RawMessage(`{}`),
		}), Params: p}).reply()
		require.IsType(t, &messages.ToolResult{}, reply, "%v", reply)
		require.Equal(t, answer, string(reply.(*messages.ToolResult).Verbatim))
		require.JSONEq(t, `{"name":"t","arguments":{"n":9007199254740993},"_meta":{"mine":"kept"},"task":{"ttl":5}}`, params("tools/call"))
		require.Contains(t, params("tools/call"), `9007199254740993`)

		result := h.send(call("a", "t")).reply().(*messages.ToolResult).Result
		require.True(t, result.IsError)
		require.Contains(t, result.Content[1].(*mcp.TextContent).Text, `"hologram"`, "what cannot be shown is shown as text")
		require.NotContains(t, params("tools/call"), "task")
	})
}

func TestPagesOfAListAreOneVerbatimResult(t *testing.T) {
	overModern(t, map[string]string{
		"tools/list":                `{"tools":[{"name":"a","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}],"nextCursor":"2"}`,
		`tools/list {"cursor":"2"}`: `{"nextCursor":"3"}`,
		`tools/list {"cursor":"3"}`: `{"tools":[{"name":"b","inputSchema":{"type":"object"},"later":1}],"_meta":{"k":"v"}}`,
	}, func(h *harness, _ func(string) string) {
		const want = `{"tools":[{"name":"a","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},{"name":"b","inputSchema":{"type":"object"},"later":1}],"_meta":{"k":"v"}}`
		for _, shared := range []bool{false, true, true} {
			list := h.send(&messages.ListTools{Header: verbatimly(nil), Shared: shared}).reply().(*messages.ToolList)
			require.JSONEq(t, want, string(list.Verbatim))
			require.Len(t, list.Result.Tools, 2)
		}
		list := h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply().(*messages.ToolList)
		require.Empty(t, list.Verbatim, "nobody asked for it")
	})
}

// A log message of a server names the operation during which it was written, and has its _meta.
func TestServerLogsHaveTheirOperationAndMeta(t *testing.T) {
	overCustomHTTP(t, func(h *harness, e *faults.Server, _ func() int) {
		e.Inject("acme/echo", func(w http.ResponseWriter, r *faults.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\",\"_meta\":{\"k\":\"v\"}}}\n\n")
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/elicitation/complete\",\"params\":{\"elicitationId\":\"e1\",\"_meta\":{\"k\":\"v\"}}}\n\n")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"text\":\"done\"}}\n\n", r.ID)
		})
		op := custom("a", "acme/echo", nil)
		op.ID = "mine"
		require.Equal(t, "done", customText(t, h.send(op)))
		log := awaitEvent(h, func(*messages.ServerLog) bool { return true })
		require.Equal(t, messages.OperationRef{ID: "mine", Method: "acme/echo"}, log.Operation)
		require.Equal(t, mcp.Meta{"k": "v"}, log.Meta, "without the mark of the bridge")
		done := awaitEvent(h, func(*messages.ElicitationCompleted) bool { return true })
		require.Equal(t, "e1", done.ElicitationID)
		require.Equal(t, mcp.Meta{"k": "v"}, done.Meta)
	})
}

// A program that passes on the calls of clients speaks to the server of each in the revision of the client.
func TestKeyMaySetTheProtocolVersionAndTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		desk := mcpbridge.Server{Name: "s", InMemory: newChattyServer(), ProtocolVersion: "2025-03-26"}
		desk.PerKey = func(_ context.Context, key messages.Key) (mcpbridge.Server, error) {
			one := mcpbridge.Server{InMemory: desk.InMemory, ClientInfo: &mcp.Implementation{Name: "client of " + key.Scope}}
			if key.Scope != "plain" {
				one.ProtocolVersion = key.Scope
			}
			return one, nil
		}
		h := start(t, supervisor.Config{Servers: []mcpbridge.Server{desk}})
		for scope, want := range map[string]string{"2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "2026-07-28": "2026-07-28", "plain": "2025-03-26"} {
			info := h.send(&messages.Open{Header: messages.To("s", scope)}).reply().(*messages.SessionInfo)
			require.Equal(t, want, info.Server.ProtocolVersion, scope)
			require.Equal(t, "client of "+scope, h.send(call(scope, "whoami")).text())
		}
		h.stopAndVerify()
	})
}
