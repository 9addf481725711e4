package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/messages"
)

// opening answers a handshake of the protocol before the newest.
func (s *script) opening() *script {
	s.answer(rpc.MethodDiscover, says(200, outbound.TypeJSON, failure("%s", "-32601", "no such method")))
	s.answer(rpc.MethodInitialize, says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"`+protocolLegacy+`","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`, outbound.HeaderSession+": "+testSession))
	return s
}

// dial opens a session.
func (s *script) dial(ctx context.Context, auth mcpbridge.Authenticator) (dial.Conn, *mcpbridge.Error) {
	srv := mcpbridge.Server{Name: "test", URL: "http://test/mcp", HTTPClient: &http.Client{Transport: s}, Auth: auth}
	c, err := New([]mcpbridge.Server{srv}, nil).Dial(ctx, dial.Request{Key: messages.Key{Server: "test"}, Down: func(*mcpbridge.Error) {}})
	return c, mcpbridge.AsError(err)
}

func TestDialThatIsNotAuthorizedSaysSo(t *testing.T) {
	lost := errors.New("the password is lost")
	for name, c := range map[string]struct {
		auth      mcpbridge.Authenticator
		purse     *purse
		want      string
		refreshes int
	}{
		"no credentials": {
			mcpbridge.AuthenticatorFunc(func(context.Context, messages.Key) (mcpbridge.Credentials, error) { return nil, lost }), nil,
			"no credentials: the password is lost", 0,
		},
		"no headers": {
			headersFunc(func(context.Context) (http.Header, error) { return nil, lost }), nil,
			"no credentials: the password is lost", 0,
		},
		"none for this key": {
			mcpbridge.AuthenticatorFunc(func(context.Context, messages.Key) (mcpbridge.Credentials, error) { return nil, nil }), nil,
			"401 Unauthorized: who are you?", 0,
		},
		"no refresh": {
			nil, &purse{next: func(context.Context, *http.Request, *http.Response) (string, error) { return "", lost }},
			"the credentials could not be refreshed: the password is lost", 1,
		},
		"no use": {nil, refilled("old", "other"), "401 Unauthorized: who are you?", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			for _, kind := range []string{rpc.MethodDiscover, rpc.MethodInitialize, rpc.MethodInitialized, "GET"} {
				s.answer(kind, refused)
			}
			if c.purse != nil {
				c.auth = c.purse
			}
			_, e := s.dial(context.Background(), c.auth)
			require.Equal(t, mcpbridge.Unauthorized, e.Class, "%v", e)
			require.Equal(t, mcpbridge.Alive, e.Session)
			require.Contains(t, e.Detail, c.want)
			if c.purse != nil {
				require.Equal(t, c.refreshes, c.purse.refreshed())
			}
			if strings.Contains(c.want, "lost") {
				require.ErrorIs(t, e, lost)
			}
		})
	}
}

// Some servers refuse what is sent before initialize as if it were not authorized.
func TestServerThatRefusesDiscoveryIsAskedInTheOldWay(t *testing.T) {
	s := newScript().opening()
	s.answer(rpc.MethodDiscover, says(401, "", "Unauthorized: Session not found"))
	p := refilled("old", "new")
	p.next = func(context.Context, *http.Request, *http.Response) (string, error) {
		return "", errors.New("it is for ever")
	}
	c, e := s.dial(context.Background(), p)
	require.Nil(t, e)
	require.NoError(t, c.Close(context.Background()))
}

// A person who logs in takes longer than a server may take to answer.
func TestSlowRefreshIsNotTakenForASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript().opening()
		for _, kind := range []string{rpc.MethodDiscover, rpc.MethodInitialize} {
			s.answer(kind, unless("new", refused, s.told[kind]))
		}
		p := refilled("old", "new")
		p.next = func(context.Context, *http.Request, *http.Response) (string, error) {
			time.Sleep(time.Minute)
			return "new", nil
		}
		c, e := s.dial(context.Background(), p)
		require.Nil(t, e)
		require.Equal(t, []string{"old", "new"}, s.tokens(rpc.MethodDiscover))
		require.Equal(t, []string{"new"}, s.tokens(rpc.MethodInitialize))
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestRefreshOfADialEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.answer(rpc.MethodDiscover, refused)
		p := refilled("old", "new")
		p.next = func(ctx context.Context, _ *http.Request, _ *http.Response) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		began := time.Now()
		_, e := s.dial(ctx, p)
		require.Equal(t, mcpbridge.Unavailable, e.Class, "%v", e)
		require.Contains(t, e.Detail, "timed out")
		require.Less(t, time.Since(began), time.Minute+time.Second)
	})
}

// bank is an MCP server that knows whose token is whose, and that nobody may use the
// session of another.
type bank struct {
	*httptest.Server
	handler http.Handler

	mu     sync.Mutex
	issued map[string]int    // how many tokens each scope was given: the last one is good
	owners map[string]string // of sessions
	wrong  []string
}

func openBank(t *testing.T, handler http.Handler) *bank {
	b := &bank{handler: handler, issued: map[string]int{}, owners: map[string]string{}}
	b.Server = httptest.NewServer(b)
	t.Cleanup(func() {
		b.CloseClientConnections() // those of a test that failed
		b.Close()
	})
	return b
}

// issue returns a token of a scope, with which all before it end.
func (b *bank) issue(scope string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.issued[scope]++
	return fmt.Sprintf("token-of-%s-%d", scope, b.issued[scope])
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	parts := strings.Split(token, "-")
	b.mu.Lock()
	scope, id := "", r.Header.Get(outbound.HeaderSession)+r.URL.Query().Get("sessionid")
	if len(parts) == 4 && token == fmt.Sprintf("token-of-%s-%d", parts[2], b.issued[parts[2]]) {
		scope = parts[2]
	}
	if owner := b.owners[id]; id != "" && owner != "" && len(parts) == 4 && owner != parts[2] {
		b.wrong = append(b.wrong, "the session of "+owner+" was used by "+parts[2])
	}
	if scope != r.Header.Get("X-Scope") && scope != "" {
		b.wrong = append(b.wrong, "the token of "+scope+" was used by "+r.Header.Get("X-Scope"))
	}
	b.mu.Unlock()
	if scope == "" {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		http.Error(w, "no, "+token, http.StatusUnauthorized)
		return
	}
	b.handler.ServeHTTP(&owned{w, b, scope}, r)
}

// forget ends the sessions of a scope.
func (b *bank) forget(scope string) {
	b.mu.Lock()
	owners := maps.Clone(b.owners)
	b.mu.Unlock()
	for id, owner := range owners {
		if owner == scope {
			req := httptest.NewRequest(http.MethodDelete, "/", nil)
			req.Header.Set(outbound.HeaderSession, id)
			b.handler.ServeHTTP(httptest.NewRecorder(), req)
		}
	}
}

// owned notes whose session an answer opens.
type owned struct {
	http.ResponseWriter
	b     *bank
	scope string
}

func (o *owned) note() {
	o.b.mu.Lock()
	defer o.b.mu.Unlock()
	if id := o.Header().Get(outbound.HeaderSession); id != "" && o.b.owners[id] == "" {
		o.b.owners[id] = o.scope
	}
}

func (o *owned) WriteHeader(status int) {
	o.note()
	o.ResponseWriter.WriteHeader(status)
}

func (o *owned) Write(p []byte) (int, error) {
	o.note()
	return o.ResponseWriter.Write(p)
}

func (o *owned) Flush() { o.ResponseWriter.(http.Flusher).Flush() }

// account is an authenticator that gets the tokens of each scope from a bank.
type account struct{ *bank }

func (a account) Credentials(_ context.Context, key messages.Key) (mcpbridge.Credentials, error) {
	return &accountCredentials{bank: a.bank, scope: key.Scope, token: a.issue(key.Scope)}, nil
}

type accountCredentials struct {
	bank  *bank
	scope string

	mu    sync.Mutex
	token string
}

func (a *accountCredentials) Headers(context.Context) (http.Header, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return http.Header{"Authorization": {"Bearer " + a.token}, "X-Scope": {a.scope}}, nil
}

func (a *accountCredentials) Refresh(context.Context, *http.Request, *http.Response) error {
	token := a.bank.issue(a.scope)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token = token
	return nil
}

func newTools() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "tool", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	return server
}

// life is a scope that calls, and whose session is attached to and expires meanwhile,
// and whose tokens end while its calls run.
func (b *bank) life(bridge *Bridge, scope string) error {
	dial := func(resume *mcpbridge.Resume) (dial.Conn, error) {
		key := messages.Key{Server: "test", Scope: scope}
		return bridge.Dial(context.Background(), dial.Request{Key: key, Resume: resume, Down: func(*mcpbridge.Error) {}})
	}
	c, err := dial(nil)
	for round := range 4 {
		if err != nil {
			return err
		}
		results := make(chan *mcpbridge.Error, 16)
		for i := range cap(results) {
			go func() {
				if i%4 == 0 {
					b.issue(scope) // the one in use ends
				}
				e, _ := do(c)
				results <- e
			}()
		}
		for range cap(results) {
			if e := <-results; e != nil && e.Class != mcpbridge.Unauthorized { // it may have ended twice
				err = errors.Join(err, e)
			}
		}
		if e, _ := do(c); e != nil {
			err = errors.Join(err, e)
		}
		resume := c.Resume()
		err = errors.Join(err, c.Detach(context.Background()))
		if round == 2 {
			b.forget(scope)
		}
		next, failure := dial(resume)
		if failure == nil && next.Info().Attached != (round != 2) {
			failure = fmt.Errorf("round %d: attached: %v", round, next.Info().Attached)
		}
		c, err = next, errors.Join(err, failure)
	}
	if err != nil {
		return err
	}
	return c.Close(context.Background())
}

// No scope sends the token, or uses the session, of another.
func TestScopesNeverShareTokensOrSessions(t *testing.T) {
	server := newTools()
	b := openBank(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	bridge := New([]mcpbridge.Server{{Name: "test", URL: b.URL, Auth: account{b}, ProtocolVersion: protocolLegacy}}, nil)
	defer bridge.Close()
	scopes := []string{"a", "b", "c", "d"}
	results := make(chan error, len(scopes))
	for _, scope := range scopes {
		go func() { results <- b.life(bridge, scope) }()
	}
	for range scopes {
		require.NoError(t, <-results)
	}
	require.Empty(t, b.wrong)
	require.GreaterOrEqual(t, len(b.owners), 2*len(scopes), "and those of controls")
}

func TestLegacySSEIsAuthorized(t *testing.T) {
	server := newTools()
	b := openBank(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil))
	p := refilled("none", "")
	p.next = func(context.Context, *http.Request, *http.Response) (string, error) { return b.issue("a"), nil }
	bridge := New([]mcpbridge.Server{{Name: "test", URL: b.URL, Transport: mcpbridge.TransportSSE, Auth: p, Headers: map[string]string{"X-Scope": "a"}}}, nil)
	defer bridge.Close()
	key := messages.Key{Server: "test"}
	c, err := bridge.Dial(context.Background(), dial.Request{Key: key, Down: func(*mcpbridge.Error) {}})
	require.NoError(t, err)
	require.Equal(t, 1, p.refreshed(), "the GET was refused")
	for n := range 3 {
		b.issue("a")
		e, _ := do(c)
		require.Nil(t, e)
		require.Equal(t, n+2, p.refreshed())
	}
	p.next = func(context.Context, *http.Request, *http.Response) (string, error) {
		return "", errors.New("the well is dry")
	}
	b.issue("a")
	e, _ := do(c)
	require.Equal(t, mcpbridge.Unauthorized, e.Class)
	require.Contains(t, e.Detail, "the well is dry")
	require.NotContains(t, e.Detail, "token-of")
	p.set(b.issue("a"))
	e, _ = do(c)
	require.Nil(t, e, "what fails one call fails no other")
	require.NoError(t, c.Close(context.Background()))

	b.issue("a")
	_, err = bridge.Dial(context.Background(), dial.Request{Key: key, Down: func(*mcpbridge.Error) {}})
	require.Equal(t, mcpbridge.Unauthorized, mcpbridge.AsError(err).Class, "%v", err)
	require.ErrorContains(t, err, "the well is dry")
	require.Empty(t, b.wrong)
}
