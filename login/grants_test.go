package login_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/login"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

func newLogin(t *testing.T, cfg login.Config) *login.Login {
	t.Helper()
	l, err := login.New(cfg)
	require.NoError(t, err)
	return l
}

// keyFile writes a new private key into a file.
func keyFile(t *testing.T) (path string, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	return path, key
}

func TestClientAuthenticatesAsTheAuthorizationServerWants(t *testing.T) {
	path, key := keyFile(t)
	for name, c := range map[string]struct {
		methods []string
		client  login.Client
		check   func(t *testing.T, a *authority, req *http.Request)
	}{
		"secret in a header": {[]string{"client_secret_basic"}, login.Client{ID: "me:/", Secret: "s&c"}, func(t *testing.T, _ *authority, req *http.Request) {
			user, password := basic(req)
			require.Equal(t, []string{"me:/", "s&c"}, []string{user, password})
			require.Empty(t, req.PostForm.Get("client_secret"))
		}},
		"secret in a header, by default": {nil, login.Client{ID: "me", Secret: "secret"}, func(t *testing.T, _ *authority, req *http.Request) {
			_, password := basic(req)
			require.Equal(t, "secret", password)
		}},
		"secret in the body": {[]string{"client_secret_post", "client_secret_basic"}, login.Client{ID: "me", Secret: "secret"}, func(t *testing.T, _ *authority, req *http.Request) {
			require.Equal(t, "secret", req.PostForm.Get("client_secret"))
			require.Equal(t, "me", req.PostForm.Get("client_id"))
		}},
		"key": {[]string{"private_key_jwt"}, login.Client{ID: "me", KeyFile: path}, func(t *testing.T, a *authority, req *http.Request) {
			require.Equal(t, "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", req.PostForm.Get("client_assertion_type"))
			claims := verify(t, req.PostForm.Get("client_assertion"), &key.PublicKey)
			require.Equal(t, []any{"me", "me", a.URL}, []any{claims["iss"], claims["sub"], claims["aud"]})
			require.NotEmpty(t, claims["jti"])
			require.InDelta(t, 300, claims["exp"].(float64)-claims["iat"].(float64), 0)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			a.methods = c.methods
			var seen *http.Request
			a.accept = func(req *http.Request) string { seen = req; return "" }
			s := newSite(t, a.URL)
			l := newLogin(t, login.Config{Grant: login.ClientCredentials{Client: c.client}})
			token, err := l.Token()
			require.NoError(t, err)
			require.Nil(t, token, "the server has not said what it asks for")
			require.NoError(t, l.Authorize(t.Context(), first(s.refusal(t, 401, "", "")), second(s.refusal(t, 401, "", ""))))
			token, err = l.Token()
			require.NoError(t, err)
			require.Equal(t, "access-1", token.AccessToken)
			require.Equal(t, "client_credentials", seen.PostForm.Get("grant_type"))
			require.Equal(t, s.URL+"/mcp", seen.PostForm.Get("resource"))
			require.Equal(t, "read", seen.PostForm.Get("scope"))
			c.check(t, a, seen)
		})
	}
}

func first(req *http.Request, _ *http.Response) *http.Request    { return req }
func second(_ *http.Request, resp *http.Response) *http.Response { return resp }

// authorize passes a refusal to a login.
func authorize(t *testing.T, l *login.Login, s *site, status int, token, challenge string) error {
	t.Helper()
	req, resp := s.refusal(t, status, token, challenge)
	return l.Authorize(t.Context(), req, resp)
}

func TestClocksMayDifferByMinutes(t *testing.T) {
	path, key := keyFile(t)
	for _, ahead := range []time.Duration{5 * time.Minute, -6 * time.Minute} {
		a := newAuthority(t)
		a.ahead = ahead
		a.accept = func(req *http.Request) string {
			claims := verify(t, req.PostForm.Get("client_assertion"), &key.PublicKey)
			now := float64(time.Now().Add(ahead).Unix())
			if now < claims["iat"].(float64)-10 || now > claims["exp"].(float64) {
				return "invalid_client"
			}
			return ""
		}
		l := newLogin(t, login.Config{Grant: login.ClientCredentials{Client: login.Client{ID: "me", KeyFile: path}}})
		require.NoError(t, authorize(t, l, newSite(t, a.URL), 401, "", ""), ahead)
	}
}

func TestTokenOfAWorkloadIsReadAgain(t *testing.T) {
	a := newAuthority(t)
	s := newSite(t, a.URL)
	path := filepath.Join(t.TempDir(), "token")
	l := newLogin(t, login.Config{Grant: login.WorkloadIdentity{TokenFile: path, Client: login.Client{ID: "work"}}})
	err := authorize(t, l, s, 401, "", "")
	require.ErrorContains(t, err, "the token of the workload: ")
	for i := range 3 {
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "jwt-%d\n", i), 0o600))
		refused := ""
		if i > 0 {
			refused = fmt.Sprint("access-", i)
		}
		require.NoError(t, authorize(t, l, s, 401, refused, ""))
		form := a.requests()[i]
		require.Equal(t, "urn:ietf:params:oauth:grant-type:jwt-bearer", form.Get("grant_type"))
		require.Equal(t, []string{fmt.Sprint("jwt-", i), "work"}, []string{form.Get("assertion"), form.Get("client_id")})
	}
}

func TestPersonOfACompanyHasATokenByItsIdentityProvider(t *testing.T) {
	a, provider := newAuthority(t), newAuthority(t)
	s := newSite(t, a.URL)
	l := newLogin(t, login.Config{Scopes: []string{"mail"}, Grant: login.Enterprise{
		Provider: provider.URL, ProviderClient: login.Client{ID: "at-provider"},
		IDToken: func(context.Context) (string, error) { return "id-token", nil },
		Client:  login.Client{ID: "me", Secret: "secret"},
	}})
	require.NoError(t, authorize(t, l, s, 401, "", ""))
	form := provider.requests()[0]
	for name, want := range map[string]string{
		"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
		"subject_token": "id-token", "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
		"audience": a.URL, "resource": s.URL + "/mcp", "scope": "mail", "client_id": "at-provider",
	} {
		require.Equal(t, want, form.Get(name), name)
	}
	form = a.requests()[0]
	require.Equal(t, "urn:ietf:params:oauth:grant-type:jwt-bearer", form.Get("grant_type"))
	require.Equal(t, "access-1", form.Get("assertion"))
	require.Contains(t, a.headers[0].Get("Authorization"), "Basic ")

	provider.accept = func(*http.Request) string { return "invalid_grant" }
	err := authorize(t, l, s, 401, "access-1", "")
	var e *mcpbridge.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "no token from "+a.URL+": the identity provider "+provider.URL+": the authorization server refuses: invalid_grant", e.Detail)
	require.Equal(t, "log in at the identity provider again, or ask those who run it", e.Remedy)
	provider.accept = func(*http.Request) string { return "invalid_client" }
	require.ErrorAs(t, authorize(t, l, s, 401, "access-1", ""), &e)
	require.Equal(t, "check the ID of the client at the identity provider, and its secret or key", e.Remedy)
	require.Len(t, a.requests(), 1)
}

func TestMissingScopesAreAskedForWithTheOthers(t *testing.T) {
	a := newAuthority(t)
	s := newSite(t, a.URL)
	l := newLogin(t, login.Config{Grant: login.ClientCredentials{Client: login.Client{ID: "me", Secret: "secret"}}})
	require.NoError(t, authorize(t, l, s, 401, "", `Bearer scope="read list"`))
	require.NoError(t, authorize(t, l, s, 403, "access-1", `Bearer error="insufficient_scope", scope="write"`))
	require.Equal(t, "read list", a.requests()[0].Get("scope"))
	require.Equal(t, "list read write", a.requests()[1].Get("scope"))
}

func TestClientSendsNothingToAnotherAuthorizationServer(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	grant := login.ClientCredentials{Client: login.Client{ID: "me", Secret: "secret", Issuer: a.URL + "/"}}
	err := authorize(t, newLogin(t, login.Config{Grant: grant}), newSite(t, other.URL), 401, "", "")
	require.ErrorContains(t, err, "the server uses the authorization server "+other.URL+", and not "+a.URL)
	require.NoError(t, authorize(t, newLogin(t, login.Config{Grant: grant}), newSite(t, other.URL, a.URL), 401, "", ""))

	grant.Client.Issuer = ""
	s := newSite(t, a.URL)
	l := newLogin(t, login.Config{Grant: grant})
	require.NoError(t, authorize(t, l, s, 401, "", ""))
	s.metadata["authorization_servers"] = []string{other.URL}
	err = authorize(t, l, s, 401, "access-2", "")
	require.ErrorContains(t, err, "and not "+a.URL+", at which the client is registered")
	require.Empty(t, other.requests())
}

func TestTokenRequestIsNotRedirectedWhateverTheClient(t *testing.T) {
	other := newAuthority(t)
	for _, client := range []*http.Client{nil, {}, {Transport: http.DefaultTransport}} {
		a := newAuthority(t)
		handler := a.Config.Handler
		a.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodPost {
				http.Redirect(w, req, other.URL+"/token", http.StatusTemporaryRedirect)
				return
			}
			handler.ServeHTTP(w, req)
		})
		l := newLogin(t, login.Config{HTTPClient: client, Grant: login.ClientCredentials{Client: login.Client{ID: "me", Secret: "secret"}}})
		require.ErrorContains(t, authorize(t, l, newSite(t, a.URL), 401, "", ""), "the authorization server refuses: 307 Temporary Redirect")
		require.Empty(t, other.requests())
	}
}

// A store may have a login of an earlier configuration.
func TestClientSendsNothingToTheAuthorizationServerOfAnEarlierLogin(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	s := newSite(t, a.URL)
	grant := login.ClientCredentials{Client: login.Client{ID: "me", Secret: "secret", Issuer: a.URL}}
	l := newLogin(t, login.Config{ID: "one", Store: new(login.Memory), Grant: grant})
	for _, issuer := range []string{other.URL, ""} {
		earlier := kept(other, s, time.Now().Add(-time.Minute))
		earlier.Issuer = issuer
		require.NoError(t, l.Keep(t.Context(), earlier))
		token, err := l.Token()
		require.NoError(t, err)
		require.Nil(t, token, "the server is asked first")
	}
	require.NoError(t, authorize(t, l, s, 401, "", ""))
	token, err := l.Token()
	require.NoError(t, err)
	require.Equal(t, "access-1", token.AccessToken)
	require.Empty(t, other.requests())
}

func TestServerWithoutMetadataNeedsTheIssuerOfTheClient(t *testing.T) {
	a := newAuthority(t)
	s := newSite(t)
	s.metadata = nil
	grant := login.ClientCredentials{Client: login.Client{ID: "me", Secret: "secret"}}
	err := authorize(t, newLogin(t, login.Config{Grant: grant}), s, 401, "", "")
	require.ErrorContains(t, err, "does not say which authorization server it uses")
	s.metadata = map[string]any{"resource": "https://elsewhere.example/mcp", "authorization_servers": []string{a.URL}}
	err = authorize(t, newLogin(t, login.Config{Grant: grant}), s, 401, "", "")
	require.ErrorContains(t, err, "the metadata of the server is for the resource https://elsewhere.example/mcp")
	s.metadata = nil
	grant.Client.Issuer = a.URL
	require.NoError(t, authorize(t, newLogin(t, login.Config{Grant: grant}), s, 401, "", ""))
	require.Equal(t, s.URL+"/mcp", a.requests()[0].Get("resource"))
	req, resp := s.refusal(t, 401, "", "")
	req.URL.User = url.UserPassword("user", "hush")
	require.NoError(t, newLogin(t, login.Config{Grant: grant}).Authorize(t.Context(), req, resp))
	require.Equal(t, s.URL+"/mcp", a.requests()[1].Get("resource"), "without the password")
}

func TestErrorsHideWhatAnAuthorizationServerSays(t *testing.T) {
	a := newAuthority(t)
	s := newSite(t, a.URL)
	grant := login.ClientCredentials{Client: login.Client{ID: "me", Secret: "hush"}}
	a.accept = func(*http.Request) string { return "the secret is hush\n" }
	err := authorize(t, newLogin(t, login.Config{Grant: grant}), s, 401, "", "")
	require.ErrorContains(t, err, "the authorization server refuses: 400 Bad Request; ask those who run the authorization server")
	a.accept = func(*http.Request) string { return "" }
	a.answer = map[string]any{"access_token": "a", "expires_in": "hush"}
	err = authorize(t, newLogin(t, login.Config{Grant: grant}), s, 401, "", "")
	require.ErrorContains(t, err, "the answer of the authorization server is malformed; ask those")
	a.answer = map[string]any{"access_token": "hush\r\nX-Other: header"}
	l := newLogin(t, login.Config{Grant: grant})
	err = authorize(t, l, s, 401, "", "")
	require.EqualError(t, err, "the authorization server gives a token with a control character, such as the end of a line")
	r, err := l.Kept(t.Context())
	require.NoError(t, err)
	require.Nil(t, r)

	s.metadata["authorization_servers"] = []string{"https://other.example\nforged"}
	grant.Client.Issuer = a.URL
	err = authorize(t, newLogin(t, login.Config{Grant: grant}), s, 401, "", "")
	require.ErrorContains(t, err, "the authorization server https://other.example forged, and not ")
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	a := newAuthority(t)
	s := newSite(t, a.URL)
	for code, remedy := range map[string]string{
		"invalid_client": "check the ID", "unauthorized_client": "allow this client the grant", "invalid_scope": "check the scopes",
		"invalid_target": "allow this client the server", "invalid_grant": "check the token of the workload",
	} {
		a.accept = func(*http.Request) string { return code }
		l := newLogin(t, login.Config{Grant: login.WorkloadIdentity{Token: func(context.Context) (string, error) { return "jwt", nil }}})
		err := authorize(t, l, s, 401, "", "")
		var e *mcpbridge.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, mcpbridge.Unauthorized, e.Class)
		require.Contains(t, e.Remedy, remedy)
		require.Equal(t, "no token from "+a.URL+": the authorization server refuses: "+code, e.Detail)
	}
	before := len(a.requests())
	l := newLogin(t, login.Config{Grant: login.WorkloadIdentity{Token: func(context.Context) (string, error) { return "", errors.New("none today") }}})
	require.ErrorContains(t, authorize(t, l, s, 401, "", ""), "the token of the workload: none today")
	require.Len(t, a.requests(), before, "nothing is asked without it")
}

func TestCauseHasNoTextOfAnAuthorizationServer(t *testing.T) {
	refused := &oauth2.RetrieveError{ErrorCode: "invalid_grant", ErrorDescription: "the token hush is unknown"}
	require.Equal(t, "first: the authorization server refuses: invalid_grant", login.CauseOf(fmt.Errorf("first: %w", refused)))
	refused = &oauth2.RetrieveError{Response: &http.Response{StatusCode: 502, Status: "502 the token hush"}, Body: []byte("the token hush is unknown")}
	require.Equal(t, "the authorization server refuses: 502 Bad Gateway", login.CauseOf(refused))
	require.Equal(t, "none today", login.CauseOf(errors.New("none today")))
}

func TestNewNamesTheFieldThatIsWrong(t *testing.T) {
	id := func(context.Context) (string, error) { return "", nil }
	for want, cfg := range map[string]login.Config{
		"ID is empty":                           {Store: new(login.Memory)},
		"Client has neither a Secret nor a Key": {Grant: login.ClientCredentials{Client: login.Client{ID: "me"}}},
		"Client has no ID":                      {Grant: login.ClientCredentials{Client: login.Client{Secret: "s"}}},
		"Client has a Secret and a Key":         {Grant: login.ClientCredentials{Client: login.Client{ID: "me", Secret: "s", KeyFile: "f"}}},
		"has neither TokenFile nor Token":       {Grant: login.WorkloadIdentity{}},
		"has both TokenFile and Token":          {Grant: login.WorkloadIdentity{TokenFile: "f", Token: id}},
		"Client Issuer is no URL":               {Grant: login.WorkloadIdentity{TokenFile: "f", Client: login.Client{Issuer: "x"}}},
		"Client Issuer is not over https":       {Grant: login.WorkloadIdentity{TokenFile: "f", Client: login.Client{Issuer: "http://a.example"}}},
		"Provider is no URL":                    {Grant: login.Enterprise{IDToken: id}},
		"ProviderClient has no ID":              {Grant: login.Enterprise{IDToken: id, ProviderClient: login.Client{Secret: "s"}}},
		"has neither IDTokenFile nor IDToken":   {Grant: login.Enterprise{Provider: "https://p.example"}},
	} {
		_, err := login.New(cfg)
		require.ErrorContains(t, err, want)
	}
}
