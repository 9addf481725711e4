package tests

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/internal/refusals"
)

var refusalSeed = flag.Uint64("refusals.seed", 1, "seed of the first random refusal")

// randomRefusals is the number of random refusals that are tried, both with a session that
// the server knows and with one that it does not know.
const randomRefusals = 60

// randomRefusal returns a refusal with a random status other than 404, 410 and 429, and
// with a random body that is not a result.
func randomRefusal(seed uint64) refusals.Refusal {
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	status := 0
	for status == 0 || status == 404 || status == 410 || status == 429 {
		status = []int{200, 400 + r.IntN(52), 400 + r.IntN(52), 500 + r.IntN(30)}[r.IntN(4)]
	}
	message := pick("Session not found", "no", "", "Your session has expired", "Sitzung unbekannt", "会话已过期", "Not connected", "internal error")
	code := []int{-32600, -32601, -32602, -32603, -32000, -32001, -32005, -32700, 0, 1, 404, r.IntN(1<<17) - 1<<16}[r.IntN(12)]
	id := pick(`,"id":{id}`, `,"id":{id}`, `,"id":null`, `,"id":""`, `,"id":"server-error"`, ``)
	rpc := fmt.Sprintf(`{"jsonrpc":"2.0","error":{"code":%d,"message":%q}%s}`, code, message, id)
	answer := refusals.Answer{Status: status, Header: map[string]string{}, Body: rpc}
	if status >= 300 {
		answer.Body = pick(rpc, rpc, rpc[:len(rpc)/2], message, "<html>"+message+"</html>", `{"error":"`+message+`"}`, "")
	}
	if kind := pick("application/json", "application/json; charset=utf-8", "text/html", "text/plain", "application/problem+json", ""); status >= 300 && kind != "" {
		answer.Header["Content-Type"] = kind
	} else if status < 300 {
		answer.Header["Content-Type"] = "application/json"
	}
	if status < 300 && r.IntN(2) == 0 {
		answer.Header["Content-Type"] = "text/event-stream"
		answer.Body = "event: message\ndata: " + rpc + "\n\n"
	}
	if status == 401 || status == 403 {
		answer.Header["WWW-Authenticate"] = pick(`Bearer error="invalid_token"`, `Bearer error="insufficient_scope", scope="x"`, "Basic")
	}
	return refusals.Refusal{Name: fmt.Sprint("seed ", seed), Transport: "http", Verdict: refusals.Expired, Invented: true, Answer: answer}
}

// H-B1 to H-B4: whatever the refusal says, a session is rebuilt only if the server does not
// know it.
func TestFateOfASessionDependsOnTheServersKnowledgeOnly(t *testing.T) {
	t.Parallel()
	for seed := *refusalSeed; seed < *refusalSeed+randomRefusals; seed++ {
		form := randomRefusal(seed)
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, known %v", form.Name, known), func(t *testing.T) {
				t.Parallel()
				overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
					h.t.Logf("%d %q %q", form.Status, form.Header["Content-Type"], form.Body)
					require.Equal(h.t, "1", h.send(call("a", "count")).text())
					heal, generation := func() {}, 2
					if known {
						heal, generation = e.Inject("tools/call", form.Respond), 1
					} else {
						e.Expire(form.Expiry())
					}
					for range 4 {
						for _, p := range h.calls(5, "a", "count") {
							if f, is := p.reply().(*messages.Failure); is && known && form.Status >= 400 {
								require.NotContains(h.t, []messages.Code{messages.CodeExpired, messages.CodeLost}, f.Code)
							}
						}
						time.Sleep(20 * time.Second)
					}
					heal()
					require.EqualValues(h.t, generation, h.send(call("a", "count")).ok().Generation)
					require.LessOrEqual(h.t, e.Count("initialize"), 5)
					checks := 8
					if form.Status >= 502 && form.Status <= 504 { // as from a front: each one is followed by a check
						checks = 24
					}
					require.LessOrEqual(h.t, e.Count("ping"), checks)
					require.LessOrEqual(h.t, e.Count("tools/list"), checks+2)
					require.Equal(h.t, 1, e.Sessions())
				})
			})
		}
	}
}
