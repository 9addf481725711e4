package tests

import (
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

// rawRequest is a request as a server got it.
type rawRequest struct {
	Header http.Header
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

// member returns a parameter as it came.
func (r rawRequest) member(path ...string) string {
	value := r.Params
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(value, &object) != nil {
			return ""
		}
		value = object[name]
	}
	return string(value)
}

// newProtocol is an HTTP server of protocol 2026-07-28 that answers with the results that results has by method, one after the
// other, and the last again and again.
func newProtocol(got *[]rawRequest, results map[string][]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		req := rawRequest{Header: r.Header}
		if r.Method != http.MethodPost || json.Unmarshal(body, &req) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		*got = append(*got, req)
		result := `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}},"x":1,` +
			`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x","version":"1","later":true}},"ttlMs":0,"cacheScope":"public"}`
		if req.Method != "server/discover" {
			left := results[req.Method]
			if len(left) == 0 {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			if result = left[0]; len(left) > 1 {
				results[req.Method] = left[1:]
			}
		}
		writeJSON(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result))
	})
}

// overNewProtocol runs a scenario with such a server. last returns the last request with a method.
func overNewProtocol(t *testing.T, srv mcpbridge.Server, results map[string][]string, scenario func(h *harness, last func(method string) rawRequest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		var got []rawRequest
		handler := newProtocol(&got, results)
		server := faults.Local(func() http.Handler { return handler })
		defer server.Close()
		srv.Name, srv.URL, srv.HTTPClient = "s", server.URL(), &http.Client{Transport: server}
		h := start(t, supervisor.Config{Servers: []mcpbridge.Server{srv}, Capabilities: declaring()})
		defer h.stop()
		scenario(h, func(method string) rawRequest {
			for i := len(got) - 1; i >= 0; i-- {
				if got[i].Method == method {
					return got[i]
				}
			}
			require.Fail(t, "no "+method)
			return rawRequest{}
		})
		h.stopAndVerify()
	})
}

// asIs returns the header of an operation whose caller follows what the server answers.
func asIs(extra map[string]json.RawMessage) messages.Header {
	h := verbatimly(extra)
	h.AsIs = true
	return h
}

// A result that asks for input or is a task is the result of the operation where the caller follows it itself, also if it has what
// the SDK does not know. The next round is an operation of its own, whose parameters arrive as they are, and no cache answers it.
func TestCallerMayFollowRoundsAndTasksItself(t *testing.T) {
	const (
		asks  = `{"resultType":"input_required","inputRequests":{"a":{"method":"later/kind"},"b":{"method":"roots/list"}},"requestState":"<s>","x":9007199254740993}`
		task  = `{"resultType":"task","taskId":"t1","status":"working","ttlMs":null,"createdAt":"2026-07-28T00:00:00Z","lastUpdatedAt":"2026-07-28T00:00:00Z"}`
		reads = `{"resultType":"complete","contents":[{"uri":"x:a b","text":"done"}],"ttlMs":60000,"cacheScope":"public"}`
		says  = `{"resultType":"complete","messages":[],"content":[]}`
	)
	answers := map[string]json.RawMessage{
		"inputResponses": json.RawMessage(`{"a":{"later":[1.0,9007199254740993]},"b":5}`), "requestState": json.RawMessage(`"<s>"`),
	}
	overNewProtocol(t, mcpbridge.Server{}, map[string][]string{
		"tools/call": {asks, says, task}, "prompts/get": {asks, says}, "resources/read": {reads, asks, reads},
	}, func(h *harness, last func(string) rawRequest) {
		tool := func(head messages.Header) messages.Operation {
			return &messages.CallTool{Header: head, Params: &mcp.CallToolParams{Name: "tool é"}}
		}
		read := func(head messages.Header) messages.Operation {
			return &messages.ReadResource{Header: head, Params: &mcp.ReadResourceParams{URI: "x:a b"}}
		}
		prompt := func(head messages.Header) messages.Operation {
			return &messages.GetPrompt{Header: head, Params: &mcp.GetPromptParams{Name: "p"}}
		}
		raw := func(op messages.Operation) string {
			t.Helper()
			result, is := h.send(op).reply().(messages.Result)
			require.True(t, is, "%v", op)
			return string(result.GetReceipt().Verbatim)
		}
		h.send(read(messages.To("s", "a"))).reply() // the cache of the SDK has it now
		for method, c := range map[string]struct {
			make           func(messages.Header) messages.Operation
			then, mcpNamed string
		}{
			"tools/call": {tool, says, "=?base64?dG9vbCDDqQ==?="}, "prompts/get": {prompt, says, "p"}, "resources/read": {read, reads, "=?base64?eDphIGI=?="},
		} {
			require.Equal(t, asks, raw(c.make(asIs(nil))), method)
			require.Equal(t, c.then, raw(c.make(asIs(answers))), method)
			sent := last(method)
			require.Equal(t, string(answers["inputResponses"]), sent.member("inputResponses"))
			require.JSONEq(t, string(answers["requestState"]), sent.member("requestState"))
			require.Equal(t, c.mcpNamed, sent.Header.Get("Mcp-Name"), "although the SDK cannot decode the answers")
		}
		require.Equal(t, task, raw(tool(asIs(nil))), "nobody asks for it")
	})
}

// What each request says of its client reaches a server of the new protocol as the caller has put it, but for the version, which is
// that of the session. It is kept from a server of an older one.
func TestMetaOfRequestsIsThatOfTheProtocol(t *testing.T) {
	const prefix = "io.modelcontextprotocol/"
	meta := mcp.Meta{
		prefix + "protocolVersion": "2025-01-01", prefix + "clientInfo": json.RawMessage(`{"name":"c","version":"2","later":1}`),
		prefix + "clientCapabilities": json.RawMessage(`{"later":{"x":[]}}`), prefix + "logLevel": "debug", "mine": "kept",
	}
	srv := mcpbridge.Server{CustomMethods: []string{"tasks/get", "acme/search"}}
	operations := func(extra map[string]json.RawMessage) []messages.Operation {
		return []messages.Operation{
			&messages.CallTool{Header: verbatimly(extra), Params: &mcp.CallToolParams{Name: "t", Meta: meta}},
			&messages.Custom{Header: verbatimly(extra), Name: "tasks/get", Params: map[string]any{"taskId": "t é", "_meta": meta}},
			&messages.Custom{Header: verbatimly(extra), Name: "acme/search", Params: map[string]any{"_meta": meta}},
		}
	}
	done := map[string][]string{
		"tools/call": {`{"resultType":"complete","content":[]}`}, "tasks/get": {`{"resultType":"complete"}`}, "acme/search": {`{"resultType":"complete"}`},
		"logging/setLevel": {"{}"},
	}
	overNewProtocol(t, srv, done, func(h *harness, last func(string) rawRequest) {
		h.send(&messages.SetLogLevel{Header: messages.To("s", "a"), Level: "error"}).reply()
		for _, op := range operations(map[string]json.RawMessage{"later": json.RawMessage(`1.0`)}) {
			require.Implements(t, (*messages.Result)(nil), h.send(op).reply(), op.Method())
			sent := last(op.Method())
			require.JSONEq(t, `"2026-07-28"`, sent.member("_meta", prefix+"protocolVersion"), op.Method())
			require.Equal(t, "2026-07-28", sent.Header.Get("Mcp-Protocol-Version"))
			require.JSONEq(t, `{"name":"c","version":"2","later":1}`, sent.member("_meta", prefix+"clientInfo"))
			require.JSONEq(t, `{"later":{"x":[]}}`, sent.member("_meta", prefix+"clientCapabilities"))
			require.JSONEq(t, `"debug"`, sent.member("_meta", prefix+"logLevel"))
			require.JSONEq(t, `"kept"`, sent.member("_meta", "mine"))
			require.Equal(t, "1.0", sent.member("later"))
		}
		require.Equal(t, "=?base64?dCDDqQ==?=", last("tasks/get").Header.Get("Mcp-Name"))
		require.Empty(t, last("acme/search").Header.Get("Mcp-Name"))
	})
	overModern(t, map[string]string{"tools/call": `{"content":[]}`, "tools/list": `{"tools":[]}`}, func(h *harness, params func(string) string) {
		h.send(operations(nil)[0]).ok()
		require.JSONEq(t, `{"name":"t","arguments":{},"_meta":{"mine":"kept"}}`, params("tools/call"))
		said, _ := json.Marshal(meta)
		h.send(&messages.ListTools{Header: verbatimly(map[string]json.RawMessage{"_meta": said})}).reply()
		require.JSONEq(t, `{"_meta":{"mine":"kept"}}`, params("tools/list"))
	})
}

// A server is asked for the version of the client, unless the configuration pins one. One that refuses initialize is asked what it
// speaks, once, and what it says of itself is kept as it came.
func TestInitializeAsksForTheVersionOfItsOwn(t *testing.T) {
	srv := mcpbridge.Server{PassOn: mcpbridge.PassOn{InitializeVersion: "2025-06-18", Verbatim: true}}
	overNewProtocol(t, srv, map[string][]string{"tools/list": {`{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public"}`}}, func(h *harness, _ func(string) rawRequest) {
		list := h.send(&messages.ListTools{Header: messages.To("s", "a"), Shared: true}).reply().(*messages.ToolList)
		require.Equal(t, "2026-07-28", list.Listing.Server.ProtocolVersion)
		require.Contains(t, string(list.Listing.Verbatim), `"supportedVersions":["2026-07-28"]`)
		require.Contains(t, string(list.Listing.Verbatim), `"later":true`)
	})
	for pinned, want := range map[string]string{"": "2025-06-18", "2025-03-26": "2025-03-26", "2026-07-28": "2025-11-25"} {
		synctest.Test(t, func(t *testing.T) {
			defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
			var asked []string
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				var req rawRequest
				json.Unmarshal(body, &req)
				switch asked = append(asked, req.Method); req.Method {
				case "initialize":
					writeJSON(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%s,"capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`,
						req.ID, req.member("protocolVersion")))
				case "server/discover":
					writeJSON(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, req.ID))
				default:
					w.WriteHeader(http.StatusAccepted)
				}
			})
			server := faults.Local(func() http.Handler { return handler })
			defer server.Close()
			srv.Name, srv.URL, srv.HTTPClient, srv.ProtocolVersion = "s", server.URL(), &http.Client{Transport: server}, pinned
			h := start(t, supervisor.Config{Servers: []mcpbridge.Server{srv}})
			defer h.stop()
			info := h.send(&messages.Open{Header: messages.To("s", "a")}).reply().(*messages.SessionInfo)
			require.Equal(t, want, info.Server.ProtocolVersion)
			h.send(&messages.Open{Header: messages.To("s", "b")}).reply()
			var discovers int
			for _, method := range asked {
				if method == "server/discover" {
					discovers++
				}
			}
			require.Equal(t, map[string]int{"": 0, "2025-03-26": 0, "2026-07-28": 2}[pinned], discovers)
			h.stopAndVerify()
		})
	}
}
