package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/browser"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
	"github.com/mcpactor/mcpactor/login"
)

func TestLoginIsForServersWithoutOtherCredentials(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "servers.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"mcpServers": {
		"hosted": {"url": "https://a.example/mcp"},
		"command": {"command": "true"},
		"scoped": {"url": "https://a.example/${scope}"},
		"off": {"url": "https://b.example/mcp", "oauth": false},
		"grant": {"url": "https://a.example/mcp", "oauth": {"grant": "workload_identity", "tokenFile": "/run/token"}},
		"token": {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer secret"}}
	}}`), 0o600))
	p := &cli.Program{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}
	for name, want := range map[string]string{
		"hosted": "", "command": "only a server at a URL", "scoped": "only a server at a URL", "token": "has credentials in the file",
		"off": "says that it has no login", "grant": "how it gets tokens without a person", "hostde": `did you mean "hosted"`,
	} {
		srv, _, err := (&loginTarget{Server: name, Config: file}).find(p)
		if want != "" {
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "https://a.example/mcp", srv.URL)
		require.NotNil(t, srv.Auth)
	}
	loaded, err := inputs.NewLoader(inputs.Flags{}, p).First(file)
	require.NoError(t, err)
	off, err := serverIn(loaded, "off")
	require.NoError(t, err)
	require.Nil(t, off.Auth, "nobody is told to log in")
	_, _, err = (&loginTarget{Server: "hosted"}).find(p)
	require.ErrorContains(t, err, "is no URL")
}

// hosted is an MCP server with a tool, which asks for a login at an authorization server with metadata. That knows a client.
func hosted(t *testing.T, metadata map[string]any) (url string) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	reply := func(body any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(body)
		}
	}
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", reply(map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}}))
	metadata["issuer"] = s.URL
	mux.HandleFunc("/.well-known/oauth-authorization-server", reply(metadata))
	metadata["token_endpoint"] = s.URL + "/token"
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		if id != "machine" || secret != "hush" || r.FormValue("grant_type") != "client_credentials" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			reply(map[string]string{"error": "invalid_client"})(w, r)
			return
		}
		reply(map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 3600})(w, r)
	})
	server := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return servertest.NewTools("echo") }, nil)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer access" {
			http.Error(w, "", http.StatusUnauthorized)
			return
		}
		server.ServeHTTP(w, r)
	})
	return s.URL + "/mcp"
}

func TestDoctorSaysWhatAnAuthorizationServerOffers(t *testing.T) {
	url := hosted(t, map[string]any{"client_id_metadata_document_supported": true, "registration_endpoint": "https://as.example/register"})
	var out, log strings.Builder
	require.Equal(t, cli.ExitFailed, run([]string{"doctor", url}, strings.NewReader(""), &out, &log), log.String())
	require.Contains(t, out.String(), "takes clients that you register, client documents, programs that register themselves; run: mcpactor login "+url)

	url = hosted(t, map[string]any{})
	file := filepath.Join(t.TempDir(), "servers.json")
	for said, next := range map[string]string{
		``: "run: mcpactor login --config " + file + " a, with --client-id and a client that you register there", `, "oauth": {"clientId": "mine"}`: "run: mcpactor login --config " + file + " a",
	} {
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers": {"a": {"url": %q%s}}}`, url, said), 0o600))
		out.Reset()
		require.Equal(t, cli.ExitFailed, run([]string{"doctor", "--json", "--config", file}, strings.NewReader(""), &out, &log), log.String())
		var answer struct{ Servers []*diagnosis }
		require.NoError(t, json.Unmarshal([]byte(out.String()), &answer))
		require.Equal(t, &browser.Offered{Issuer: strings.TrimSuffix(url, "/mcp")}, answer.Servers[0].LoginOffers)
		require.Equal(t, next, answer.Servers[0].Next)
	}
}

func TestDoctorSaysByWhichWayALoginWasMade(t *testing.T) {
	d := &diagnosis{LoggedIn: true, LoginWay: "document", ProtocolVersion: "2026-07-28"}
	require.Equal(t, "logged in by its client document, MCP 2026-07-28", d.names())
}

func TestClientLogsInWithoutABrowser(t *testing.T) {
	t.Setenv("MCPACTOR_CLIENT_SECRET", "wrong")
	url := hosted(t, map[string]any{})
	commands := func(args ...string) (status int, out, log string) {
		var stdout, stderr strings.Builder
		status = run(args, strings.NewReader(""), &stdout, &stderr)
		return status, stdout.String(), stderr.String()
	}
	logIn := []string{"login", url, "--client-credentials", "--client-id", "machine"}
	status, _, log := commands(logIn...)
	require.Equal(t, cli.ExitFailed, status)
	require.Contains(t, log, "the authorization server refuses: invalid_client; check the ID of the client at the authorization server, and its secret or key")
	status, _, log = commands("doctor", url)
	require.Equal(t, cli.ExitFailed, status, log)

	t.Setenv("MCPACTOR_CLIENT_SECRET", "hush")
	status, _, log = commands(logIn...)
	require.Equal(t, cli.ExitOK, status, log)
	require.Contains(t, log, "logged in at "+url+": 1 tool\n")
	require.NotContains(t, log, "hush")
	status, out, log := commands("doctor", url)
	require.Equal(t, cli.ExitOK, status, log)
	require.Contains(t, out, "logged in by client credentials")
	status, out, log = commands("doctor", "--json", url)
	require.Equal(t, cli.ExitOK, status, log)
	require.Contains(t, out, `"loggedIn":true,"loginWay":"client_credentials"`)
	status, _, log = commands("logout", url)
	require.Equal(t, cli.ExitOK, status, log)

	folder := login.Folder(filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "mcpactor", "logins"))
	kept, err := login.New(login.Config{ID: url, Store: folder})
	require.NoError(t, err)
	require.NoError(t, kept.Keep(t.Context(), &login.Record{
		Server: url, Resource: url, Issuer: strings.TrimSuffix(url, "/mcp"), Machine: true,
		Client: &oauth2.Config{ClientID: "machine", ClientSecret: "old"}, Token: &oauth2.Token{AccessToken: "old", Expiry: time.Now().Add(-time.Hour)},
	}))
	_, out, _ = commands("doctor", "--json", url)
	require.Contains(t, out, `"next":"check the ID of the client at the authorization server, and its secret or key"`)
	require.NotContains(t, out, "loginOffers", "nobody can log in there")
	_, _, _ = commands("logout", url)

	file := filepath.Join(t.TempDir(), "servers.json")
	for secret, said := range map[string]string{"hush": `"loggedIn":true,"loginWay":"client_credentials"`, "wrong": `"tools":0,"loginWay":"client_credentials"`} {
		grant := fmt.Sprintf(`{"grant": "client_credentials", "clientId": "machine", "clientSecret": %q}`, secret)
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers": {"a": {"url": %q, "oauth": %s}}}`, url, grant), 0o600))
		_, out, _ = commands("doctor", "--json", "--config", file)
		require.Contains(t, out, said)
	}
	status, _, _ = commands("doctor", url)
	require.Equal(t, cli.ExitFailed, status)
}

func TestFlagsOfALoginThatDoNotGoTogether(t *testing.T) {
	t.Setenv("MCPACTOR_CLIENT_SECRET", "")
	url := "https://a.example"
	for want, args := range map[string][]string{
		"has no effect with the client":         {"--client-document", "https://a.example/c.json", "--client-id", "me"},
		"--client-key: is for --client-cred":    {"--client-key", "key.pem"},
		"--issuer: is for --client-credentials": {"--issuer", "https://a.example"},
		"--issuer: is not over https":           {"--client-credentials", "--client-id", "me", "--client-key", "key.pem", "--issuer", "http://a.example"},
		"no browser comes back":                 {"--client-credentials", "--redirect", "http://127.0.0.1:1/"},
		"the client needs --client-id":          {"--client-credentials", "--client-key", "key.pem"},
		"either a secret in MCPACTOR_CLIENT_SE": {"--client-credentials", "--client-id", "me"},
		"none.pem":                              {"--client-credentials", "--client-id", "me", "--client-key", "none.pem"},
		"or --client-key":                       {"--client-credentials", "--client-id", "me", "--client-key", "key.pem", "--client-secret", "s"},
	} {
		var log strings.Builder
		require.Equal(t, cli.ExitUsage, run(append([]string{"login", url}, args...), strings.NewReader(""), io.Discard, &log), want)
		require.Contains(t, log.String(), want)
	}
}
