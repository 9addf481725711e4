package tests

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/tests/internal/refusals"
)

// answerIn returns an answer with a body of JSON.
func answerIn(status int, body string) refusals.Answer {
	return refusals.Answer{Status: status, Header: map[string]string{"Content-Type": "application/json"}, Body: body}
}

// errorOf returns a JSON-RPC error. The id is JSON; "{id}" is that of the request.
func errorOf(id string, code int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"}}`, id, code)
}

// resultOf returns a JSON-RPC response.
func resultOf(id, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// afterwards passes a request on, drops the answer of the server, and answers by a fault.
func afterwards(f faults.Fault) faults.Fault {
	return func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r.Request)
		f(w, r, next)
	}
}

// lieOf runs the tool, and gives another answer.
func lieOf(answer refusals.Answer) faults.Fault { return afterwards(answer.Respond) }

// lies are the answers of a server after its tool has run, each of which may be read as if it had not.
func lies() map[string]faults.Fault {
	all := map[string]faults.Fault{
		"the answer is cut":               faults.CutAnswer(0),
		"the answer is cut in the middle": faults.CutAnswer(60),
		"an empty stream":                 lieOf(refusals.Answer{Status: 200, Header: map[string]string{"Content-Type": "text/event-stream"}, Body: "\n"}),
		"a stream that says nothing":      lieOf(refusals.Answer{Status: 200, Header: map[string]string{"Content-Type": "text/event-stream"}, Body: "event: x\ndata: y\n\n"}),
		"a stream of garbage":             lieOf(refusals.Answer{Status: 200, Header: map[string]string{"Content-Type": "text/event-stream"}, Body: "data: y\n\n"}),
		"a stream with the id of another": lieOf(refusals.Answer{Status: 200, Header: map[string]string{"Content-Type": "text/event-stream"}, Body: "data: " + errorOf("4", -32000) + "\n\n"}),
		"a web page":                      lieOf(refusals.Answer{Status: 200, Header: map[string]string{"Content-Type": "text/html"}, Body: "<p>welcome</p>"}),
		"nothing":                         lieOf(refusals.Answer{Status: 204}),
		"202":                             lieOf(refusals.Answer{Status: 202}),
		"202 and an error of its own":     lieOf(answerIn(202, errorOf("{id}", -32603))),
		"202 and a text":                  lieOf(refusals.Answer{Status: 202, Body: "rejected"}),
		"the id of another":               lieOf(answerIn(200, errorOf("4", -32602))),
		"a text as id":                    lieOf(answerIn(200, errorOf(`"{id}"`, -32603))),
		"an unknown type of result":       lieOf(answerIn(200, resultOf("{id}", `{"resultType":"not_run","content":[]}`))),
		"a question as result":            lieOf(answerIn(200, resultOf("{id}", `{"resultType":"input_required"}`))),
		"null":                            lieOf(answerIn(200, resultOf("{id}", `null`))),
		"an empty array":                  lieOf(answerIn(200, `[]`)),
		"an array of others":              lieOf(answerIn(200, "["+errorOf("4", -32602)+","+errorOf("5", -32602)+"]")),
		"302":                             lieOf(refusals.Answer{Status: 302, Header: map[string]string{"Location": "https://elsewhere.invalid/"}}),
		"303":                             lieOf(refusals.Answer{Status: 303, Header: map[string]string{"Location": "https://elsewhere.invalid/"}}),
	}
	for _, status := range []int{200, 400, 401, 403, 404, 405, 406, 407, 408, 409, 410, 413, 415, 418, 421, 422, 425, 429, 500, 501, 502, 503, 504, 599} {
		for _, code := range []int{-32602, -32603, -32000, -32001, -32002, -1, 0, 1} {
			all[fmt.Sprint(status, " with its own id, ", code)] = lieOf(answerIn(status, errorOf("{id}", code)))
		}
		if status == 404 || status == 410 {
			all[fmt.Sprint(status, ", a page")] = lieOf(refusals.Answer{Status: status, Header: map[string]string{"Content-Type": "text/html"}, Body: "<html>no such page</html>"})
		}
		if !believed[status] {
			all[fmt.Sprint(status, " without an id")] = lieOf(answerIn(status, errorOf("null", -32000)))
			all[fmt.Sprint(status, ", a text")] = lieOf(refusals.Answer{Status: status, Body: "rejected"})
		}
	}
	return all
}

// believed are the statuses that say, without the id of the request, that it has not been carried out.
// A server that gives them to a call that has run cannot be found out.
var believed = map[int]bool{
	401: true, 403: true, 404: true, 405: true, 406: true, 407: true, 410: true, 411: true, 413: true, 414: true, 415: true,
	421: true, 426: true, 429: true, 431: true,
}

// Whatever a server answers after a call has run, the failure says that it may have run, and it is not
// run again.
func TestCallThatHasRunIsNeverSaidNotToHaveRun(t *testing.T) {
	t.Parallel()
	for name, lie := range lies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
				require.Equal(h.t, "1", h.send(call("a", "count")).text())
				e.Inject("tools/call", faults.Times(1, lie))
				p := h.send(call("a", "count", within(time.Minute)))
				f, failed := p.reply().(*messages.Failure)
				require.True(h.t, failed)
				require.True(h.t, f.MayHaveRun, "%v", f)
				require.Equal(h.t, 1, e.Executions()[p.cmd.RequestID()])
				h.send(call("a", "count")).ok()
			})
		})
	}
}

// C14: the same, and with the call the session has gone: what comes then is refused in the same way.
func TestCallThatHasRunAndBrokenItsSessionIsNeverSaidNotToHaveRun(t *testing.T) {
	t.Parallel()
	forms := map[string]refusals.Answer{}
	for _, status := range []int{200, 400, 401, 403, 404, 408, 409, 410, 422, 500, 503} {
		for _, code := range []int{-32603, -32600, -32602, -32001, -32000} {
			forms[fmt.Sprint(status, " ", code)] = answerIn(status, errorOf("{id}", code))
		}
		body := "rejected"
		if status == 404 || status == 410 { // which are believed otherwise
			body = "<html>no such page</html>"
		} else if status != 200 {
			forms[fmt.Sprint(status, " without an id")] = answerIn(status, errorOf("null", -32000))
			forms[fmt.Sprint(status, " with the id of another")] = answerIn(status, errorOf("4", -32000))
		}
		forms[fmt.Sprint(status, ", a text")] = refusals.Answer{Status: status, Header: map[string]string{"Content-Type": "text/html"}, Body: body}
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, first := range []bool{false, true} {
				overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
					if !first {
						require.Equal(h.t, "1", h.send(call("a", "count")).text())
					}
					broken := make(chan string, 1) // the id of the session that the call has broken
					e.Inject("tools/call", faults.Times(1, func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
						next.ServeHTTP(httptest.NewRecorder(), r.Request)
						broken <- r.Header.Get("Mcp-Session-Id")
						form.Respond(w, r, next)
					}))
					e.Inject("", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
						select {
						case id := <-broken:
							broken <- id
							if r.Header.Get("Mcp-Session-Id") == id && r.Kind != http.MethodDelete { // which Stop may send before the session is known to be dead
								form.Respond(w, r, next)
								return
							}
						default:
						}
						next.ServeHTTP(w, r.Request)
					})
					p := h.send(call("a", "count", within(time.Minute)))
					f, failed := p.reply().(*messages.Failure)
					require.True(h.t, failed)
					require.True(h.t, f.MayHaveRun, "%v", f)
					require.Equal(h.t, 1, e.Executions()[p.cmd.RequestID()])
				})
			}
		})
	}
}

// elsewhere answers calls with 202, and sends their responses on the standalone streams.
type elsewhere struct {
	mu      sync.Mutex
	streams map[chan []byte]bool
}

func (e *elsewhere) fault(w http.ResponseWriter, r *faults.Request, next http.Handler) {
	switch r.Kind {
	case "tools/call":
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r.Request)
		w.WriteHeader(http.StatusAccepted)
		w.(http.Flusher).Flush()
		e.mu.Lock()
		defer e.mu.Unlock()
		for stream := range e.streams {
			stream <- answer.Body.Bytes()
		}
	case http.MethodGet:
		stream := make(chan []byte, 100)
		e.mu.Lock()
		e.streams[stream] = true
		e.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for {
			select {
			case answer := <-stream:
				fmt.Fprintf(w, "data: %s\n\n", answer)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	default:
		next.ServeHTTP(w, r.Request)
	}
}

// Some servers answer every request with 202, and send the response on the stream.
func TestResponsesOnTheStreamReachTheirCallers(t *testing.T) {
	json := func() *faults.Tools {
		tools := newHTTPTools()
		tools.JSON = true
		return tools
	}
	overLocalHTTP(t, supervisor.Config{}, json, func(h *harness, e *testServer) {
		server := &elsewhere{streams: map[chan []byte]bool{}}
		e.Inject("", server.fault)
		for range 3 {
			for _, p := range h.calls(20, "a", "echo") {
				require.Equal(h.t, p.cmd.RequestID(), p.text())
			}
		}
		require.Equal(h.t, 60, e.Count("tools/call"))
		require.Equal(h.t, 1, e.Count("initialize"))
	})
}
