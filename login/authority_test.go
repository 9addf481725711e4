package login_test

import (
	"crypto"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"
)

// authority is an authorization server that gives a token to each request that it accepts. A refresh token is valid once: a second
// use ends the login.
type authority struct {
	*httptest.Server
	methods []string // of client authentication
	// accept returns the code of OAuth with which a request is refused, or nothing.
	accept func(req *http.Request) string
	ahead  time.Duration // of our clock
	bound  bool          // tokens are bound to the key of the proof
	answer any           // to a request that is accepted; nil is a token

	mu      sync.Mutex
	forms   []url.Values
	headers []http.Header
	used    map[string]bool // refresh tokens
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{methods: []string{"client_secret_basic"}, accept: func(*http.Request) string { return "" }, used: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		a.reply(w, 200, map[string]any{"issuer": a.URL, "token_endpoint": a.URL + "/token", "token_endpoint_auth_methods_supported": a.methods})
	})
	mux.HandleFunc("/token", a.token)
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

func (a *authority) reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Date", time.Now().Add(a.ahead).UTC().Format(http.TimeFormat))
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

func (a *authority) token(w http.ResponseWriter, req *http.Request) {
	req.ParseForm()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forms, a.headers = append(a.forms, req.PostForm), append(a.headers, req.Header)
	code := a.accept(req)
	if refresh := req.PostForm.Get("refresh_token"); refresh != "" && code == "" {
		if a.used[refresh] {
			code = "invalid_grant"
		}
		a.used[refresh] = true
	}
	if code != "" {
		a.reply(w, 400, map[string]any{"error": code, "error_description": "a secret of the server"})
		return
	}
	if a.answer != nil {
		a.reply(w, 200, a.answer)
		return
	}
	n, kind := len(a.forms), "Bearer"
	if a.bound {
		kind = "DPoP"
	}
	answer := map[string]any{"access_token": fmt.Sprint("access-", n), "token_type": kind, "expires_in": 3600}
	if req.PostForm.Get("grant_type") == "refresh_token" {
		answer["refresh_token"] = fmt.Sprint("refresh-", n)
	}
	if req.PostForm.Get("requested_token_type") != "" {
		answer["issued_token_type"], answer["token_type"] = req.PostForm.Get("requested_token_type"), "N_A"
	}
	a.reply(w, 200, answer)
}

// requests returns the token requests so far.
func (a *authority) requests() []url.Values {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.forms
}

// site is the place of an MCP server, with its metadata.
type site struct {
	*httptest.Server
	metadata map[string]any
}

func newSite(t *testing.T, issuers ...string) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/.well-known/oauth-protected-resource/mcp" || s.metadata == nil {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(s.metadata)
	}))
	t.Cleanup(s.Close)
	s.metadata = map[string]any{"resource": s.URL + "/mcp", "authorization_servers": issuers, "scopes_supported": []string{"read"}}
	return s
}

// refusal returns a request to the MCP server with a token, or without one, and the answer that refuses it.
func (s *site) refusal(t *testing.T, status int, token, challenge string) (*http.Request, *http.Response) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.URL+"/mcp", nil)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: req}
	if challenge != "" {
		resp.Header.Set("WWW-Authenticate", challenge)
	}
	return req, resp
}

// verify returns the claims of a JWT of a key.
func verify(t *testing.T, text string, key crypto.PublicKey) (claims map[string]any) {
	t.Helper()
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256})
	require.NoError(t, err)
	require.NoError(t, token.Claims(key, &claims))
	return claims
}

// basic returns the user and the password of a request, as OAuth encodes them.
func basic(req *http.Request) (user, password string) {
	user, password, _ = req.BasicAuth()
	user, _ = url.QueryUnescape(user)
	password, _ = url.QueryUnescape(password)
	return user, strings.TrimSpace(password)
}
