package tests

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/tests/internal/refusals"
)

// refusalOf returns the refusal with a name.
func refusalOf(t *testing.T, name string) refusals.Refusal {
	t.Helper()
	for _, form := range refusals.All() {
		if form.Name == name {
			return form
		}
	}
	t.Fatalf("there is no refusal %q", name)
	return refusals.Refusal{}
}

// H-B5: a stream that ends as soon as it is opened is opened less and less often. If the
// session has expired, that is found.
func TestStreamThatEndsAtOnceForEverIsOpenedEverLessOften(t *testing.T) {
	for name, dead := range map[string]bool{"alive": false, "dead": true} {
		t.Run(name, func(t *testing.T) {
			overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
				heal := e.Inject("GET", endStream())
				require.Equal(h.t, "1", h.send(call("a", "count")).text())
				if dead {
					e.Expire(refusalOf(h.t, "typescript-sdk 1.24.3, example").Expiry())
				}
				time.Sleep(20 * time.Minute)
				require.LessOrEqual(h.t, e.Count("GET"), 120)
				if dead {
					requireEvents[*messages.SessionExpired](h, 1) // found without a call
				}
				heal()
				r := h.send(call("a", "count")).ok()
				require.EqualValues(h.t, map[bool]int{false: 1, true: 2}[dead], r.Generation)
				require.Zero(h.t, countEvents[*messages.SessionLost](h))
			})
		})
	}
}

// H-B6: when the server does not know a new session yet, the request is repeated on the
// same session.
func TestSessionThatCannotBeReadAtOnceIsNotReplaced(t *testing.T) {
	for _, name := range []string{"go-sdk 1.8.0", "python-sdk 1.x", "410", "wsp-wordpress-mcp 2.6.6"} {
		t.Run(name, func(t *testing.T) {
			overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
				late := e.Late(700*time.Millisecond, refusalOf(h.t, name).Expiry())
				e.Inject("", onlyIf(isOneOf("tools/call", "tools/list", "ping", "GET"), late))
				began := time.Now()
				r := h.send(call("a", "count"))
				require.Equal(h.t, "1", r.text())
				require.EqualValues(h.t, 1, r.ok().Generation)
				require.Less(h.t, time.Since(began), 3*time.Second)
				require.Equal(h.t, 1, e.Count("initialize"))
				require.Zero(h.t, e.Count("DELETE"))
			})
		})
	}
}

// H-B8: when server/discover fails, initialize is sent instead. Nothing is remembered about
// the server.
func TestServerThatFailsAtDiscoveryIsAskedTheOldWay(t *testing.T) {
	for _, status := range []int{500, 502, 503, 408, 429} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
				heal := e.Inject("server/discover", faults.Refuse(status, "no"))
				require.Equal(h.t, "1", h.send(call("a", "count")).text())
				asked := e.Count("server/discover")
				require.Positive(h.t, asked)
				heal()
				require.Equal(h.t, "1", h.send(call("b", "count")).text())
				require.Greater(h.t, e.Count("server/discover"), asked)
			})
		})
	}
}

// H-B9: a session opens before its stream is answered, and uses the stream when it is.
func TestSessionOpensThoughTheHeadersOfItsStreamAreWithheld(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
		e.Inject("GET", withhold())
		began := time.Now()
		require.Equal(h.t, "1", h.send(call("a", "count")).text())
		require.Less(h.t, time.Since(began), time.Second)
		time.Sleep(5 * time.Minute)
		require.Equal(h.t, "2", h.send(call("a", "count")).text())
		require.Equal(h.t, 1, e.Count("initialize"))
	})
}

// H-B10: a server that speaks only HTTP+SSE is recognized, and remembered.
func TestServerOfHTTPAndSSEIsFoundByItsURL(t *testing.T) {
	for name, first := range map[string]faults.Fault{
		"its own answer": nil, "400": faults.Refuse(400, "Bad Request"), "404": faults.Refuse(404, "Not Found"), "405": faults.Refuse(405, "Method Not Allowed"),
	} {
		t.Run(name, func(t *testing.T) {
			cfg := supervisor.Config{Servers: []mcpbridge.Server{{Name: "s"}}}
			overLocalHTTP(t, cfg, newSSETools, func(h *harness, e *testServer) {
				if first != nil {
					e.Inject("", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
						if r.Method == http.MethodPost && r.Session == "" {
							first(w, r, next)
							return
						}
						next.ServeHTTP(w, r.Request)
					})
				}
				require.Equal(h.t, "1", h.send(call("a", "count")).text())
				require.Equal(h.t, "2", h.send(call("a", "count")).text())
				posts, streams := e.Count("initialize"), e.Count("GET")
				require.LessOrEqual(h.t, streams, 2)
				require.Equal(h.t, "1", h.send(call("b", "count")).text())
				require.Equal(h.t, posts+1, e.Count("initialize"), "it is remembered")
				require.Equal(h.t, streams+1, e.Count("GET"))
			})
		})
	}
}

// notConnected is the refusal of a gateway whose child process has died. The gateway
// answers pings itself.
func notConnected() refusals.Refusal {
	header := map[string]string{"Content-Type": "application/json"}
	return refusals.Refusal{
		Answer: refusals.Answer{Status: 200, Header: header, Body: `{"jsonrpc":"2.0","id":{id},"error":{"code":-32603,"message":"Not connected"}}`},
		Ping:   &refusals.Answer{Status: 200, Header: header, Body: `{"jsonrpc":"2.0","id":{id},"result":{}}`},
	}
}

// H-B11: a gateway that starts a child process for each session gets a new session.
func TestGatewayWhoseChildDiedIsAskedForAnother(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
		require.Equal(h.t, "1", h.send(call("a", "count")).text())
		e.Expire(notConnected().Expiry())
		for _, p := range h.calls(20, "a", "count") {
			require.EqualValues(h.t, 2, p.ok().Generation)
		}
		require.Equal(h.t, 2, e.Count("initialize"))
	})
}

// H-B11: a gateway with one child process for all sessions refuses the control too. A new
// session would not help, so the callers get the refusal.
func TestGatewayWhoseOnlyChildDiedIsNotAskedInAHotLoop(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
		require.Equal(h.t, "1", h.send(call("a", "count")).text())
		heal := e.Inject("", onlyIf(isOneOf("tools/call", "tools/list", "prompts/list", "resources/list", "ping"), notConnected().Respond))
		for range 60 {
			for _, p := range h.calls(5, "a", "count") {
				require.Contains(h.t, p.fails(messages.CodeServerError).Detail, "Not connected")
			}
			time.Sleep(time.Second)
		}
		require.LessOrEqual(h.t, e.Count("initialize"), 5)
		require.Equal(h.t, 1, e.Sessions())
		heal()
		time.Sleep(time.Minute)
		require.EqualValues(h.t, 1, h.send(call("a", "count")).ok().Generation)
	})
}

// H-B3: a server with one transport knows one session at a time. The session that the
// control has opened is used from then on, because no other one can be opened.
func TestServerWithOneSessionForAllIsAskedForOneOnly(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
		require.Equal(h.t, "1", h.send(call("a", "count")).text())
		forgotten, unknown := refusalOf(h.t, "typescript-sdk 1.32.2, restarted"), refusalOf(h.t, "@hono/mcp 0.3.2")
		var mu sync.Mutex
		old, opened := "", false
		e.Expire(forgotten.Expiry())
		e.Inject("", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
			mu.Lock()
			if r.Session != "" && old == "" {
				old = r.Session
			}
			before := opened
			opened = opened || r.Kind == "initialize"
			mine := r.Session == old
			mu.Unlock()
			switch {
			case r.Kind == "initialize" && before:
				faults.Refuse(400, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request: Server already initialized"},"id":null}`)(w, r, next)
			case r.Session != "" && mine && before:
				unknown.Respond(w, r, next)
			default:
				next.ServeHTTP(w, r.Request)
			}
		})
		for _, p := range h.calls(20, "a", "count") {
			require.EqualValues(h.t, 2, p.ok().Generation)
		}
	})
}
