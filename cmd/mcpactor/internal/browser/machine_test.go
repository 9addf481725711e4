package browser

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/proof"
	"github.com/mcpactor/mcpactor/login"
)

// logInAs logs in as a client.
func (s *scripted) logInAs(t *testing.T, c login.Client, scopes ...string) error {
	t.Helper()
	m, err := NewMachine(s.url(), c, scopes)
	require.NoError(t, err)
	offered, err := m.Offer(t.Context())
	require.True(t, offered)
	require.Equal(t, err == nil, m.Worked())
	return err
}

func TestClientWithCredentialsNeedsNoPerson(t *testing.T) {
	key, err := proof.NewKey()
	require.NoError(t, err)
	jwk, err := proof.FormatKey(key)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "key.json")
	require.NoError(t, os.WriteFile(file, jwk, 0o600))
	for name, c := range map[string]login.Client{"secret": {ID: "machine", Secret: "hush"}, "key": {ID: "machine", KeyFile: file}} {
		t.Run(name, func(t *testing.T) {
			s := newScripted(t)
			s.metadata = map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_post", "private_key_jwt"}, "code_challenge_methods_supported": nil}
			require.NoError(t, s.logInAs(t, c, "read"))
			way, kept := Kept(s.url())
			require.True(t, kept)
			require.Equal(t, "client_credentials", way)

			// Another process gets the next one, with the same credentials, and so does one after that.
			for range 2 {
				l := s.login(t, Options{})
				token, err := l.Token()
				require.NoError(t, err)
				require.NoError(t, s.refuse(t, l, http.StatusUnauthorized, token.AccessToken))
				next, err := l.Token()
				require.NoError(t, err)
				require.NotEqual(t, token.AccessToken, next.AccessToken)
			}
			require.Len(t, s.requests(), 3)
			for _, form := range s.requests() {
				require.Equal(t, "client_credentials", form.Get("grant_type"))
				require.Equal(t, "read", form.Get("scope"))
				require.Equal(t, s.url(), form.Get("resource"))
				require.Equal(t, c.Secret, form.Get("client_secret"))
				require.Equal(t, c.Secret == "", form.Has("client_assertion"))
			}
			found, err := Forget(s.url())
			require.NoError(t, err)
			require.True(t, found)
			detail, _ := remedyOf(t, s.refuse(t, s.login(t, Options{}), http.StatusUnauthorized, ""))
			require.Equal(t, "nobody has logged in", detail)
		})
	}
}

func TestClientThatIsRefusedChangesNothing(t *testing.T) {
	s := newScripted(t)
	s.keep(t, "token", future)
	s.answer = func(w http.ResponseWriter, _ url.Values) {
		reply(w, 401, map[string]any{"error": "invalid_client", "error_description": "hush"})
	}
	detail, remedy := remedyOf(t, s.logInAs(t, login.Client{ID: "machine", Secret: "hush"}))
	require.Contains(t, detail, "the authorization server refuses: invalid_client")
	require.NotContains(t, detail, "hush")
	require.Equal(t, "check the ID of the client at the authorization server, and its secret or key", remedy)
	require.Equal(t, "token", s.record(t).Token.AccessToken)
}

// A process that runs notices who has logged in since, a person or a client.
func TestProcessUsesTheLoginOfNow(t *testing.T) {
	s := newScripted(t)
	l := s.login(t, Options{})
	require.NoError(t, s.logInAs(t, login.Client{ID: "machine", Secret: "hush"}))
	token, err := l.Token()
	require.NoError(t, err)
	require.Equal(t, "access-1", token.AccessToken)
	require.NoError(t, s.refuse(t, l, http.StatusUnauthorized, "access-1"))
	require.Equal(t, "client_credentials", s.requests()[1].Get("grant_type"))

	require.NoError(t, s.logIn(t, Options{}).err) // it is the client of nobody else
	require.NoError(t, s.refuse(t, l, http.StatusUnauthorized, "access-2"))
	token, err = l.Token()
	require.NoError(t, err)
	require.Equal(t, "access-3", token.AccessToken)
	require.NoError(t, s.refuse(t, l, http.StatusUnauthorized, "access-3"))
	require.Equal(t, "refresh_token", s.requests()[3].Get("grant_type"))
}

// The secret of a client goes to no authorization server that the MCP server names later.
func TestClientLogsInAtItsAuthorizationServerOnly(t *testing.T) {
	s, other := newScripted(t), newScripted(t)
	require.NoError(t, s.logInAs(t, login.Client{ID: "machine", Secret: "hush"}))
	s.protected = map[string]any{"authorization_servers": []string{other.URL}}
	detail, remedy := remedyOf(t, s.refuse(t, s.login(t, Options{}), http.StatusUnauthorized, "access-1"))
	require.Contains(t, detail, "the server uses the authorization server "+other.URL+", and not "+s.URL)
	require.Contains(t, remedy, "register the client there")
	detail, _ = remedyOf(t, s.logInAs(t, login.Client{ID: "machine", Secret: "hush"}))
	require.Contains(t, detail, "and not "+s.URL)
	require.Empty(t, other.requests())
	detail, _ = remedyOf(t, s.logInAs(t, login.Client{ID: "another", Secret: "hush", Issuer: s.URL}))
	require.Contains(t, detail, "and not "+s.URL)
	require.Empty(t, other.requests())
	require.NoError(t, s.logInAs(t, login.Client{ID: "machine", Secret: "hush", Issuer: other.URL}), "the user says where it is registered now")
	require.NoError(t, s.logInAs(t, login.Client{ID: "another", Secret: "hush"}), "somebody has registered it there")
}
