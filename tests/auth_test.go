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

// hush is in every token.
const hush = "hush-hush"

// tokens gives each scope its tokens, and checks that nobody else uses them.
type tokens struct {
	mu     sync.Mutex
	issued map[string]int    // by scope: the last one is good
	owners map[string]string // of sessions
	wrong  []string
	broken bool // there are no more
}

func newTokens() *tokens { return &tokens{issued: map[string]int{}, owners: map[string]string{}} }

// Credentials returns what a scope has.
func (k *tokens) Credentials(_ context.Context, key messages.Key) (mcpbridge.Credentials, error) {
	k.expire(key.Scope)
	return &wallet{all: k, scope: key.Scope, last: k.good(key.Scope)}, nil
}

// good returns the token of a scope that is good now.
func (k *tokens) good(scope string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fmt.Sprintf("%s.%s.%d", hush, scope, k.issued[scope])
}

// expire ends the token that a scope has.
func (k *tokens) expire(scope string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.issued[scope]++
}

// refreshed returns how many tokens a scope was given.
func (k *tokens) refreshed(scope string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.issued[scope]
}

// breakDown makes all attempts to refresh fail, or work again.
func (k *tokens) breakDown(broken bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.broken = broken
}

// check is a fault for all requests but those with a good token.
func (k *tokens) check(w http.ResponseWriter, r *faults.Request, next http.Handler) {
	presented := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	scope, _, _ := strings.Cut(strings.TrimPrefix(presented, hush+"."), ".")
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var msg struct {
		Params struct{ Arguments struct{ Scope string } }
	}
	json.Unmarshal(body, &msg)
	k.mu.Lock()
	if named := msg.Params.Arguments.Scope; named != "" && named != scope {
		k.wrong = append(k.wrong, "a call of "+named+" has the token of "+scope)
	}
	if r.Session != "" && k.owners[r.Session] == "" {
		k.owners[r.Session] = scope
	}
	if owner := k.owners[r.Session]; owner != scope && r.Session != "" {
		k.wrong = append(k.wrong, "the session of "+owner+" was used by "+scope)
	}
	k.mu.Unlock()
	if presented != k.good(scope) {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		http.Error(w, presented+" has expired", http.StatusUnauthorized)
		return
	}
	next.ServeHTTP(w, r.Request)
}

// wallet is the credentials of one session.
type wallet struct {
	all   *tokens
	scope string

	mu   sync.Mutex
	last string
}

// Headers returns the token that it has.
func (k *wallet) Headers(context.Context) (http.Header, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return http.Header{"Authorization": {"Bearer " + k.last}}, nil
}

// Refresh gets the one that is good.
func (k *wallet) Refresh(context.Context, *http.Request, *http.Response) error {
	good := k.all.good(k.scope)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	if k.all.broken {
		return errors.New(k.last + " is no good")
	}
	k.last = good
	return nil
}

// authorized runs a scenario on an endpoint that wants the tokens of each scope.
func authorized(t *testing.T, cfg supervisor.Config, scenario func(w *world, e *endpoint, k *tokens)) {
	t.Helper()
	k := newTokens()
	cfg.Servers = []mcpbridge.Server{{Name: "s", Auth: k}}
	overHTTP(t, cfg, func(w *world, e *endpoint) {
		e.Inject("", k.check)
		scenario(w, e, k)
		k.mu.Lock()
		defer k.mu.Unlock()
		require.Empty(t, k.wrong)
	})
}

// Guarantees 6 and 9
func TestTokenOfAScopeIsRefreshedWithinTheCallAndIsItsOwn(t *testing.T) {
	authorized(t, supervisor.Config{}, func(w *world, e *endpoint, k *tokens) {
		scopes := []string{"alice", "bob"}
		for round := range 4 {
			var all []*pending
			for _, scope := range scopes {
				all = append(all, w.calls(20, scope, "count")...)
			}
			for _, p := range all {
				require.EqualValues(t, 1, p.ok().Generation)
			}
			k.expire(scopes[round%2])
		}
		require.Equal(t, 2, w.watch.dialed())
		require.Equal(t, 3, k.refreshed("alice"))
		require.Equal(t, 2, e.Count("initialize"), "nothing but expiry and loss restarts a session")

		e.Expire(faults.Expiries()[0])
		k.expire("alice")
		for _, scope := range scopes {
			for _, p := range w.calls(20, scope, "count") {
				require.EqualValues(t, 2, p.ok().Generation)
			}
		}
		e.Stop() // the sessions stay, and are attached to
		require.NoError(t, e.Start())
		for _, scope := range scopes {
			k.expire(scope)
			require.EqualValues(t, 2, w.send(call(scope, "count", replay(messages.ReplayAlways))).ok().Generation)
		}
		k.expire("alice")
		require.Equal(t, 2, w.send(&messages.CloseAll{}).reply().(*messages.Closed).Sessions)
		require.Zero(t, e.Sessions(), "they were ended with a token that is good")
	})
}

// A scope that has no token harms no other, and goes on when it has one.
func TestScopeWithoutATokenIsUnauthorized(t *testing.T) {
	authorized(t, supervisor.Config{}, func(w *world, _ *endpoint, k *tokens) {
		require.Equal(t, "1", w.send(call("alice", "count")).text())
		require.Equal(t, "1", w.send(call("bob", "count")).text())
		k.breakDown(true)
		k.expire("alice")
		f := w.send(call("alice", "count")).fails(messages.CodeUnauthorized)
		require.False(t, f.MayHaveRun)
		require.Contains(t, f.Detail, "could not be refreshed")
		require.Equal(t, "2", w.send(call("bob", "count")).text())
		k.breakDown(false)
		require.Equal(t, "2", w.send(call("alice", "count")).text())
		require.Equal(t, 2, w.watch.dialed())
	})
}

// Guarantee 12: the tokens that are good, those that were, and what a server and a
// provider say of them.
func TestNoTokenIsLogged(t *testing.T) {
	var log, protoactor bytes.Buffer
	out := zerolog.SyncWriter(&log)
	quietly := quiet
	defer func() { quiet = quietly }()
	quiet = func(config *actor.Config) {
		config.LoggerFactory = func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.NewTextHandler(zerolog.SyncWriter(&protoactor), &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
	}
	var said []string
	var over *world
	authorized(t, supervisor.Config{Logger: zerolog.New(out).Level(zerolog.TraceLevel)}, func(w *world, e *endpoint, k *tokens) {
		over, w.strict = w, false // each attempt to dial that fails is a fault, and logged as one
		actor.SubscribeSupervision(w.system)
		ask := func(p *pending) {
			if f, ok := p.reply().(*messages.Failure); ok {
				said = append(said, f.Error(), fmt.Sprintf("%+v %v %s", f, f.LogValue(), f.Detail))
			}
		}
		ask(w.send(call("alice", "count")))
		ask(w.send(call("bob", "count")))
		k.expire("alice")
		before := k.good("bob")
		ask(w.send(call("alice", "count")))
		for _, status := range []int{400, 401, 403, 404, 429, 500} {
			heal := e.Inject("", posts(func(w http.ResponseWriter, r *faults.Request, _ http.Handler) {
				w.WriteHeader(status)
				fmt.Fprintf(w, "not with %s, nor %s.alice.1", r.Header.Get("Authorization"), hush)
			}))
			ask(w.send(call("alice", "count", within(time.Second)))) // it waits for a server whose proxy says 404
			heal()
			ask(w.send(call("alice", "count")))
		}
		require.Equal(t, before, k.good("bob"))
		k.breakDown(true)
		k.expire("alice")
		k.expire("bob")
		ask(w.send(call("alice", "count")))
		e.Expire(faults.Expiries()[0])
		ask(w.send(call("bob", "count")))
		ask(w.send(call("carol", "count")))
		snap, err := json.Marshal(w.inspect())
		require.NoError(t, err)
		said = append(said, string(snap))
		for _, left := range w.send(&messages.CloseAll{}).reply().(*messages.Closed).Left {
			said = append(said, left.Reason)
		}
		k.breakDown(false)
	})
	for _, event := range over.events {
		said = append(said, fmt.Sprintf("%+v", event))
	}
	for _, f := range over.faults {
		said = append(said, fmt.Sprint(f.Reason))
	}
	for _, text := range append(said, log.String(), protoactor.String()) {
		require.NotContains(t, text, hush)
	}
	require.Contains(t, log.String(), "session opened")
	require.Contains(t, strings.Join(said, "\n"), "…")
}
