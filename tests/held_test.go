package tests

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// overBusyServer runs a scenario in fake time on a server that answers 429 once to a request of a kind, and says in
// Retry-After when it wants the next one. It is reached as "s", "twin", "other" with another path, and "owned" with credentials of
// [owners], and as what servers returns for its address.
func overBusyServer(t *testing.T, kind, retryAfter string, servers func(at mcpbridge.Server) mcpbridge.Server, scenario func(h *harness, e *testServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tools := newHTTPTools()
		e := &testServer{faults.Local(tools.Handler), tools, t}
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		defer e.close()
		at := e.config()
		at.InsecureCredentials = true
		twin, other, owned := at, at, at
		twin.Name, other.Name, owned.Name = "twin", "other", "owned"
		other.URL += "/other"
		owned.Auth = owners(new(atomic.Int64))
		cfg := supervisor.Config{Servers: []mcpbridge.Server{at, twin, other, owned}, Store: new(resume.Memory)}
		if servers != nil {
			cfg.Servers = append(cfg.Servers, servers(at))
		}
		h := start(t, cfg)
		defer h.stop()
		h.send(call("a1", "count")).ok()
		e.Inject(kind, faults.Times(1, func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
			w.Header().Set("Retry-After", retryAfter)
			faults.Refuse(429, "slow down")(w, r, next)
		}))
		scenario(h, e)
		h.stop()
		e.close()
		h.verify()
	})
}

// owners are credentials of the owner of a scope. Each request has a token of its own.
func owners(n *atomic.Int64) mcpbridge.Authenticator {
	return mcpbridge.AuthenticatorFunc(func(_ context.Context, key messages.Key) (mcpbridge.Credentials, error) {
		return &ownedToken{key.Scope[:1], n}, nil
	})
}

type ownedToken struct {
	owner string
	n     *atomic.Int64
}

func (o *ownedToken) Identity() string { return o.owner }

func (o *ownedToken) Headers(context.Context) (http.Header, error) {
	return http.Header{"Authorization": {fmt.Sprint("Bearer ", o.owner, o.n.Add(1))}}, nil
}

func (o *ownedToken) Refresh(context.Context, *http.Request, *http.Response) error { return nil }

// held requires that a call fails at once, and that the server gets no call, in the time that is left.
func (h *harness) held(e *testServer, left time.Duration, ops ...messages.Command) {
	h.t.Helper()
	kinds := []string{"tools/call", "prompts/get", "resources/read", "completion/complete"}
	count := func() (n int) {
		for _, kind := range kinds {
			n += e.Count(kind)
		}
		return n
	}
	before := count()
	for _, op := range ops {
		began := time.Now()
		f := h.send(op).fails(messages.CodeRateLimited)
		require.Zero(h.t, time.Since(began))
		require.Equal(h.t, left, f.RetryAfter)
		require.False(h.t, f.MayHaveRun)
		require.Contains(h.t, f.Detail, "not sent: the server has answered 429, and wants no such calls until "+began.Add(left).UTC().Format(time.RFC3339))
	}
	require.Equal(h.t, before, count())
}

// Guarantee 9
func TestCallsWithTheSameCredentialsAreHeldUntilTheServerWantsThem(t *testing.T) {
	overBusyServer(t, "tools/call", "60", nil, func(h *harness, e *testServer) {
		require.Equal(t, time.Minute, h.send(call("a1", "count")).fails(messages.CodeRateLimited).RetryAfter)
		time.Sleep(10 * time.Second)
		h.held(e, 50*time.Second,
			call("a1", "count"), call("a2", "count"), call("new", "count"), call("a1", "count", on("twin")),
			&messages.GetPrompt{Header: messages.To("s", "a1"), Params: &mcp.GetPromptParams{Name: "p"}},
			&messages.ReadResource{Header: messages.To("s", "a2"), Params: &mcp.ReadResourceParams{URI: "file:///x"}},
			&messages.Complete{Header: messages.To("s", "a2"), Params: &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "p"}}},
		)

		// Others, and what opens and keeps a session, are not held.
		h.send(call("a1", "count", on("other"))).ok()
		h.send(call("a1", "count", on("owned"))).ok()
		require.IsType(t, &messages.SessionInfo{}, h.send(&messages.Open{Header: messages.To("s", "newer")}).reply())
		require.IsType(t, &messages.Ack{}, h.send(&messages.Ping{Header: messages.To("s", "a1")}).reply())
		require.IsType(t, &messages.ToolList{}, h.send(&messages.ListTools{Header: messages.To("s", "a1")}).reply())

		time.Sleep(50*time.Second - 1)
		h.held(e, time.Nanosecond, call("a2", "count"))
		time.Sleep(time.Nanosecond)
		for _, scope := range []string{"a1", "a2", "new", "newer"} {
			require.EqualValues(t, 1, h.send(call(scope, "count")).ok().Generation)
		}
		h.send(call("a1", "count", on("twin"))).ok()
		require.Zero(t, countEvents[*messages.SessionRestarting](h))
		require.Zero(t, countEvents[*messages.SessionLost](h))
		require.EqualValues(t, 8, h.serverOf("s").Load.Failed[messages.CodeRateLimited])
	})
}

func TestOwnerOfCredentialsIsHeldWhateverItsTokens(t *testing.T) {
	overBusyServer(t, "tools/call", "60", nil, func(h *harness, e *testServer) {
		h.send(call("a1", "count", on("owned"))).fails(messages.CodeRateLimited)
		h.held(e, time.Minute, call("a1", "count", on("owned")), call("a2", "count", on("owned")))
		h.send(call("b1", "count", on("owned"))).ok()
		h.send(call("a1", "count")).ok()
	})
}

func TestRetryAfterIsBelievedForTenMinutes(t *testing.T) {
	for name, retryAfter := range map[string]string{
		"24 h": "86400", "more than is believed": "99999999999999999999", "a date": "Sun, 02 Jan 2000 00:00:00 GMT",
	} {
		t.Run(name, func(t *testing.T) {
			overBusyServer(t, "tools/call", retryAfter, nil, func(h *harness, e *testServer) {
				h.send(call("a1", "count")).fails(messages.CodeRateLimited)
				if name == "more than is believed" { // it is no number
					h.send(call("a1", "count")).ok()
					return
				}
				h.held(e, 10*time.Minute, call("a2", "count"))
				time.Sleep(10 * time.Minute)
				h.send(call("a2", "count")).ok()
			})
		})
	}
}

func TestForgetEndsAHold(t *testing.T) {
	overBusyServer(t, "tools/call", "60", nil, func(h *harness, e *testServer) {
		h.send(call("a1", "count")).fails(messages.CodeRateLimited)
		h.send(&messages.Forget{Server: "other"}).done()
		h.held(e, time.Minute, call("a2", "count"))
		h.send(&messages.Forget{Server: "s"}).done()
		h.send(call("a2", "count")).ok()
	})
}

// A limit that the server has told to another request than a call is one for calls, too, but not a limit of sessions.
func TestRefusalOfAnyRequestHoldsCalls(t *testing.T) {
	overBusyServer(t, "initialize", "5", nil, func(h *harness, _ *testServer) {
		h.send(&messages.Open{Header: messages.To("s", "a2")}).fails(messages.CodeRateLimited)
		h.send(call("a1", "count")).ok()
	})
	for _, kind := range []string{"tools/list", "ping"} {
		t.Run(kind, func(t *testing.T) {
			overBusyServer(t, kind, "5", nil, func(h *harness, e *testServer) {
				h.send(map[string]messages.Command{
					"tools/list": &messages.ListTools{Header: messages.To("s", "a2")}, "ping": &messages.Ping{Header: messages.To("s", "a2")},
				}[kind]).fails(messages.CodeRateLimited)
				h.held(e, 5*time.Second, call("a1", "count"))
				time.Sleep(5 * time.Second)
				h.send(call("a1", "count")).ok()
				h.send(call("a2", "count")).ok()
			})
		})
	}
}

func TestClientsOfAGatewayShareAHold(t *testing.T) {
	prepared := func(at mcpbridge.Server) mcpbridge.Server {
		at.Name = "prepared"
		return gateway.Prepare(at)[0]
	}
	overBusyServer(t, "tools/call", "60", prepared, func(h *harness, e *testServer) {
		owner := spawn(h, func(actor.Context) {})
		for _, name := range []string{"ann", "bob"} {
			h.send(&messages.Bind{Scope: name, Owner: owner, Introduction: introduced("2025-06-18", name)}).reply()
			h.send(&messages.Open{Header: messages.To("prepared", name)}).reply()
		}
		h.send(call("ann", "count", on("prepared"))).fails(messages.CodeRateLimited)
		h.held(e, time.Minute, call("bob", "count", on("prepared")))
	})
}

func TestTokensOfKeysAreHeldApart(t *testing.T) {
	withTokens := func(at mcpbridge.Server) mcpbridge.Server {
		at.Name = "keyed"
		return keyed(at, func(s *mcpbridge.Server, scope string) error {
			s.Headers = map[string]string{"Authorization": "Bearer token-of-" + scope[:1]}
			return nil
		})
	}
	overBusyServer(t, "tools/call", "60", withTokens, func(h *harness, e *testServer) {
		h.send(call("a1", "count", on("keyed"))).fails(messages.CodeRateLimited)
		h.held(e, time.Minute, call("a2", "count", on("keyed")))
		h.send(call("b1", "count", on("keyed"))).ok()
	})
}

// A held call has not run: whoever asks again for a durable one gets its result.
func TestDurableCallThatWasHeldRunsLater(t *testing.T) {
	overBusyServer(t, "tools/call", "60", nil, func(h *harness, e *testServer) {
		h.send(call("a1", "count")).fails(messages.CodeRateLimited)
		h.held(e, time.Minute, call("a2", "count", durable("order-7")))
		time.Sleep(time.Minute)
		require.Equal(t, "1", h.send(call("a2", "count", durable("order-7"))).text())
		require.Equal(t, "1", h.send(call("a2", "count", durable("order-7"))).text())
		require.Equal(t, 1, e.Executions()["order-7"])
	})
}

// A session whose set-up calls are held opens when they may run again. Until then its server is asked for no other session.
func TestSessionIsSetUpAfterTheHold(t *testing.T) {
	withSetUp := func(at mcpbridge.Server) mcpbridge.Server {
		at.Name, at.Setup = "prepared", []*mcp.CallToolParams{{Name: "echo", Arguments: map[string]any{"call": "setup"}}}
		return at
	}
	overBusyServer(t, "tools/call", "20", withSetUp, func(h *harness, e *testServer) {
		h.send(call("a1", "count")).fails(messages.CodeRateLimited)
		before := e.Count("initialize")
		require.Equal(t, 20*time.Second, h.send(call("new", "count", on("prepared"))).fails(messages.CodeRateLimited).RetryAfter)
		time.Sleep(time.Second)
		waiting := h.send(call("new", "count", on("prepared")))
		waiting.ok()
		require.Equal(t, 19*time.Second, waiting.took())
		require.Equal(t, before+2, e.Count("initialize"))
		require.Equal(t, 1, e.Executions()["setup"])
	})
}

func TestCallsOverHTTPAndSSEAreHeld(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newSSETools, func(h *harness, e *testServer) {
		h.send(call("a", "count")).ok()
		e.Inject("tools/call", faults.Times(1, faults.RefuseFor(60, 429, "slow down")))
		h.send(call("a", "count")).fails(messages.CodeRateLimited)
		h.held(e, time.Minute, call("a", "count"), call("b", "count"))
		time.Sleep(time.Minute)
		h.send(call("a", "count")).ok()
		h.send(call("b", "count")).ok()
	})
}
