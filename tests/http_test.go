package tests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// answers returns a refusal with a JSON body; %s in it is the request's id.
func answers(status int, body string) refusal {
	return func(w http.ResponseWriter, id string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, strings.ReplaceAll(body, "%s", id))
	}
}

// says returns a refusal with a text body.
func says(status int, body string) refusal {
	return func(w http.ResponseWriter, _ string) { http.Error(w, body, status) }
}

// expiries are the ways in which servers in use say that a session is unknown.
var expiries = map[string]refusal{
	"Go SDK":                      says(404, "session not found"),
	"TypeScript SDK":              answers(404, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`),
	"Python SDK":                  answers(404, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`),
	"C# SDK":                      answers(404, `{"jsonrpc":"2.0","id":"","error":{"code":-32001,"message":"Session not found"}}`),
	"TypeScript example":          answers(400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`),
	"TypeScript example, echoed":  answers(400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":%s}`),
	"server-everything":           answers(400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`),
	"TypeScript SDK, restarted":   answers(400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`),
	"older Python SDK":            says(400, "Bad Request: No valid session ID provided"),
	"invalid or missing":          says(400, "Invalid or missing session ID"),
	"proxy":                       says(404, "<html><body>Not Found</body></html>"),
	"gone":                        says(410, ""),
	"404 with the request's id":   answers(404, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":%s}`),
	"401 that is about a session": answers(401, `{"error":"invalid_session","message":"Unknown session id"}`),
}

// B1, B2 on the wire
func TestEveryFormOfExpiryIsRecognised(t *testing.T) {
	for name, form := range expiries {
		t.Run(name, func(t *testing.T) {
			overHTTP(t, supervisor.Config{}, func(w *world, e *endpoint) {
				require.Equal(t, "1", w.send(call("a", "count")).text())
				e.forget(form)
				for _, p := range w.calls(50, "a", "count") {
					r := p.ok()
					require.EqualValues(t, 2, r.Generation)
				}
				require.Equal(t, 2, e.count("POST initialize"))
				require.Equal(t, 1, count[*messages.SessionExpired](w))
			})
		})
	}
}

// A1 on the wire
func TestManyFirstCallsCauseOneInitialize(t *testing.T) {
	overHTTP(t, supervisor.Config{}, func(w *world, e *endpoint) {
		for _, p := range w.calls(200, "a", "count") {
			p.ok()
		}
		require.Equal(t, 1, e.count("POST initialize"))
	})
}

// B1, C1: the server is another process on the same address.
func TestRestartedServerIsFoundAgain(t *testing.T) {
	overHTTP(t, supervisor.Config{}, func(w *world, e *endpoint) {
		require.Equal(t, "1", w.send(call("a", "count")).text())
		e.restart()
		r := w.send(call("a", "count", replay(messages.ReplayAlways))) // on a connection that is just being closed
		require.Equal(t, "1", r.text())
		require.EqualValues(t, 2, r.ok().Generation)
	})
}

// A9, A10, A11
func TestServersThatCannotBeConnectedToSayWhy(t *testing.T) {
	for name, c := range map[string]struct {
		meddle refusal
		code   messages.Code
		detail string
	}{
		"garbage":     {answers(200, `{"nonsense":`), messages.CodeProtocol, "JSON-RPC"},
		"version":     {answers(200, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`), messages.CodeProtocol, "version"},
		"401":         {says(401, "who are you?"), messages.CodeUnauthorized, "401"},
		"403":         {says(403, "not you"), messages.CodeUnauthorized, "403"},
		"404":         {says(404, "404 page not found"), messages.CodeUnavailable, "endpoint"},
		"500":         {says(500, "oops"), messages.CodeUnavailable, "500"},
		"no response": {func(w http.ResponseWriter, _ string) { panic(http.ErrAbortHandler) }, messages.CodeUnavailable, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			overHTTP(t, supervisor.Config{}, func(w *world, e *endpoint) {
				e.set(func() {
					e.meddle = func(w http.ResponseWriter, r *http.Request, body string) bool {
						_, rest, _ := strings.Cut(body, `"id":`)
						id, _, _ := strings.Cut(rest, ",")
						c.meddle(w, id)
						return true
					}
				})
				f := w.send(call("a", "count")).fails(c.code)
				require.Contains(t, f.Detail, c.detail)
				require.False(t, f.MayHaveRun)
				require.Zero(t, count[*messages.SessionExpired](w))
			})
		})
	}
}

// A6: the others are unharmed.
func TestServerThatNeverAnswersIsUnavailableAtTheConnectTimeout(t *testing.T) {
	for _, what := range []string{"POST", "GET"} {
		t.Run(what, func(t *testing.T) {
			overHTTP(t, supervisor.Config{ConnectTimeout: 300 * time.Millisecond}, func(w *world, e *endpoint) {
				e.set(func() {
					e.meddle = func(_ http.ResponseWriter, r *http.Request, _ string) bool {
						if r.Method == what && r.Header.Get("X-Scope") == "" {
							<-r.Context().Done()
							return true
						}
						return false
					}
				})
				began := time.Now()
				require.Contains(t, w.send(call("a", "count")).fails(messages.CodeUnavailable).Detail, "timed out")
				require.Less(t, time.Since(began), 5*time.Second)
			})
		})
	}
}

// Guarantee 6
func TestRefusalsThatAreNotAboutTheSessionAreTheCallersOwn(t *testing.T) {
	for name, c := range map[string]struct {
		meddle refusal
		code   messages.Code
	}{
		"401": {says(401, "token expired"), messages.CodeUnauthorized},
		"403": {says(403, ""), messages.CodeUnauthorized},
		"429": {func(w http.ResponseWriter, _ string) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
		}, messages.CodeRateLimited},
		"500": {says(500, "session store is down"), messages.CodeServerError},
		"503": {says(503, ""), messages.CodeServerError},
		"400": {says(400, "bad header"), messages.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			overHTTP(t, supervisor.Config{}, func(w *world, e *endpoint) {
				waiting := w.send(call("a", "wait"))
				e.running(1)
				e.set(func() {
					e.meddle = func(w http.ResponseWriter, r *http.Request, body string) bool {
						if r.Method == http.MethodPost {
							c.meddle(w, "")
						}
						return r.Method == http.MethodPost
					}
				})
				f := w.send(call("a", "count")).fails(c.code)
				if name == "429" {
					require.Equal(t, 7*time.Second, f.RetryAfter)
				}
				e.set(func() { e.meddle = nil; close(e.gate) })
				require.Equal(t, "1", waiting.text(), "others in flight are not harmed")
				require.Equal(t, "2", w.send(call("a", "count")).text())
				require.Equal(t, 1, e.count("POST initialize"))
			})
		})
	}
}

// C8
func TestStandaloneStreamThatIsCutOrRefusedHarmsNothing(t *testing.T) {
	for name, answer := range map[string]refusal{
		"cut": func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(200)
		},
		"401": says(401, ""), "429": says(429, ""), "502": says(502, ""), "503": says(503, ""),
	} {
		t.Run(name, func(t *testing.T) {
			overHTTP(t, supervisor.Config{}, func(w *world, e *endpoint) {
				gets := make(chan struct{}, 100)
				e.set(func() {
					e.meddle = func(w http.ResponseWriter, r *http.Request, _ string) bool {
						if r.Method != http.MethodGet {
							return false
						}
						gets <- struct{}{}
						answer(w, "")
						return true
					}
				})
				for i := range 4 {
					require.Equal(t, fmt.Sprint(i+1), w.send(call("a", "count")).text())
					<-gets
				}
				require.Equal(t, 1, e.count("POST initialize"))
				require.Zero(t, count[*messages.SessionLost](w))
			})
		})
	}
}

// C9, C1, C2 on the wire
func TestBrokenConnectionsAreAttachedAgainWithTheStateKept(t *testing.T) {
	overHTTP(t, supervisor.Config{}, func(w *world, e *endpoint) {
		require.Equal(t, "1", w.send(call("a", "count")).text())
		w.send(&messages.ListTools{Header: messages.To("s", "a")}).reply()
		lost, safe := w.send(call("a", "wait")), w.send(call("a", "wait/ro"))
		e.running(3)
		e.stop() // all connections, with the listener
		f := lost.fails(messages.CodeLost)
		require.True(t, f.MayHaveRun)
		e.set(func() { close(e.gate) })
		e.reopen()
		r := safe.ok()
		require.True(t, r.Replayed)
		require.EqualValues(t, 1, r.Generation)
		require.EqualValues(t, 1, w.send(call("a", "count")).ok().Generation)
		require.Equal(t, 1, e.count("POST initialize"))
	})
}

// C10 on the wire
func TestCallsThatRunWhenTheSessionExpiresGetTheirOwnResult(t *testing.T) {
	overHTTP(t, supervisor.Config{}, func(w *world, e *endpoint) {
		running := w.calls(20, "a", "wait")
		e.running(20)
		e.forget(expiries["Go SDK"])
		refused := w.calls(44, "a", "count")
		require.Eventually(t, func() bool { return e.count("POST tools/call") > 20 }, 10*time.Second, time.Millisecond)
		e.set(func() { close(e.gate) })
		for _, p := range running {
			require.EqualValues(t, 1, p.ok().Generation)
		}
		for _, p := range refused {
			require.EqualValues(t, 2, p.ok().Generation)
		}
		require.Equal(t, 2, e.count("POST initialize"))
	})
}

// E5, E6 on the wire
func TestClosingEndsTheSessionOnTheServer(t *testing.T) {
	overHTTP(t, supervisor.Config{CloseTimeout: 500 * time.Millisecond}, func(w *world, e *endpoint) {
		for _, scope := range []string{"a", "b", "c"} {
			w.send(call(scope, "count")).ok()
		}
		require.Equal(t, 1, w.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Sessions)
		require.Equal(t, 1, e.count("DELETE"))
		e.set(func() {
			e.meddle = func(w http.ResponseWriter, r *http.Request, _ string) bool {
				if r.Method == http.MethodDelete {
					<-r.Context().Done()
				}
				return r.Method == http.MethodDelete
			}
		})
		left := w.send(&messages.CloseScope{Scope: "b"}).reply().(*messages.Closed).Left
		require.Len(t, left, 1)
		require.Contains(t, left[0].Reason, "ending the session")
		e.set(func() { e.meddle = nil })
		closed := w.send(&messages.CloseAll{}).reply().(*messages.Closed)
		require.Equal(t, 2, closed.Sessions)
		require.Empty(t, closed.Left)
		require.Equal(t, 4, e.count("DELETE"))
	})
}

// F1, guarantee 10
func TestCancelledCallIsCancelledOnTheServer(t *testing.T) {
	overHTTP(t, supervisor.Config{}, func(w *world, e *endpoint) {
		p := w.send(call("a", "wait"))
		e.running(1)
		w.cancel(p)
		p.fails(messages.CodeCancelled)
		require.Eventually(t, func() bool { return e.count("POST notifications/cancelled") == 1 }, 5*time.Second, time.Millisecond)
		require.Equal(t, "2", w.send(call("a", "count")).text())
	})
}

// F1: closing tells the server of the calls that it cuts.
func TestCallThatIsCutByAnImpatientCloseIsCancelledOnTheServer(t *testing.T) {
	overHTTP(t, supervisor.Config{DrainTimeout: 100 * time.Millisecond}, func(w *world, e *endpoint) {
		p := w.send(call("a", "wait"))
		e.running(1)
		require.Equal(t, 1, w.send(&messages.CloseAll{}).reply().(*messages.Closed).Sessions)
		require.True(t, p.fails(messages.CodeClosed).MayHaveRun)
		require.Equal(t, 1, e.count("POST notifications/cancelled"))
	})
}

// A12
func TestBadConfigurationsAreRefusedByField(t *testing.T) {
	for field, cfg := range map[string]supervisor.Config{
		"servers: is empty":                           {},
		`servers[1] "x": name: is that of servers[0]`: {Servers: []mcpbridge.Server{{Name: "x", Command: "a"}, {Name: "x", Command: "b"}}},
		`servers[0] "x": url: scheme "ftp"`:           {Servers: []mcpbridge.Server{{Name: "x", URL: "ftp://host"}}},
		`servers[0] "x": command: is empty`:           {Servers: []mcpbridge.Server{{Name: "x"}}},
		"maxSessions: is -2":                          {MaxSessions: -2, Servers: []mcpbridge.Server{{Name: "x", Command: "a"}}},
		"callTimeout: -1s is negative":                {CallTimeout: -time.Second, Servers: []mcpbridge.Server{{Name: "x", Command: "a"}}},
	} {
		_, err := supervisor.Start(nil, cfg)
		require.ErrorContains(t, err, field)
	}
}
