package tests

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/tests/internal/refusals"
)

// eachRefusal runs a scenario for each refusal of a transport that has one of the verdicts.
func eachRefusal(t *testing.T, transport string, scenario func(t *testing.T, form refusals.Refusal), verdicts ...refusals.Verdict) {
	t.Helper()
	for _, form := range refusals.All() {
		for _, verdict := range verdicts {
			if form.Transport == transport && form.Verdict == verdict {
				t.Run(form.Name, func(t *testing.T) { scenario(t, form) })
			}
		}
	}
}

// isError reports whether a refusal says that the request failed: by its status, or as a
// JSON-RPC error.
func isError(form refusals.Refusal) bool {
	return form.Status >= 300 || strings.Contains(form.Body, `"jsonrpc"`) && strings.Contains(form.Body, `"error"`)
}

// H-B1, H-B2, H-B3: in whatever form a server refuses an unknown session, one rebuild
// serves all callers, and a call that may have run is not run again.
func TestSessionThatTheServerForgotIsRebuiltInEveryForm(t *testing.T) {
	t.Parallel()
	scenario := func(t *testing.T, form refusals.Refusal) {
		t.Parallel()
		tools := newHTTPTools
		if form.Transport == "sse" {
			tools = newSSETools
		}
		overLocalHTTP(t, supervisor.Config{}, tools, func(h *harness, e *testServer) {
			require.Equal(h.t, "1", h.send(call("a", "count")).text())
			require.Equal(h.t, 1, e.Expire(form.Expiry()))
			unsafe, safe := h.send(call("a", "count")), h.calls(19, "a", "count/ro")
			switch {
			case form.Status >= 500, form.Status == 302: // the call may have run before this refusal, unless it was not sent
				if f, failed := unsafe.reply().(*messages.Failure); failed {
					require.Contains(h.t, []messages.Code{messages.CodeLost, messages.CodeServerError}, f.Code)
					require.True(h.t, f.MayHaveRun)
				}
			case !isError(form):
				unsafe.reply() // such a body does not say whether the call ran
			default:
				require.EqualValues(h.t, 2, unsafe.ok().Generation)
			}
			for _, p := range safe {
				require.EqualValues(h.t, 2, p.ok().Generation)
			}
			require.Equal(h.t, 2, e.Count("initialize"), "one rebuild for all")
			require.Equal(h.t, 1, e.Sessions())
			if form.Transport == "http" {
				requireEvents[*messages.SessionExpired](h, 1)
				if form.Verdict == refusals.Expired {
					synctest.Wait() // the DELETE is sent in the background
					require.Equal(h.t, 1, e.CountEach("DELETE")[0], "the old session is ended")
				}
				require.LessOrEqual(h.t, e.CountEach("ping")[0], map[bool]int{true: 10, false: 2}[form.Status == 503])
			}
		})
	}
	eachRefusal(t, "http", scenario, refusals.Certain, refusals.Expired)
	eachRefusal(t, "sse", scenario, refusals.Certain, refusals.Expired)
}

// H-B11: the same over stdio. The checks show that the session is dead, and the process
// is restarted.
func TestSessionThatRefusesEverythingOverAPipeIsRestarted(t *testing.T) {
	eachRefusal(t, "stdio", func(t *testing.T, form refusals.Refusal) {
		if strings.Contains(form.Body, "-32602") {
			return // so does a server that has no such list: see the next test
		}
		overStdio(t, "", supervisor.Config{}, func(h *harness) {
			first := pid(t, h.send(call("a", "pid")))
			var said struct{ Error json.RawMessage }
			require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(form.Body, "{id}", "1")), &said))
			h.send(call("a", "lose", with("refusal", string(said.Error)))).ok()
			for _, p := range h.calls(20, "a", "count/ro") {
				require.EqualValues(t, 2, p.ok().Generation)
			}
			require.NotEqual(t, first, pid(t, h.send(call("a", "pid"))))
			requireExit(t, first)
		})
	}, refusals.Certain, refusals.Expired)
}

// C11: over stdio there is no second session to compare with. A process that answers everything with the
// error for wrong parameters is not replaced: its state would be lost by one wrong call.
func TestProcessThatRefusesOurListsKeepsItsState(t *testing.T) {
	for _, code := range []string{"-32601", "-32602"} {
		overStdio(t, "", supervisor.Config{}, func(h *harness) {
			h.send(call("a", "lose", with("refusal", `{"code":`+code+`,"message":"no"}`))).ok()
			for range 3 {
				require.True(t, h.send(call("a", "count/ro")).fails(messages.CodeInvalid).MayHaveRun)
			}
			require.Zero(t, countEvents[*messages.SessionLost](h))
		})
	}
}

// looksLikeFront reports whether a refusal may come from something in front of the server.
func looksLikeFront(form refusals.Refusal) bool { return form.Status >= 502 && form.Status <= 504 }

// requireOwnError checks that a call on a live session got the refusal as its own error.
func requireOwnError(p *sentCommand, form refusals.Refusal) {
	t := p.h.t
	t.Helper()
	r, is := p.reply().(*messages.ToolResult)
	if is {
		require.True(t, r.Result.IsError)
		require.EqualValues(t, 1, r.Generation)
		require.False(t, r.Replayed)
		return
	}
	f := p.reply().(*messages.Failure)
	if !isError(form) {
		return // the body is no answer, and the call may have run
	}
	require.NotContains(t, []messages.Code{messages.CodeExpired, messages.CodeLost, messages.CodeUnavailable}, f.Code, "%v", f)
	require.False(t, f.Replayed)
	if form.Status == 401 || form.Status == 403 {
		require.Equal(t, messages.CodeUnauthorized, f.Code)
	}
	if form.Status == 429 {
		require.Equal(t, messages.CodeRateLimited, f.Code)
	}
}

// H-B4: refusals on a live session, which concern logins, tools or resources, do not end
// the session, whatever their words.
func TestSessionThatLivesSurvivesEveryRefusal(t *testing.T) {
	t.Parallel()
	scenario := func(t *testing.T, form refusals.Refusal) {
		t.Parallel()
		overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
			require.Equal(h.t, "1", h.send(call("a", "count")).text())
			fault := faults.Fault(form.Respond)
			if form.Ran {
				fault = afterwards(form.Respond)
			}
			heal := e.Inject("tools/call", fault)
			for range 3 {
				for _, p := range h.calls(20, "a", "count") {
					requireOwnError(p, form)
				}
				time.Sleep(time.Second)
			}
			heal()
			if form.Status == 429 {
				time.Sleep(time.Minute) // what it says in Retry-After
			}
			require.EqualValues(h.t, 1, h.send(call("a", "count")).ok().Generation)
			require.LessOrEqual(h.t, e.Count("initialize"), 2)
			checks := 3
			if looksLikeFront(form) { // each one may be followed by checks
				checks = 3 * 20
			}
			require.LessOrEqual(h.t, e.Count("ping"), checks)
			require.LessOrEqual(h.t, e.Count("tools/list"), checks+1)
			require.Equal(h.t, 1, e.Sessions())
			require.Zero(h.t, countEvents[*messages.SessionRestarting](h))
			require.Zero(h.t, countEvents[*messages.SessionExpired](h))
		})
	}
	eachRefusal(t, "http", scenario, refusals.Alive, refusals.Expired)
}

// H-B4: a refusal that all sessions get does not end a session. The number of controls is
// bounded, however many calls are refused.
func TestRefusalThatEverySessionGetsChangesNoSession(t *testing.T) {
	t.Parallel()
	scenario := func(t *testing.T, form refusals.Refusal) {
		t.Parallel()
		overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
			require.Equal(h.t, "1", h.send(call("a", "count")).text())
			heal := e.Inject("", onlyIf(isOneOf("tools/call", "tools/list", "resources/list", "prompts/list", "ping"), form.Respond))
			for range 60 {
				for _, p := range h.calls(3, "a", "count") {
					requireOwnError(p, form)
				}
				time.Sleep(5 * time.Second)
			}
			require.LessOrEqual(h.t, e.Count("initialize"), 1+300/30+5)
			require.Equal(h.t, 1, e.Sessions())
			heal()
			time.Sleep(time.Minute)
			r := h.send(call("a", "count"))
			require.Equal(h.t, "2", r.text())
			require.EqualValues(h.t, 1, r.ok().Generation)
			require.Zero(h.t, countEvents[*messages.SessionExpired](h))
		})
	}
	eachRefusal(t, "http", func(t *testing.T, form refusals.Refusal) {
		if !looksLikeFront(form) { // for those the calls wait
			scenario(t, form)
		}
	}, refusals.Expired)
	for _, form := range refusals.All() {
		if form.Verdict == refusals.Alive && form.Status >= 400 && !form.Ran && !looksLikeFront(form) {
			t.Run(form.Name, func(t *testing.T) { scenario(t, form) })
		}
	}
}

// The status of a refusal is enough: a body that does not end is read for a bounded time.
func TestRefusalWhoseBodyDoesNotEndIsReadForAMomentOnly(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newHTTPTools, func(h *harness, e *testServer) {
		require.Equal(h.t, "1", h.send(call("a", "count")).text())
		heal := e.Inject("tools/call", func(out http.ResponseWriter, r *faults.Request, _ http.Handler) {
			out.WriteHeader(http.StatusBadRequest)
			http.NewResponseController(out).Flush()
			<-r.Context().Done()
		})
		p := h.send(call("a", "count"))
		p.fails(messages.CodeInvalid)
		require.Less(h.t, p.answeredAt.Sub(p.sent), 5*time.Second)
		heal()
		require.Equal(h.t, "2", h.send(call("a", "count")).text())
	})
}
