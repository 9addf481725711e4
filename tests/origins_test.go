package tests

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// redirectTo is a fault that redirects all requests but those for the path.
func redirectTo(status int, path, to string) faults.Fault {
	return func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
		if r.URL.Path == path {
			next.ServeHTTP(w, r.Request)
			return
		}
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	}
}

// H-E1: neither the id of a session nor the arguments of a call are sent to another origin.
func TestNothingIsSentToAnotherOrigin(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("it got %s %s %v", r.Method, r.URL, r.Header)
	}))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			overHTTP(t, supervisor.Config{FailFast: true}, func(h *harness, e *testServer) {
				require.Equal(t, "1", h.send(call("a", "count")).text())
				heal := e.Inject("", redirectTo(status, "nowhere", elsewhere.URL+"/mcp"))
				f := h.send(call("a", "count")).fails(messages.CodeProtocol)
				require.Contains(t, f.Detail, e.URL()+" redirects to "+elsewhere.URL+", which is another origin: nothing is sent there")
				require.Equal(t, status == 302 || status == 303, f.MayHaveRun, "the others say that it has not")
				require.Contains(t, h.send(call("b", "count")).fails(messages.CodeProtocol).Detail, elsewhere.URL, "nor is a session opened there")
				left := h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Left
				require.Len(t, left, 1)
				require.Contains(t, left[0].Reason, elsewhere.URL, "nor ended")
				heal()
				require.Empty(t, h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Left, "it is tried again")
				require.Zero(t, e.Sessions())
			})
		})
	}
}

// H-F1: frameworks redirect in this way when a server is mounted at a path.
func TestServerBehindARedirectOfItsPathIsServedAndEnded(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			e := serve(t, faults.NewTools())
			defer e.close()
			e.Inject("", redirectTo(status, "/mcp/", "/mcp/"))
			h := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", URL: e.URL() + "/mcp"}}})
			for _, p := range h.calls(20, "a", "count") {
				p.ok()
			}
			h.send(call("b", "count")).ok()
			require.Equal(t, 2, e.Sessions())
			e.Stop() // the server keeps the sessions, which are resumed
			require.NoError(t, e.Start())
			require.Equal(t, "21", h.send(call("a", "count", replay(messages.ReplayAlways))).text())
			closed := h.send(&messages.CloseAll{}).reply().(*messages.Closed)
			require.Equal(t, 2, closed.Sessions)
			require.Empty(t, closed.Left)
			require.Zero(t, e.Sessions())
			h.stopAndVerify()
		})
	}
}

// serveWithAffinity serves two pods, each of which knows its own sessions only, behind a
// balancer with affinity by cookie. It returns a function that counts the sessions of both
// pods.
func serveWithAffinity(t *testing.T) (front *faults.Server, sessions func() int) {
	t.Helper()
	var pods []http.Handler
	for range 2 {
		pods = append(pods, faults.NewTools().Handler())
	}
	var turn atomic.Int64
	var mu sync.Mutex
	known := map[string]bool{}
	front, err := faults.Serve(func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			at := int(turn.Add(1)) % len(pods)
			if cookie, err := r.Cookie("affinity"); err != nil {
				http.SetCookie(w, &http.Cookie{Name: "affinity", Value: fmt.Sprint("hush-hush-pod-", at), Path: "/", HttpOnly: true})
			} else if _, err := fmt.Sscanf(cookie.Value, "hush-hush-pod-%d", &at); err != nil {
				http.Error(w, "no such pod", http.StatusBadGateway)
				return
			}
			pods[at].ServeHTTP(w, r)
			mu.Lock()
			defer mu.Unlock()
			if id := w.Header().Get("Mcp-Session-Id"); id != "" {
				known[id] = true
			}
			if r.Method == http.MethodDelete {
				delete(known, r.Header.Get("Mcp-Session-Id"))
			}
		})
	})
	require.NoError(t, err)
	t.Cleanup(func() { front.Close() })
	return front, func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(known)
	}
}

// H-B7: affinity by cookie also works after a connection was lost, and after a restart of
// this process.
func TestAffinityByCookieWorks(t *testing.T) {
	front, sessions := serveWithAffinity(t)
	store, err := resume.Open(filepath.Join(t.TempDir(), "sessions"), resume.Config{})
	require.NoError(t, err)
	defer store.Close()
	var log bytes.Buffer
	cfg := supervisor.Config{
		Servers: []mcpbridge.Server{{Name: "s", URL: front.URL()}}, Store: store, LeaveOpen: true,
		Logger: zerolog.New(zerolog.SyncWriter(&log)).Level(zerolog.TraceLevel),
	}
	scopes := []string{"a", "b", "c", "d"}
	h := start(t, cfg)
	for round := range 5 {
		for _, scope := range scopes {
			require.Equal(t, fmt.Sprint(round+1), h.send(call(scope, "count")).text())
		}
	}
	require.Equal(t, len(scopes), front.Count("initialize"))
	front.Stop()
	require.NoError(t, front.Start())
	for _, scope := range scopes {
		require.Equal(t, "6", h.send(call(scope, "count", replay(messages.ReplayAlways))).text(), "it was attached to")
	}
	h.stopAndVerify()

	h = start(t, cfg)
	for _, scope := range scopes {
		require.Equal(t, "7", h.send(call(scope, "count")).text(), "it goes on")
	}
	require.Equal(t, len(scopes), front.Count("initialize"))
	require.Equal(t, len(scopes), sessions())
	require.Equal(t, len(scopes), h.send(&messages.CloseAll{}).reply().(*messages.Closed).Sessions)
	require.Zero(t, sessions(), "each was ended where it was")
	h.stopAndVerify()
	require.NotContains(t, log.String(), "hush-hush")
	require.NotEmpty(t, log.String())
}

// H-E7: the session of one user is not resumed for another user.
func TestRememberedSessionIsShownToNoOtherIdentity(t *testing.T) {
	store := new(resume.Memory)
	e := serve(t, faults.NewTools())
	defer e.close()
	var mu sync.Mutex
	users := map[string]map[string]bool{} // users, by session id
	e.Inject("", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
		mu.Lock()
		if users[r.Session] == nil {
			users[r.Session] = map[string]bool{}
		}
		users[r.Session][r.Header.Get("Authorization")] = true
		mu.Unlock()
		next.ServeHTTP(w, r.Request)
	})
	for _, life := range []struct {
		user, counted string
		generation    uint64
	}{{"alice", "1", 1}, {"alice", "2", 1}, {"bob", "1", 2}, {"bob", "2", 2}} {
		h := start(t, supervisor.Config{Store: store, LeaveOpen: true, Servers: []mcpbridge.Server{{
			Name: "s", URL: e.URL(), Headers: map[string]string{"Authorization": "Bearer " + life.user},
		}}})
		p := h.send(call("a", "count"))
		require.Equal(t, life.counted, p.text())
		require.Equal(t, life.generation, p.ok().Generation)
		h.stopAndVerify()
	}
	mu.Lock()
	defer mu.Unlock()
	delete(users, "")
	require.Len(t, users, 2)
	for _, by := range users {
		require.Len(t, by, 1)
	}
}

// H-E9: the configuration is refused before anything is sent.
func TestSupervisorRefusesCredentialsOverPlainHTTP(t *testing.T) {
	cfg := supervisor.Config{Servers: []mcpbridge.Server{{
		Name: "s", URL: "http://mcp.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer hush-hush"},
	}}}
	h := newHarness(t)
	_, err := supervisor.Start(h.system, cfg)
	require.ErrorContains(t, err, "headers: they would be sent to mcp.example.com without encryption")
	require.NotContains(t, err.Error(), "hush")
	cfg.Servers[0].InsecureCredentials = true
	h.start(cfg).stopAndVerify()
}
