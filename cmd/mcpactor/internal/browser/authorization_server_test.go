package browser

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/login"
)

// scripted is an MCP server and its authorization server, which says what a test wants. The real one is in tests/real.
type scripted struct {
	*httptest.Server
	authorization string         // the endpoint that is named from the second request on, or empty for its own
	moved         string         // the authorization server that the metadata names from the second request on, or empty for this one
	registration  string         // the answer, or empty for a good one
	resource      string         // that the metadata names, or empty for the URL of the MCP server
	metadata      map[string]any // of the authorization server, in place of or beside what it has; nil takes a field away
	protected     map[string]any // of the MCP server, likewise
	answer        func(w http.ResponseWriter, form url.Values)

	mu     sync.Mutex
	asked  int          // for the metadata of the authorization server
	named  int          // for that of the MCP server
	forms  []url.Values // of the token endpoint
	proofs []string     // of the same requests, DPoP
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
		s.mu.Lock()
		s.named++
		issuer := s.URL
		if s.moved != "" && s.named > 1 {
			issuer = s.moved
		}
		s.mu.Unlock()
		reply(w, 200, with(map[string]any{"resource": cmp.Or(s.resource, s.url()), "authorization_servers": []string{issuer}, "scopes_supported": []string{"read", "write"}}, s.protected))
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		endpoint := s.URL + "/authorize"
		s.mu.Lock()
		s.asked++
		if s.authorization != "" && s.asked > 1 {
			endpoint = s.authorization
		}
		s.mu.Unlock()
		reply(w, 200, with(map[string]any{
			"issuer": s.URL, "authorization_endpoint": endpoint, "token_endpoint": s.URL + "/token",
			"registration_endpoint": s.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
		}, s.metadata))
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
		s.forms, s.proofs = append(s.forms, req.PostForm), append(s.proofs, req.Header.Get("DPoP"))
		s.mu.Unlock()
		s.answer(w, req.PostForm)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// with returns metadata with other fields.
func with(metadata, others map[string]any) map[string]any {
	maps.Copy(metadata, others)
	maps.DeleteFunc(metadata, func(_ string, value any) bool { return value == nil })
	return metadata
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
	require.NoError(t, s.login(t, Options{}).kept.Keep(t.Context(), &login.Record{
		Server: s.url(), Resource: s.url(), Token: &oauth2.Token{AccessToken: access, RefreshToken: "refresh-" + access, Expiry: expiry},
		Client: &oauth2.Config{ClientID: "kept", Endpoint: oauth2.Endpoint{TokenURL: s.URL + "/token", AuthStyle: oauth2.AuthStyleInParams}},
	}))
}

// record returns what is kept, or nil.
func (s *scripted) record(t *testing.T) *login.Record {
	t.Helper()
	r, err := s.login(t, Options{}).kept.Kept(t.Context())
	require.NoError(t, err)
	return r
}

// isKept reports whether a login is kept.
func (s *scripted) isKept() bool {
	_, kept := Kept(s.url())
	return kept
}

// path is that of the file of the login.
func (s *scripted) path(t *testing.T) string {
	t.Helper()
	folder, err := folderOf()
	require.NoError(t, err)
	return filepath.Join(string(folder), fmt.Sprintf("%x", sha256.Sum256([]byte(s.url()))))
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
