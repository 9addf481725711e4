package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// secretMark is a part of every token, by which tests find tokens in texts.
const secretMark = "hush-hush"

// tokenIssuer issues tokens for each scope, and checks that each is used by its own scope
// only.
type tokenIssuer struct {
	mu         sync.Mutex
	issued     map[string]int    // number of the current token, by scope
	refreshes  map[string]int    // that have succeeded, by scope
	owners     map[string]string // scope, by session id
	violations []string
	broken     bool // refreshes fail
	refused    int  // requests
}

func newTokenIssuer() *tokenIssuer {
	return &tokenIssuer{issued: map[string]int{}, refreshes: map[string]int{}, owners: map[string]string{}}
}

// Credentials returns the credentials of a scope.
func (issuer *tokenIssuer) Credentials(_ context.Context, key messages.Key) (mcpbridge.Credentials, error) {
	issuer.expire(key.Scope)
	return &scopeCredentials{issuer: issuer, scope: key.Scope, last: issuer.current(key.Scope)}, nil
}

// current returns the current token of a scope.
func (issuer *tokenIssuer) current(scope string) string {
	issuer.mu.Lock()
	defer issuer.mu.Unlock()
	return fmt.Sprintf("%s.%s.%d", secretMark, scope, issuer.issued[scope])
}

// expire replaces the current token of a scope, so that the old one is refused.
func (issuer *tokenIssuer) expire(scope string) {
	issuer.mu.Lock()
	defer issuer.mu.Unlock()
	issuer.issued[scope]++
}

// refreshed returns how often a scope has fetched its current token.
func (issuer *tokenIssuer) refreshed(scope string) int {
	issuer.mu.Lock()
	defer issuer.mu.Unlock()
	return issuer.refreshes[scope]
}

// failRefreshes makes all later refreshes fail, or succeed again.
func (issuer *tokenIssuer) failRefreshes(broken bool) {
	issuer.mu.Lock()
	defer issuer.mu.Unlock()
	issuer.broken = broken
}

// check is a fault that refuses requests without the current token of their scope.
func (issuer *tokenIssuer) check(w http.ResponseWriter, r *faults.Request, next http.Handler) {
	presented := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	scope, _, _ := strings.Cut(strings.TrimPrefix(presented, secretMark+"."), ".")
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var msg struct {
		Params struct{ Arguments struct{ Scope string } }
	}
	json.Unmarshal(body, &msg)
	issuer.mu.Lock()
	if named := msg.Params.Arguments.Scope; named != "" && named != scope {
		issuer.violations = append(issuer.violations, "a call of "+named+" has the token of "+scope)
	}
	if r.Session != "" && issuer.owners[r.Session] == "" {
		issuer.owners[r.Session] = scope
	}
	if owner := issuer.owners[r.Session]; owner != scope && r.Session != "" {
		issuer.violations = append(issuer.violations, "the session of "+owner+" was used by "+scope)
	}
	issuer.mu.Unlock()
	if presented != issuer.current(scope) {
		issuer.mu.Lock()
		issuer.refused++
		late := time.Duration(issuer.refused%20) * time.Millisecond
		issuer.mu.Unlock()
		time.Sleep(late) // synctest: most refusals come after the token is refreshed
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		http.Error(w, presented+" has expired", http.StatusUnauthorized)
		return
	}
	next.ServeHTTP(w, r.Request)
}

// scopeCredentials are the credentials of one session.
type scopeCredentials struct {
	issuer *tokenIssuer
	scope  string

	mu   sync.Mutex
	last string
}

// Headers returns the header with the token.
func (c *scopeCredentials) Headers(context.Context) (http.Header, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return http.Header{"Authorization": {"Bearer " + c.last}}, nil
}

// Refresh fetches the current token.
func (c *scopeCredentials) Refresh(context.Context, *http.Request, *http.Response) error {
	good := c.issuer.current(c.scope)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.issuer.mu.Lock()
	defer c.issuer.mu.Unlock()
	if c.issuer.broken {
		return errors.New(c.last + " is no good")
	}
	c.last = good
	c.issuer.refreshes[c.scope]++
	return nil
}

// overHTTPWithTokens runs a scenario on a server that requires the current token of each
// scope.
func overHTTPWithTokens(t *testing.T, cfg supervisor.Config, scenario func(h *harness, e *testServer, issuer *tokenIssuer)) {
	t.Helper()
	issuer := newTokenIssuer()
	cfg.Servers = []mcpbridge.Server{{Name: "s", Auth: issuer, InsecureCredentials: true}}
	overLocalHTTP(t, cfg, newHTTPTools, func(h *harness, e *testServer) {
		e.Inject("", issuer.check)
		scenario(h, e, issuer)
		issuer.mu.Lock()
		defer issuer.mu.Unlock()
		require.Empty(t, issuer.violations)
	})
}

// Guarantees 6 and 9
func TestTokenOfAScopeIsRefreshedWithinTheCallAndIsItsOwn(t *testing.T) {
	overHTTPWithTokens(t, supervisor.Config{}, func(h *harness, e *testServer, issuer *tokenIssuer) {
		scopes := []string{"alice", "bob"}
		for round := range 4 {
			var all []*sentCommand
			for _, scope := range scopes {
				all = append(all, h.calls(20, scope, "count")...)
			}
			for _, p := range all {
				require.EqualValues(t, 1, p.ok().Generation)
			}
			issuer.expire(scopes[round%2])
		}
		require.Equal(t, 2, h.dials.dialed())
		require.Equal(t, 2, issuer.refreshed("alice"), "once for all its calls")
		require.Equal(t, 1, issuer.refreshed("bob"))
		require.Equal(t, 2, e.Count("initialize"), "nothing but expiry and loss restarts a session")

		e.Expire(faults.Expiries()[0])
		issuer.expire("alice")
		for _, scope := range scopes {
			for _, p := range h.calls(20, scope, "count") {
				require.EqualValues(t, 2, p.ok().Generation)
			}
		}
		e.Stop() // the server keeps the sessions, which are resumed
		require.NoError(t, e.Start())
		for _, scope := range scopes {
			issuer.expire(scope)
			require.EqualValues(t, 2, h.send(call(scope, "count", replay(messages.ReplayAlways))).ok().Generation)
		}
		issuer.expire("alice")
		require.Equal(t, 2, h.send(&messages.CloseAll{}).reply().(*messages.Closed).Sessions)
		require.Zero(t, e.Sessions(), "they were ended with a token that is good")
	})
}

// A scope without a valid token does not affect other scopes, and works again once it has
// one.
func TestScopeWithoutATokenIsUnauthorized(t *testing.T) {
	overHTTPWithTokens(t, supervisor.Config{}, func(h *harness, _ *testServer, issuer *tokenIssuer) {
		require.Equal(t, "1", h.send(call("alice", "count")).text())
		require.Equal(t, "1", h.send(call("bob", "count")).text())
		issuer.failRefreshes(true)
		issuer.expire("alice")
		f := h.send(call("alice", "count")).fails(messages.CodeUnauthorized)
		require.False(t, f.MayHaveRun)
		require.Contains(t, f.Detail, "could not be refreshed")
		require.Equal(t, "2", h.send(call("bob", "count")).text())
		issuer.failRefreshes(false)
		require.Equal(t, "2", h.send(call("alice", "count")).text())
		require.Equal(t, 2, h.dials.dialed())
	})
}

// nobody are the credentials of a server that may ask for a login, where nobody has logged in.
type nobody struct{}

func (nobody) Credentials(context.Context, messages.Key) (mcpbridge.Credentials, error) {
	return nobody{}, nil
}

func (nobody) Headers(context.Context) (http.Header, error) { return nil, nil }

func (nobody) Refresh(context.Context, *http.Request, *http.Response) error {
	return &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: "nobody has logged in", Remedy: "run: login"}
}

// A server that forgets a session and says so with the status for a login, where there is none.
func TestExpiryThatLooksLikeAMissingLoginIsAnExpiry(t *testing.T) {
	for _, status := range []int{401, 403} {
		overLocalHTTP(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", Auth: nobody{}, InsecureCredentials: true}}}, newHTTPTools, func(h *harness, e *testServer) {
			require.Equal(h.t, "1", h.send(call("a", "count")).text())
			e.Expire(faults.Expiry{Name: "rust-sdk up to 0.16", Fault: faults.Refuse(status, "Unauthorized: Session not found")})
			require.EqualValues(h.t, 2, h.send(call("a", "count")).ok().Generation)
			require.Equal(h.t, 2, e.Count("initialize"))
		})
	}
}

// The other way round: a server that wants a login keeps its session, and the caller is told what to do.
func TestMissingLoginIsNoExpiry(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", Auth: nobody{}, InsecureCredentials: true}}}, newHTTPTools, func(h *harness, e *testServer) {
		require.Equal(h.t, "1", h.send(call("a", "count")).text())
		for _, kinds := range [][]string{{"tools/call"}, {""}} {
			heal := e.Inject(kinds[0], faults.Refuse(401, "Unauthorized: Session not found"))
			f := h.send(call("a", "count")).fails(messages.CodeUnauthorized)
			require.Equal(h.t, "401 Unauthorized, and the credentials could not be refreshed: nobody has logged in", f.Detail)
			require.Equal(h.t, "run: login", f.Remedy)
			require.False(h.t, f.MayHaveRun)
			heal()
		}
		require.EqualValues(h.t, 1, h.send(call("a", "count")).ok().Generation)
	})
}

// Guarantee 12 holds for current and expired tokens, and for the texts in which a server or
// a provider repeats them.
func TestNoTokenIsLogged(t *testing.T) {
	var log, protoactor bytes.Buffer
	out := zerolog.SyncWriter(&log)
	quietly := quietLog
	defer func() { quietLog = quietly }()
	quietLog = func(config *actor.Config) {
		config.LoggerFactory = func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.NewTextHandler(zerolog.SyncWriter(&protoactor), &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
	}
	var said []string
	var over *harness
	overHTTPWithTokens(t, supervisor.Config{Logger: zerolog.New(out).Level(zerolog.TraceLevel)}, func(h *harness, e *testServer, issuer *tokenIssuer) {
		over, h.strict = h, false // each failed dial is a fault, and is logged as one
		actor.SubscribeSupervision(h.system)
		ask := func(p *sentCommand) {
			if f, ok := p.reply().(*messages.Failure); ok {
				said = append(said, f.Error(), fmt.Sprintf("%+v %v %s", f, f.LogValue(), f.Detail))
			}
		}
		ask(h.send(call("alice", "count")))
		ask(h.send(call("bob", "count")))
		issuer.expire("alice")
		before := issuer.current("bob")
		ask(h.send(call("alice", "count")))
		for _, status := range []int{400, 401, 403, 404, 429, 500} {
			heal := e.Inject("", onPOST(func(w http.ResponseWriter, r *faults.Request, _ http.Handler) {
				w.WriteHeader(status)
				fmt.Fprintf(w, "not with %s, nor %s.alice.1", r.Header.Get("Authorization"), secretMark)
			}))
			ask(h.send(call("alice", "count", within(time.Second)))) // with 404 the server counts as down, and the call waits
			heal()
			ask(h.send(call("alice", "count")))
		}
		require.Equal(t, before, issuer.current("bob"))
		issuer.failRefreshes(true)
		issuer.expire("alice")
		issuer.expire("bob")
		ask(h.send(call("alice", "count")))
		e.Expire(faults.Expiries()[0])
		ask(h.send(call("bob", "count")))
		ask(h.send(call("carol", "count")))
		snap, err := json.Marshal(h.inspect())
		require.NoError(t, err)
		said = append(said, string(snap))
		for _, left := range h.send(&messages.CloseAll{}).reply().(*messages.Closed).Left {
			said = append(said, left.Reason)
		}
		issuer.failRefreshes(false)
	})
	for _, event := range over.events {
		said = append(said, fmt.Sprintf("%+v", event))
	}
	for _, f := range over.faults {
		said = append(said, fmt.Sprint(f.Reason))
	}
	for _, text := range append(said, log.String(), protoactor.String()) {
		require.NotContains(t, text, secretMark)
	}
	require.Contains(t, log.String(), "session opened")
	require.Contains(t, strings.Join(said, "\n"), "…")
}
