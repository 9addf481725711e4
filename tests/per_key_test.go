package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// overKeyedHTTP runs a scenario in a bubble of fake time, on a server "s" whose
// configuration depends on the scope: adapt changes a copy of it.
func overKeyedHTTP(t *testing.T, cfg supervisor.Config, adapt func(s *mcpbridge.Server, scope string) error, scenario func(h *harness, e *testServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tools := faults.NewTools()
		server := faults.Local(tools.Handler)
		cfg.Servers = []mcpbridge.Server{keyed(mcpbridge.Server{Name: "s", URL: server.URL() + "/mcp", HTTPClient: &http.Client{Transport: server}, InsecureCredentials: true}, adapt)}
		client := cfg.Servers[0].HTTPClient
		e := &testServer{server, tools, t}
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		defer e.close()
		h := start(t, cfg)
		defer h.stop()
		h.executed, h.overlaps = e.Executions, e.Overlaps
		scenario(h, e)
		h.stop()
		e.close()
		h.verify()
		client.CloseIdleConnections()
	})
}

// keyed returns a server whose configuration adapt changes for each scope.
func keyed(base mcpbridge.Server, adapt func(s *mcpbridge.Server, scope string) error) mcpbridge.Server {
	keyed := base
	keyed.PerKey = func(_ context.Context, key messages.Key) (mcpbridge.Server, error) {
		one := base
		err := adapt(&one, key.Scope)
		return one, err
	}
	return keyed
}

// ownToken gives each scope a token, and a path of its own.
func ownToken(s *mcpbridge.Server, scope string) error {
	s.URL += "/" + scope
	s.Headers = map[string]string{"Authorization": "Bearer token-of-" + scope}
	return nil
}

// seenRequests are the paths and tokens of requests.
type seenRequests struct {
	mu  sync.Mutex
	all map[string]int
}

// watch notes the requests of a server.
func (s *seenRequests) watch(e *testServer) {
	e.Inject("", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
		s.mu.Lock()
		if s.all == nil {
			s.all = map[string]int{}
		}
		s.all[r.URL.Path+" "+r.Header.Get("Authorization")]++
		s.mu.Unlock()
		next.ServeHTTP(w, r.Request)
	})
}

func TestEachKeyHasItsOwnConfiguration(t *testing.T) {
	var seen seenRequests
	overKeyedHTTP(t, supervisor.Config{}, ownToken, func(h *harness, e *testServer) {
		seen.watch(e)
		for i := range 3 {
			for _, scope := range []string{"ann", "bob"} {
				require.Equal(t, fmt.Sprint(i+1), h.send(call(scope, "count")).text())
			}
		}
		h.send(&messages.CloseAll{}).reply()
	})
	for request := range seen.all {
		require.Contains(t, []string{"/mcp/ann Bearer token-of-ann", "/mcp/bob Bearer token-of-bob"}, request, "DELETE and the stream included")
	}
	require.Len(t, seen.all, 2)
}

func TestSetupDependsOnTheKey(t *testing.T) {
	overKeyedHTTP(t, supervisor.Config{}, func(s *mcpbridge.Server, scope string) error {
		s.Setup = []*mcp.CallToolParams{{Name: "echo", Arguments: map[string]any{"call": "setup-of-" + scope}}}
		return nil
	}, func(h *harness, e *testServer) {
		h.send(call("ann", "count")).ok()
		h.send(call("bob", "count")).ok()
		e.Expire(faults.Expiries()[0])
		h.send(call("bob", "count")).ok()
		require.Equal(t, 1, e.Executions()["setup-of-ann"])
		require.Equal(t, 2, e.Executions()["setup-of-bob"], "a new session is set up as well")
		h.executed = nil // the calls of the set-up were not sent by the test
	})
}

// A failing endpoint is known for the keys that lead to it, and for no others.
func TestFailingEndpointOfOneKeyDoesNotHoldUpAnother(t *testing.T) {
	overKeyedHTTP(t, supervisor.Config{MaxDials: 1}, ownToken, func(h *harness, e *testServer) {
		heal := e.Inject("", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
			if strings.HasSuffix(r.URL.Path, "/ann") {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r.Request)
		})
		down := h.send(call("ann", "count"))
		synctest.Wait()
		began := time.Now()
		for i := range 20 {
			h.send(call(scopeName(i), "count")).ok()
		}
		require.Less(t, time.Since(began), time.Second)
		require.False(t, down.answered())
		heal()
		require.Equal(t, "1", down.text())
		require.Less(t, time.Since(began), 3*time.Second)
	})
}

func TestHangingEndpointOfOneKeyDoesNotHoldUpAnother(t *testing.T) {
	overKeyedHTTP(t, supervisor.Config{MaxDials: 1}, ownToken, func(h *harness, e *testServer) {
		e.Inject("", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
			if strings.HasSuffix(r.URL.Path, "/ann") {
				<-r.Context().Done()
				return
			}
			next.ServeHTTP(w, r.Request)
		})
		h.send(call("ann", "count", within(10*time.Second)))
		synctest.Wait()
		began := time.Now()
		h.send(call("bob", "count")).ok()
		require.Less(t, time.Since(began), time.Second)
	})
}

// addressed is a dial of the fake server for a server with PerKey: it finds out the address
// as the bridge does.
func addressed(srv *mcpbridge.Server, dialURL func(ctx context.Context, url string) error) func(context.Context, dial.Request) error {
	return func(ctx context.Context, req dial.Request) error {
		if req.Key.Server != srv.Name || req.Resolved == nil {
			return nil
		}
		config, err := srv.ForKey(ctx, req.Key)
		if err != nil {
			return err
		}
		if err := req.Resolved(ctx, config); err != nil {
			return err
		}
		return dialURL(ctx, config.URL)
	}
}

// Keys whose configurations lead to the same address share what is known of it: the dials of
// an outage do not grow with the keys, and all keys work soon after it.
func TestKeysWithTheSameAddressShareWhatIsKnownOfIt(t *testing.T) {
	const tenants, users = 3, 40
	srv := keyed(mcpbridge.Server{Name: "keyed", URL: "https://keyed.invalid"}, func(s *mcpbridge.Server, scope string) error {
		tenant, user, _ := strings.Cut(scope, ".")
		s.URL += "/" + tenant
		s.Headers = map[string]string{"X-User": user}
		return nil
	})
	inFakeTime(t, supervisor.Config{MaxSessions: 500, Servers: []mcpbridge.Server{srv}}, func(h *harness) {
		var mu sync.Mutex
		dials, away := map[string]int{}, true
		h.server.set(func() {
			h.server.dial = addressed(&srv, func(_ context.Context, url string) error {
				mu.Lock()
				defer mu.Unlock()
				dials[url]++
				if away && !strings.HasSuffix(url, "/0") {
					return unavailableError("connection refused")
				}
				return nil
			})
		})
		all := map[int][]*sentCommand{}
		for i := range tenants * users {
			all[i%tenants] = append(all[i%tenants], h.send(call(fmt.Sprintf("%d.%d", i%tenants, i), "count", on("keyed"), within(5*time.Minute))))
		}
		for _, p := range all[0] {
			p.ok()
			require.Less(t, time.Since(p.sent), time.Second)
		}
		time.Sleep(time.Minute) // synctest
		mu.Lock()
		require.Equal(t, users, dials["https://keyed.invalid/0"])
		for _, tenant := range []string{"1", "2"} {
			require.Less(t, dials["https://keyed.invalid/"+tenant], 100, "16 at once, and then the probes")
		}
		away = false
		mu.Unlock()
		back := time.Now()
		for tenant := 1; tenant < tenants; tenant++ {
			for _, p := range all[tenant] {
				p.ok()
				require.Less(t, p.answeredAt.Sub(back), 3*time.Second)
			}
		}
	})
}

// A key whose configuration leads somewhere else leaves the endpoint that is down.
func TestKeyFollowsItsConfigurationToAnotherEndpoint(t *testing.T) {
	var mu sync.Mutex
	path := "/old"
	overKeyedHTTP(t, supervisor.Config{}, func(s *mcpbridge.Server, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		s.URL += path
		return nil
	}, func(h *harness, e *testServer) {
		e.Inject("", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
			if strings.HasSuffix(r.URL.Path, "/old") {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r.Request)
		})
		all := h.calls(3, "ann", "count/ro")
		all = append(all, h.calls(3, "bob", "count/ro")...)
		time.Sleep(5 * time.Second) // synctest
		mu.Lock()
		path = "/new"
		mu.Unlock()
		moved := time.Now()
		for _, p := range all {
			p.ok()
		}
		require.Less(t, time.Since(moved), 5*time.Second)
	})
}

// An address that is different at each dial, such as one with a ticket, is dialed too.
func TestAddressMayBeDifferentAtEachDial(t *testing.T) {
	var mu sync.Mutex
	n := 0
	overKeyedHTTP(t, supervisor.Config{}, func(s *mcpbridge.Server, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		n++
		s.URL += fmt.Sprintf("?ticket=number-%d", n)
		return nil
	}, func(h *harness, e *testServer) {
		for range 3 {
			h.send(call("ann", "count")).ok()
			e.Expire(faults.Expiries()[0])
		}
	})
	require.LessOrEqual(t, n, 6)
}

// What PerKey does wrong concerns its key alone.
func TestPerKeyThatFailsConcernsOneKey(t *testing.T) {
	const secret = "s3cr3t-in-a-header"
	for name, c := range map[string]struct {
		fails  func(ctx context.Context, s *mcpbridge.Server) error
		code   messages.Code
		detail string
	}{
		"error": {func(context.Context, *mcpbridge.Server) error { return errors.New("no such user") }, messages.CodeUnavailable, "no configuration for this key: no such user"},
		"unauthorized": {func(context.Context, *mcpbridge.Server) error {
			return &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: "logged out"}
		}, messages.CodeUnauthorized, "logged out"},
		"panic":        {func(context.Context, *mcpbridge.Server) error { panic("oops") }, messages.CodeUnavailable, "no configuration for this key: panic: oops"},
		"patient":      {func(ctx context.Context, _ *mcpbridge.Server) error { <-ctx.Done(); return ctx.Err() }, messages.CodeUnavailable, "timed out"},
		"deaf":         {func(context.Context, *mcpbridge.Server) error { time.Sleep(40 * time.Second); return nil }, messages.CodeUnavailable, "timed out"},
		"name":         {func(_ context.Context, s *mcpbridge.Server) error { s.Name = "x"; return nil }, messages.CodeInvalid, "name: is different"},
		"url":          {func(_ context.Context, s *mcpbridge.Server) error { s.URL = "http://"; return nil }, messages.CodeInvalid, "url: has no host"},
		"no url":       {func(_ context.Context, s *mcpbridge.Server) error { s.URL = ""; return nil }, messages.CodeInvalid, "url: the key must have"},
		"another kind": {func(_ context.Context, s *mcpbridge.Server) error { s.Command, s.URL = "x", ""; return nil }, messages.CodeInvalid, "command: the key must have"},
		"transport":    {func(_ context.Context, s *mcpbridge.Server) error { s.Transport = "sse"; return nil }, messages.CodeInvalid, "transport: is different"},
		"keepalive":    {func(_ context.Context, s *mcpbridge.Server) error { s.KeepAlive = 1; return nil }, messages.CodeInvalid, "keepAlive: is different"},
		"client":       {func(_ context.Context, s *mcpbridge.Server) error { s.HTTPClient = &http.Client{}; return nil }, messages.CodeInvalid, "httpClient: is different"},
		"setup": {func(_ context.Context, s *mcpbridge.Server) error {
			s.Setup = []*mcp.CallToolParams{{Name: "x", Arguments: func() {}}}
			return nil
		}, messages.CodeInvalid, "setup[0]: "},
		"header": {func(_ context.Context, s *mcpbridge.Server) error {
			s.Headers = map[string]string{"X-Token": secret + "\r\nX-Admin: yes"}
			return nil
		}, messages.CodeInvalid, "headers.X-Token: the value has a control character"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tools := faults.NewTools()
				server := faults.Local(tools.Handler)
				base := mcpbridge.Server{Name: "s", URL: server.URL() + "/mcp", HTTPClient: &http.Client{Transport: server}, InsecureCredentials: true}
				srv := base
				var mu sync.Mutex
				broken := true
				srv.PerKey = func(ctx context.Context, key messages.Key) (mcpbridge.Server, error) {
					one := base
					mu.Lock()
					fails := broken && key.Scope == "ann"
					mu.Unlock()
					if fails {
						return one, c.fails(ctx, &one)
					}
					return one, nil
				}
				e := &testServer{server, tools, t}
				defer time.Sleep(time.Minute) // synctest: until a deaf function has returned
				defer e.close()
				h := start(t, supervisor.Config{Servers: []mcpbridge.Server{srv}, MaxDials: 2})
				h.executed = e.Executions
				f := h.send(call("ann", "count", within(50*time.Second)))
				synctest.Wait()
				began := time.Now()
				h.send(call("bob", "count")).ok()
				require.Less(t, time.Since(began), time.Second)
				failure := f.fails(c.code)
				require.Contains(t, failure.Error(), c.detail)
				require.NotContains(t, failure.Error(), secret)
				require.False(t, failure.MayHaveRun)
				began = time.Now()
				h.send(call("cid", "count")).ok()
				require.Less(t, time.Since(began), time.Second, "the server does not count as down")
				mu.Lock()
				broken = false
				mu.Unlock()
				if c.code != messages.CodeUnavailable {
					h.send(call("ann", "count")).ok() // at once
				} else {
					require.Equal(t, "1", h.send(call("ann", "count")).text())
				}
				require.Less(t, time.Since(began), 5*time.Second)
				h.stopAndVerify()
			})
		})
	}
}

// A session is never resumed with the token, the address or the set-up of another key, or of
// an earlier configuration.
func TestSessionIsResumedOnlyWithTheSameConfiguration(t *testing.T) {
	type life struct{ path, token, setup string }
	for name, c := range map[string]struct {
		second   life
		attached bool
	}{
		"same":    {life{"/a", "one", "open"}, true},
		"token":   {life{"/a", "two", "open"}, false},
		"address": {life{"/b", "one", "open"}, false},
		"setup":   {life{"/a", "one", "other"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tools := faults.NewTools()
				server := faults.Local(tools.Handler)
				e := &testServer{server, tools, t}
				defer time.Sleep(3 * time.Second) // synctest
				defer e.close()
				store := new(resume.Memory)
				for i, now := range []life{{"/a", "one", "open"}, c.second} {
					srv := keyed(mcpbridge.Server{Name: "s", URL: server.URL(), HTTPClient: &http.Client{Transport: server}, InsecureCredentials: true}, func(s *mcpbridge.Server, _ string) error {
						s.URL += now.path
						s.Headers = map[string]string{"Authorization": "Bearer " + now.token}
						s.Setup = []*mcp.CallToolParams{{Name: "echo", Arguments: map[string]any{"call": now.setup}}}
						return nil
					})
					h := start(t, supervisor.Config{Servers: []mcpbridge.Server{srv}, Store: store, LeaveOpen: true})
					p := h.send(call("a", "count"))
					text := p.text()
					switch {
					case i == 0:
						require.Equal(t, "2", text, "after the set-up")
					case c.attached:
						require.Equal(t, "3", text, "its state is kept")
						require.EqualValues(t, 1, p.ok().Generation)
					default:
						require.Equal(t, "2", text, "it is a new session")
						require.EqualValues(t, 2, p.ok().Generation)
					}
					h.stopAndVerify()
				}
			})
		})
	}
}

// In one process, too: a connection that broke is not resumed with another token, and the
// old session is ended with its own.
func TestLostSessionWithAnotherTokenIsOpenedAnew(t *testing.T) {
	var mu sync.Mutex
	token := "one"
	overKeyedHTTP(t, supervisor.Config{}, func(s *mcpbridge.Server, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		s.Headers = map[string]string{"Authorization": "Bearer " + token}
		return nil
	}, func(h *harness, e *testServer) {
		h.overlaps = nil // the old session is ended when the new one is open
		var deleted []string
		e.Inject("", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
			if r.Kind == "DELETE" {
				mu.Lock()
				deleted = append(deleted, r.Header.Get("Authorization"))
				mu.Unlock()
			}
			next.ServeHTTP(w, r.Request)
		})
		require.Equal(t, "1", h.send(call("a", "count")).text())
		mu.Lock()
		token = "two"
		mu.Unlock()
		remove := e.Inject("tools/call", faults.Cut())
		h.send(call("a", "count")).fails(messages.CodeLost)
		remove()
		require.Equal(t, "1", h.send(call("a", "count")).text())
		synctest.Wait()
		require.Equal(t, 1, e.Sessions())
		mu.Lock()
		require.Equal(t, []string{"Bearer one"}, deleted)
		mu.Unlock()
	})
}

// Guarantee 12 holds for what PerKey returns.
func TestNothingSecretOfAKeyIsLogged(t *testing.T) {
	const secret = "s3cr3t-s3cr3t"
	var log bytes.Buffer
	cfg := supervisor.Config{Logger: zerolog.New(zerolog.SyncWriter(&log)).Level(zerolog.TraceLevel), FailFast: true}
	var said []string
	overKeyedHTTP(t, cfg, func(s *mcpbridge.Server, scope string) error {
		s.URL += "/hook-" + secret + "-" + scope + "?key=" + secret
		s.Headers = map[string]string{"Authorization": "Bearer " + secret}
		s.Setup = []*mcp.CallToolParams{{Name: "echo", Arguments: map[string]any{"call": secret}}}
		return nil
	}, func(h *harness, e *testServer) {
		h.executed = nil // the calls of the set-up
		ask := func(scope string) {
			if f, ok := h.send(call(scope, "count", within(5*time.Second))).reply().(*messages.Failure); ok {
				said = append(said, fmt.Sprintf("%v %+v %v", f, f, f.LogValue()))
			}
		}
		ask("a")
		for i, status := range []int{404, 400, 401, 403, 429, 500, 503, 302} {
			for _, kind := range []string{"", "tools/call"} {
				heal := e.Inject(kind, onPOST(func(w http.ResponseWriter, r *faults.Request, _ http.Handler) {
					w.WriteHeader(status)
					fmt.Fprintf(w, "%s %s", r.URL, r.Header.Get("Authorization"))
				}))
				ask("a")
				ask(fmt.Sprint("b", i, kind))
				heal()
			}
		}
		snap, err := json.Marshal(h.inspect())
		require.NoError(t, err)
		said = append(said, string(snap))
		h.mu.Lock()
		for _, event := range h.events {
			said = append(said, fmt.Sprintf("%+v", event))
		}
		h.mu.Unlock()
	})
	require.NotEmpty(t, said)
	require.NotContains(t, strings.Join(said, "\n")+log.String(), secret)
}

// A reload closes the sessions of a server with PerKey, unless the function is known to be
// the same.
func TestReloadComparesPerKeyByItsID(t *testing.T) {
	for id, closed := range map[string]int{"": 1, "v1": 0} {
		synctest.Test(t, func(t *testing.T) {
			tools := faults.NewTools()
			server := faults.Local(tools.Handler)
			e := &testServer{server, tools, t}
			defer time.Sleep(3 * time.Second) // synctest
			defer e.close()
			client := &http.Client{Transport: server}
			servers := func() []mcpbridge.Server {
				srv := keyed(mcpbridge.Server{Name: "s", URL: server.URL(), HTTPClient: client, InsecureCredentials: true}, ownToken)
				srv.PerKeyID = id
				return []mcpbridge.Server{srv}
			}
			h := start(t, supervisor.Config{Servers: servers()})
			h.executed = e.Executions
			h.send(call("a", "count")).ok()
			said, err := h.sup.Reload(t.Context(), servers())
			require.NoError(t, err)
			require.Equal(t, closed, said.Sessions)
			require.Equal(t, fmt.Sprint(2-closed), h.send(call("a", "count")).text())
			h.stopAndVerify()
		})
	}
}
