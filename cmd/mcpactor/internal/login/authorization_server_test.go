package login

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"
)

// scripted is an MCP server and its authorization server, which says what a test wants. The real one is in tests/real.
type scripted struct {
	*httptest.Server
	authorization string // the endpoint, or empty for its own
	registration  string // the answer, or empty for a good one
	resource      string // that the metadata names, or empty for the URL of the MCP server
	answer        func(w http.ResponseWriter, form url.Values)

	mu    sync.Mutex
	forms []url.Values // of the token endpoint
}

// newScripted starts a server. Logins are kept in a folder of the test, and no browser opens.
func newScripted(t *testing.T) *scripted {
	t.Helper()
	for _, name := range []string{"XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("PATH", "")
	s := &scripted{}
	s.answer = func(w http.ResponseWriter, _ url.Values) {
		s.mu.Lock()
		defer s.mu.Unlock()
		reply(w, 200, map[string]any{"access_token": fmt.Sprintf("access-%d", len(s.forms)), "refresh_token": fmt.Sprintf("refresh-%d", len(s.forms)), "token_type": "Bearer", "expires_in": 3600})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{"resource": cmp.Or(s.resource, s.url()), "authorization_servers": []string{s.URL}, "scopes_supported": []string{"read", "write"}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		endpoint := s.URL + "/authorize"
		if s.authorization != "" {
			endpoint = s.authorization
		}
		reply(w, 200, map[string]any{
			"issuer": s.URL, "authorization_endpoint": endpoint, "token_endpoint": s.URL + "/token",
			"registration_endpoint": s.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
		})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, _ *http.Request) {
		if s.registration != "" {
			io.WriteString(w, s.registration)
			return
		}
		reply(w, 201, map[string]any{"client_id": "registered", "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, req *http.Request) {
		req.ParseForm()
		s.mu.Lock()
		s.forms = append(s.forms, req.PostForm)
		s.mu.Unlock()
		s.answer(w, req.PostForm)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

// url is that of the MCP server.
func (s *scripted) url() string { return s.URL + "/mcp" }

// requests returns what was asked of the token endpoint.
func (s *scripted) requests() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forms
}

// login returns the login of a process.
func (s *scripted) login(t *testing.T, o Options) *Login {
	t.Helper()
	if o.Err == nil {
		o.Err = io.Discard
	}
	l, err := New(s.url(), o)
	require.NoError(t, err)
	return l
}

// keep keeps a login, as if somebody had logged in.
func (s *scripted) keep(t *testing.T, access string, expiry time.Time) {
	t.Helper()
	f, err := fileOf(s.url())
	require.NoError(t, err)
	unlock, _, err := f.lock(t.Context(), refreshing)
	require.NoError(t, err)
	defer unlock()
	require.NoError(t, f.write(&record{
		Server: s.url(), Resource: s.url(), Token: &oauth2.Token{AccessToken: access, RefreshToken: "refresh-" + access, Expiry: expiry},
		Client: &oauth2.Config{ClientID: "kept", Endpoint: oauth2.Endpoint{TokenURL: s.URL + "/token", AuthStyle: oauth2.AuthStyleInParams}},
	}))
}

// refuse has a login authorize a request that the server refuses with a status.
func (s *scripted) refuse(t *testing.T, l *Login, status int, token string) error {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.url(), nil)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: req}
	if status == http.StatusForbidden {
		resp.Header.Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="files:write"`)
	}
	return l.Authorize(t.Context(), req, resp)
}

// screen is where the program writes for a person. The person opens each address with open.
type screen struct {
	open func(address *url.URL)

	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.Lines(string(data)) {
		if address, err := url.Parse(strings.TrimSpace(line)); err == nil && address.Query().Has("code_challenge") && s.open != nil {
			go s.open(address)
		}
	}
	return s.text.Write(data)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// back comes back from the authorization server with an answer.
func back(t *testing.T, address *url.URL, answer url.Values) string {
	to := address.Query().Get("redirect_uri")
	if !answer.Has("state") {
		answer.Set("state", address.Query().Get("state"))
	}
	resp, err := http.Get(to + "?" + answer.Encode())
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(page)
}

// write writes the file of a login.
func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}
