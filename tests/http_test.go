package tests

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// B1, B2 over HTTP.
func TestEveryFormOfExpiryIsRecognised(t *testing.T) {
	for _, form := range faults.Expiries() {
		t.Run(form.Name, func(t *testing.T) {
			overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
				require.Equal(t, "1", h.send(call("a", "count")).text())
				require.Equal(t, 1, e.Expire(form))
				for _, p := range h.calls(200, "a", "count") {
					require.EqualValues(t, 2, p.ok().Generation)
				}
				require.Equal(t, 2, e.Count("initialize"))
				require.Equal(t, 2, h.dials.dialed())
				requireEvents[*messages.SessionExpired](h, 1)
			})
		})
	}
}

// A1: the calls arrive while the session opens.
func TestManyFirstCallsCauseOneInitialize(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
		e.Inject("initialize", faults.Delay(time.Second))
		for _, p := range h.calls(200, "a", "count") {
			require.EqualValues(t, 1, p.ok().Generation)
		}
		require.Equal(t, 1, e.Count("initialize"))
		require.Equal(t, 1, h.dials.dialed())
	})
}

// A9, A10, A11
func TestServersThatCannotBeConnectedToSayWhy(t *testing.T) {
	for name, c := range map[string]struct {
		fault  faults.Fault
		code   messages.Code
		detail string
	}{
		"garbage":     {faults.Refuse(200, `{"nonsense":`), messages.CodeProtocol, "JSON-RPC"},
		"version":     {faults.Refuse(200, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`), messages.CodeProtocol, "version"},
		"401":         {faults.Refuse(401, "who are you?"), messages.CodeUnauthorized, "401"},
		"403":         {faults.Refuse(403, "not you"), messages.CodeUnauthorized, "403"},
		"404":         {faults.Refuse(404, "404 page not found"), messages.CodeUnavailable, "404"},
		"500":         {faults.Refuse(500, "oops"), messages.CodeUnavailable, "500"},
		"no response": {faults.Cut(), messages.CodeUnavailable, "reset"},
	} {
		t.Run(name, func(t *testing.T) {
			overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
				e.Inject("", c.fault)
				f := h.send(call("a", "count", within(2*time.Second))).fails(c.code)
				require.Contains(t, f.Detail, c.detail)
				require.Equal(t, name == "500" || name == "no response", f.Remedy == "", f.Remedy)
				require.False(t, f.MayHaveRun)
				require.Zero(t, countEvents[*messages.SessionExpired](h))
			})
		})
	}
}

// A6: notifications/initialized is all that the server refuses.
func TestServerThatDoesNotKnowInitializedWorks(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
		e.Inject("notifications/initialized", faults.Refuse(404, "not found"))
		for want := range 3 {
			require.Equal(t, fmt.Sprint(want+1), h.send(call("a", "count")).text())
		}
		require.Zero(t, countEvents[*messages.SessionExpired](h))
		e.Inject("tools/call", faults.Refuse(404, "not found"))
		f := h.send(call("b", "count")).fails(messages.CodeExpired)
		require.NotContains(t, f.Detail, "affinity")
	})
}

// A6: other sessions are not affected.
func TestServerThatNeverAnswersIsUnavailableAtTheConnectTimeout(t *testing.T) {
	for name, kind := range map[string]string{"POST": "initialize", "GET": "GET"} {
		t.Run(name, func(t *testing.T) {
			overLocalHTTP(t, supervisor.Config{ConnectTimeout: 300 * time.Millisecond}, newHTTPTools, func(h *harness, e *testServer) {
				require.Equal(t, "1", h.send(call("other", "count")).text())
				e.Inject(kind, faults.Hang())
				began := time.Now()
				if kind == "GET" { // a session works without its stream
					require.Equal(t, "1", h.send(call("a", "count")).text())
				} else {
					require.Contains(t, h.send(call("a", "count")).fails(messages.CodeUnavailable).Detail, "timed out")
				}
				require.Less(t, time.Since(began), 5*time.Second)
				require.Equal(t, "2", h.send(call("other", "count")).text())
			})
		})
	}
}

// Guarantee 6
func TestRefusalsThatAreNotAboutTheSessionAreTheCallersOwn(t *testing.T) {
	for name, c := range map[string]struct {
		fault faults.Fault
		code  messages.Code
	}{
		"401": {faults.Refuse(401, "token expired"), messages.CodeUnauthorized},
		"403": {faults.Refuse(403, ""), messages.CodeUnauthorized},
		"429": {faults.RefuseFor(7, 429, ""), messages.CodeRateLimited},
		"500": {faults.Refuse(500, "session store is down"), messages.CodeServerError},
		"503": {faults.Refuse(503, ""), messages.CodeServerError},
		"400": {faults.Refuse(400, "bad header"), messages.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
				waiting := h.send(call("a", "wait"))
				e.awaitExecutions(1)
				heal := e.Inject("", onPOST(c.fault))
				f := h.send(call("a", "count")).fails(c.code)
				if name == "429" {
					require.Equal(t, 7*time.Second, f.RetryAfter)
				}
				heal()
				e.Release()
				require.Equal(t, "1", waiting.text(), "others in flight are not harmed")
				time.Sleep(f.RetryAfter)
				require.Equal(t, "2", h.send(call("a", "count")).text())
				require.LessOrEqual(t, e.Count("initialize"), map[bool]int{true: 6, false: 2}[name == "503"], "a control, where the checks are refused as well")
				require.Equal(t, 1, e.Sessions())
			})
		})
	}
}

// C8
func TestStandaloneStreamThatIsCutOrRefusedHarmsNothing(t *testing.T) {
	for name, fault := range map[string]faults.Fault{
		"closed": func(w http.ResponseWriter, _ *faults.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "text/event-stream")
		},
		"cut": faults.Cut(), "401": faults.Refuse(401, ""), "429": faults.Refuse(429, ""),
		"502": faults.Refuse(502, ""), "503": faults.Refuse(503, ""),
	} {
		t.Run(name, func(t *testing.T) {
			overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
				e.Inject("GET", fault)
				for i := range 3 {
					require.Equal(t, fmt.Sprint(i+1), h.send(call("a", "count")).text())
					e.awaitRequests("GET", i+1)
				}
				require.Equal(t, 1, e.Count("initialize"))
				require.Zero(t, countEvents[*messages.SessionLost](h))
			})
		})
	}
}

// B6: the standalone stream finds the expiry, without any call.
func TestExpiryIsNoticedByTheStandaloneStream(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
		require.Equal(t, "1", h.send(call("a", "count")).text())
		e.awaitRequests("GET", 1)
		e.Expire(faults.Expiries()[0])
		e.Stop() // this cuts the stream
		require.NoError(t, e.Start())
		awaitEvent(h, func(*messages.SessionExpired) bool { return true })
		r := h.send(call("a", "count"))
		require.Equal(t, "1", r.text())
		require.EqualValues(t, 2, r.ok().Generation)
		require.False(t, r.ok().Replayed)
	})
}

// B6: a listing, a read and a ping find the expiry.
func TestExpiryIsNoticedByReads(t *testing.T) {
	to := messages.To("s", "a")
	for _, op := range []messages.Operation{
		&messages.ListTools{Header: to}, &messages.ListPrompts{Header: to}, &messages.Ping{Header: to},
		&messages.ReadResource{Header: to, Params: &mcp.ReadResourceParams{URI: "file:///one"}},
	} {
		t.Run(op.Method(), func(t *testing.T) {
			overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
				require.Equal(t, "1", h.send(call("a", "count")).text())
				e.Expire(faults.Expiries()[0])
				r, ok := h.send(op).reply().(messages.Result)
				require.True(t, ok)
				require.True(t, r.GetReceipt().Replayed)
				require.EqualValues(t, 2, r.GetReceipt().Generation)
			})
		})
	}
}

// C9, C1, C2 over HTTP.
func TestSessionsOfBrokenConnectionsAreResumedWithTheirState(t *testing.T) {
	overHTTP(t, supervisor.Config{}, func(h *harness, e *testServer) {
		require.Equal(t, "1", h.send(call("a", "count")).text())
		h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply()
		lost, safe := h.send(call("a", "wait")), h.send(call("a", "wait/ro"))
		e.awaitExecutions(3)
		e.Stop() // closes all connections and the listener
		f := lost.fails(messages.CodeLost)
		require.True(t, f.MayHaveRun)
		e.Release()
		require.NoError(t, e.Start())
		r := safe.ok()
		require.True(t, r.Replayed)
		require.EqualValues(t, 1, r.Generation)
		require.EqualValues(t, 1, h.send(call("a", "count")).ok().Generation)
		require.Equal(t, 1, e.Count("initialize"))
	})
}

// C10 over HTTP.
func TestCallsThatRunWhenTheSessionExpiresGetTheirOwnResult(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
		running := h.calls(20, "a", "wait")
		e.awaitExecutions(20)
		e.Expire(faults.Expiries()[0])
		refused := h.calls(44, "a", "count")
		e.awaitRequests("tools/call", 21)
		e.Release()
		for _, p := range running {
			require.EqualValues(t, 1, p.ok().Generation)
		}
		for _, p := range refused {
			require.EqualValues(t, 2, p.ok().Generation)
		}
		require.Equal(t, 2, e.Count("initialize"))
	})
}

// E5, E6 over HTTP.
func TestClosingEndsTheSessionOnTheServer(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{CloseTimeout: 500 * time.Millisecond}, newHTTPTools, func(h *harness, e *testServer) {
		for _, scope := range []string{"a", "b", "c"} {
			h.send(call(scope, "count")).ok()
		}
		require.Equal(t, 1, h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Sessions)
		require.Equal(t, 1, e.Count("DELETE"))
		heal := e.Inject("DELETE", faults.Hang())
		left := h.send(&messages.CloseScope{Scope: "b"}).reply().(*messages.Closed).Left
		require.Len(t, left, 1)
		require.Contains(t, left[0].Reason, "ending the session")
		heal()
		closed := h.send(&messages.CloseAll{}).reply().(*messages.Closed)
		require.Equal(t, 2, closed.Sessions)
		require.Empty(t, closed.Left)
		require.Equal(t, 4, e.Count("DELETE"))
	})
}

// F1, guarantee 10
func TestCancelledCallIsCancelledOnTheServer(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
		p := h.send(call("a", "wait"))
		e.awaitExecutions(1)
		h.cancel(p)
		p.fails(messages.CodeCancelled)
		e.awaitRequests("notifications/cancelled", 1)
		require.Equal(t, "2", h.send(call("a", "count")).text())
	})
}

// F1: the server gets notifications/cancelled for calls that a close cuts.
func TestCallThatIsCutByAnImpatientCloseIsCancelledOnTheServer(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{DrainTimeout: 100 * time.Millisecond}, newHTTPTools, func(h *harness, e *testServer) {
		p := h.send(call("a", "wait"))
		e.awaitExecutions(1)
		require.Equal(t, 1, h.send(&messages.CloseAll{}).reply().(*messages.Closed).Sessions)
		require.True(t, p.fails(messages.CodeClosed).MayHaveRun)
		require.Equal(t, 1, e.Count("notifications/cancelled"))
	})
}

// A5: the server has opened the session, and no caller waits for it any more.
func TestSessionThatOpensWhenNobodyWaitsForItIsEnded(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
		arrived, answer := make(chan struct{}), make(chan struct{})
		e.Inject("initialize", faults.Times(1, func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
			close(arrived)
			<-answer
			next.ServeHTTP(w, r.Request)
		}))
		p := h.send(call("a", "count"))
		<-arrived
		closing := h.send(&messages.CloseAll{})
		p.fails(messages.CodeClosed)
		close(answer)
		closing.reply()
		require.Equal(t, 1, e.Count("DELETE"))
		require.Zero(t, e.Sessions())
	})
}
