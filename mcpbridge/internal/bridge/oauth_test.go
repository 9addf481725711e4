package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// handler is an OAuthHandler of a test. It does not stand two goroutines: the race
// detector finds them.
type oauthHandler struct {
	source     oauth2.TokenSource
	asked      int
	authorized atomic.Int32
	next       func(ctx context.Context, resp *http.Response) (oauth2.TokenSource, error)
}

func (h *oauthHandler) TokenSource(context.Context) (oauth2.TokenSource, error) {
	h.asked++
	return h.source, nil
}

func (h *oauthHandler) Authorize(ctx context.Context, _ *http.Request, resp *http.Response) (err error) {
	defer resp.Body.Close()
	h.authorized.Add(1)
	source, err := h.next(ctx, resp)
	if err == nil {
		h.source = source
	}
	return err
}

// sourceFunc is a source of tokens.
type sourceFunc func() (*oauth2.Token, error)

func (f sourceFunc) Token() (*oauth2.Token, error) { return f() }

func static(token string) oauth2.TokenSource {
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token})
}

// grants is a handler that has no token, and gets one.
func grants(token string) *oauthHandler {
	return &oauthHandler{next: func(context.Context, *http.Response) (oauth2.TokenSource, error) { return static(token), nil }}
}

func TestHandlerAuthorizesOnceForAllItsSessions(t *testing.T) {
	const sessions, calls = 4, 16
	h := grants("new")
	h.source = static("old")
	o := mcpbridge.OAuth(h)
	var arrived sync.WaitGroup
	arrived.Add(sessions * calls)
	results := make(chan *mcpbridge.Error, sessions*calls)
	var open []dial.Conn
	for range sessions {
		s := newScript()
		c := s.attach(t, with(o))
		open = append(open, c)
		s.answer("tools/call", unless("new", func(req *http.Request) (*http.Response, error) {
			arrived.Done()
			arrived.Wait()
			return refused(req)
		}, works))
		for range calls {
			go func() {
				e, _ := do(c)
				results <- e
			}()
		}
	}
	for range sessions * calls {
		require.Nil(t, <-results)
	}
	require.EqualValues(t, 1, h.authorized.Load())
	for _, c := range open {
		require.NoError(t, c.Close(context.Background()))
	}
}

func TestHandlerIsAskedToAuthorizeFor401AndForMoreScope(t *testing.T) {
	for name, c := range map[string]struct {
		refusal answering
		times   int32
	}{
		"401": {refused, 1}, "401 about the token": {expired, 1}, "403 about the scope": {tooLow, 1},
		"403": {says(403, "", "not you", "Www-Authenticate: Bearer"), 0}, "401, whatever it says": {says(401, "", "unknown session"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := grants("new"), newScript()
			h.source = static("old")
			conn := s.attach(t, with(mcpbridge.OAuth(h)))
			s.answer("tools/call", unless("new", c.refusal, works))
			e, _ := do(conn)
			require.Equal(t, c.times == 1, e == nil)
			require.Equal(t, c.times, h.authorized.Load())
			require.NoError(t, conn.Close(context.Background()))
		})
	}
}

// The handler has got another token since, for another session or by itself.
func TestRefusedTokenThatIsNotTheLatestIsJustReplaced(t *testing.T) {
	h, s := grants("never"), newScript()
	h.source = static("old")
	c := s.attach(t, with(mcpbridge.OAuth(h)))
	s.answer("tools/call", unless("new", func(req *http.Request) (*http.Response, error) {
		h.source = static("new")
		return refused(req)
	}, works))
	e, _ := do(c)
	require.Nil(t, e)
	require.Zero(t, h.authorized.Load())
	require.NoError(t, c.Close(context.Background()))
}

// A token that cannot be refreshed is none: the refusal leads to a new one. Any other
// failure is the caller's, and does not quote the answer.
func TestTokenThatCannotBeHad(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"revoked":      {&oauth2.RetrieveError{ErrorCode: "invalid_grant"}, ""},
		"cut":          {fmt.Errorf("refreshing: %w", context.Canceled), ""},
		"client":       {&oauth2.RetrieveError{ErrorCode: "invalid_client", ErrorDescription: "hush"}, "no credentials: the authorization server refuses: invalid_client"},
		"another":      {&oauth2.RetrieveError{Response: &http.Response{StatusCode: 503}, Body: []byte("hush")}, "no credentials: the authorization server refuses: 503 Service Unavailable"},
		"registered":   {errors.New("failed to decode successful registration response: EOF (hush)"), "no credentials: failed to decode successful registration response"},
		"unregistered": {errors.New("registration failed with status 500: hush"), "no credentials: registration failed"},
		"unreachable":  {errors.New("no route"), "no credentials: no route"},
		"no token":     {nil, ""},
		"with a panic": {nil, "no credentials: panic: in the source"},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := grants("new"), newScript()
			conn := s.attach(t, with(mcpbridge.OAuth(h)))
			s.answer("tools/call", unless("new", refused, works))
			h.source = sourceFunc(func() (*oauth2.Token, error) {
				if name == "with a panic" {
					panic("in the source")
				}
				return nil, c.err
			})
			e, _ := do(conn)
			if c.want == "" {
				require.Nil(t, e)
			} else {
				require.Equal(t, c.want, e.Detail)
				require.Equal(t, mcpbridge.Alive, e.Session)
				h.source = static("new")
			}
			e, _ = do(conn)
			require.Nil(t, e)
			require.NoError(t, conn.Close(context.Background()))
		})
	}
}

// A person who logs in holds up neither those who have a token, nor those who do not
// want to wait. The login ends when all have gone who wait for it.
func TestLoginOfAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logins := make(chan string)
		var life context.Context
		h := &oauthHandler{source: static("low")}
		h.next = func(ctx context.Context, _ *http.Response) (oauth2.TokenSource, error) {
			life = ctx
			select {
			case token := <-logins:
				return static(token), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		o := mcpbridge.OAuth(h)
		open := func() (*script, dial.Conn) {
			s := newScript()
			c := s.attach(t, with(o))
			s.answer("tools/call", unless("high", tooLow, works))
			return s, c
		}
		_, a := open()
		_, b := open()
		easy, c := open()
		easy.answer("tools/call", works)
		results := make(chan *mcpbridge.Error, 2)
		call := func(c dial.Conn) {
			e, _ := do(c)
			results <- e
		}

		go call(a)
		go call(b)
		synctest.Wait()
		e, _ := do(c)
		require.Nil(t, e, "what it has is good enough")
		hasty, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := a.Do(hasty, toolCall())
		require.Equal(t, mcpbridge.Deadline, mcpbridge.AsError(err).Class)
		require.NoError(t, a.Close(context.Background()))
		require.Equal(t, mcpbridge.NotSent, (<-results).Class)
		require.NoError(t, life.Err(), "the other waits for it")
		logins <- "high"
		require.Nil(t, <-results)
		require.NoError(t, b.Close(context.Background()))
		require.NoError(t, life.Err(), "the handler may refresh tokens with it")

		h.source = static("low")
		_, d := open()
		go call(d)
		synctest.Wait()
		require.NoError(t, life.Err())
		require.NoError(t, d.Close(context.Background()))
		<-results
		synctest.Wait()
		require.ErrorIs(t, life.Err(), context.Canceled, "nobody waits for it")
		require.EqualValues(t, 2, h.authorized.Load())
		require.NoError(t, c.Close(context.Background()))
	})
}

// Those who waited for a new token do not send the old one once more, however slow the
// handler is.
func TestTokenThatWasReplacedIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := grants(""), newScript()
		h.source = static("old")
		h.next = func(context.Context, *http.Response) (oauth2.TokenSource, error) {
			time.Sleep(time.Second)
			return sourceFunc(func() (*oauth2.Token, error) {
				time.Sleep(time.Second)
				return &oauth2.Token{AccessToken: "new"}, nil
			}), nil
		}
		c := s.attach(t, with(mcpbridge.OAuth(h)))
		s.answer("tools/call", unless("new", refused, works))
		results := make(chan *mcpbridge.Error, 8)
		for range cap(results) {
			go func() {
				e, _ := do(c)
				results <- e
			}()
		}
		for range cap(results) {
			require.Nil(t, <-results)
		}
		require.EqualValues(t, 1, h.authorized.Load())
		require.NoError(t, c.Close(context.Background()))
	})
}

func TestLoginThatFailsIsTheCallers(t *testing.T) {
	h, s := grants(""), newScript()
	c := s.attach(t, with(mcpbridge.OAuth(h)))
	s.answer("tools/call", refused)
	h.next = func(context.Context, *http.Response) (oauth2.TokenSource, error) {
		return nil, fmt.Errorf("token exchange failed: %w", &oauth2.RetrieveError{ErrorCode: "access_denied", Body: []byte("hush")})
	}
	e, _ := do(c)
	require.Equal(t, mcpbridge.Unauthorized, e.Class)
	require.Equal(t, "401 Unauthorized, and the credentials could not be refreshed: the authorization server refuses: access_denied", e.Detail)
	h.next = func(context.Context, *http.Response) (oauth2.TokenSource, error) { panic("at the door") }
	e, _ = do(c)
	require.Equal(t, mcpbridge.Internal, e.Class)
	require.Contains(t, e.Detail, "panic: at the door")
	require.NoError(t, c.Close(context.Background()))
}

// mint is an authorization server for client credentials, and a resource that wants
// its tokens.
type mint struct {
	*httptest.Server
	issued   atomic.Int32
	lifetime int // of tokens, in seconds
	resource http.Handler
}

func (m *mint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reply := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v)
	}
	switch {
	case r.URL.Path == "/token" && r.FormValue("client_secret") != "the-client-secret":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		reply(map[string]string{"error": "invalid_client", "error_description": "not with " + r.FormValue("client_secret")})
	case r.URL.Path == "/token":
		reply(map[string]any{"access_token": fmt.Sprintf("minted-%d", m.issued.Add(1)), "token_type": "Bearer", "expires_in": m.lifetime})
	case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource"):
		reply(oauthex.ProtectedResourceMetadata{Resource: m.URL + "/mcp", AuthorizationServers: []string{m.URL}})
	case r.URL.Path == "/.well-known/oauth-authorization-server":
		reply(map[string]any{
			"issuer": m.URL, "token_endpoint": m.URL + "/token", "authorization_endpoint": m.URL + "/authorize",
			"response_types_supported": []string{"code"}, "grant_types_supported": []string{"client_credentials"},
			"token_endpoint_auth_methods_supported": []string{"client_secret_post"}, "code_challenge_methods_supported": []string{"S256"},
		})
	case r.URL.Path != "/mcp":
		http.NotFound(w, r)
	case !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer minted-"):
		w.Header().Set("WWW-Authenticate", "Bearer resource_metadata="+m.URL+"/.well-known/oauth-protected-resource/mcp")
		w.WriteHeader(http.StatusUnauthorized)
	default:
		m.resource.ServeHTTP(w, r)
	}
}

// The SDK's own handler stands neither many goroutines, nor the end of the context
// that it authorized with.
func TestClientCredentialsServeManySessions(t *testing.T) {
	server := newTools()
	m := &mint{lifetime: 1, resource: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)}
	m.Server = httptest.NewServer(m)
	defer m.Close()
	defer m.CloseClientConnections()
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	dialWith := func(secret string) (dialAs func(scope string) (dial.Conn, *mcpbridge.Error), end func()) {
		h, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
			Credentials: &oauthex.ClientCredentials{ClientID: "me", ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: secret}},
			HTTPClient:  client,
		})
		require.NoError(t, err)
		bridge := New([]mcpbridge.Server{{Name: "test", URL: m.URL + "/mcp", Auth: mcpbridge.OAuth(h)}}, nil)
		return func(scope string) (dial.Conn, *mcpbridge.Error) {
			c, err := bridge.Dial(context.Background(), dial.Request{Key: messages.Key{Server: "test", Scope: scope}, Down: func(*mcpbridge.Error) {}})
			return c, mcpbridge.AsError(err)
		}, bridge.Close
	}

	dialAs, end := dialWith("the-client-secret")
	defer end()
	type dialed struct {
		dial.Conn
		e *mcpbridge.Error
	}
	results := make(chan dialed)
	for i := range 8 {
		go func() {
			c, e := dialAs(fmt.Sprint(i))
			results <- dialed{c, e}
		}()
	}
	var open []dial.Conn
	for range 8 {
		d := <-results
		require.Nil(t, d.e)
		open = append(open, d)
	}
	for i, c := range open { // their tokens end at once
		for range 3 {
			e, _ := do(c)
			require.Nil(t, e)
		}
		if i < len(open)-1 {
			require.NoError(t, c.Close(context.Background()))
		}
	}
	e, _ := do(open[len(open)-1])
	require.Nil(t, e)
	require.NoError(t, open[len(open)-1].Close(context.Background()))
	require.Greater(t, m.issued.Load(), int32(8))

	dialAs, end = dialWith("the-wrong-secret")
	defer end()
	_, e = dialAs("a")
	require.Equal(t, mcpbridge.Unauthorized, e.Class, "%v", e)
	require.Contains(t, e.Detail, "the authorization server refuses: invalid_client")
	require.NotContains(t, e.Detail, "secret")
}
