//go:build real

package real

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/proof/prooftest"
	"github.com/mcpactor/mcpactor/login"
)

// document serves the metadata document of a client over https, which this machine trusts. It returns its URL.
func document(t *testing.T) (url string) {
	t.Helper()
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{
			"client_id": url, "client_name": "mcpactor", "redirect_uris": []string{"http://127.0.0.1/callback"}, "application_type": "native",
			"token_endpoint_auth_method": "none", "grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
		})
	}))
	site.StartTLS()
	t.Cleanup(func() {
		site.CloseClientConnections()
		site.Close()
	})
	url = site.URL + "/client.json"
	authority := filepath.Join(t.TempDir(), "authority.pem")
	require.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: site.Certificate().Raw}), 0o600))
	t.Setenv("NODE_EXTRA_CA_CERTS", authority)
	t.Setenv("SSL_CERT_FILE", authority)
	return url
}

func TestClientIsKnownByItsDocument(t *testing.T) {
	url := document(t)
	o := newHosted(t, hosting{provider: provider{Documents: true}})
	stderr, _, status := o.login(nil, "--client-document", url)
	require.Zero(t, status, stderr)
	require.Contains(t, stderr, url, "the way is said")
	require.Equal(t, url, o.kept().Client.ClientID)
	all := o.several(2)
	o.refused.Store(o.kept().Token.Access, true)
	for _, answer := range all.call(o) {
		require.Contains(t, answer, `"`+account+`"`)
	}
	all.end(o)
	stdout, _, status := o.run("doctor", "--config", o.config)
	require.Zero(t, status)
	require.Contains(t, stdout, "document")
}

// A document that is not there is no way, which is said, and the next way is taken.
func TestClientWithoutADocumentRegisters(t *testing.T) {
	url := document(t)
	o := newHosted(t, hosting{provider: provider{Documents: true}})
	stderr, _, status := o.login(nil, "--client-document", url+".not")
	require.Zero(t, status, stderr)
	require.Contains(t, stderr, url+".not")
	require.NotContains(t, o.kept().Client.ClientID, url)
}

func TestServerThatRegistersNobodySaysSo(t *testing.T) {
	o := newHosted(t, hosting{provider: provider{Closed: true}})
	_, stderr, status := o.run("login", o.url)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "--client-id")
	stderr, _, status = o.login(nil, "--client-id", "given", "--redirect", o.redirect)
	require.Zero(t, status, stderr)
}

// A person logs in once for tokens that are bound to a key: all processes use it, and it is refreshed for them once.
func TestLoginIsBoundToAKey(t *testing.T) {
	for name, c := range map[string]*struct {
		proofs prooftest.Checker
		p      provider
	}{
		"without nonces": {},
		"with nonces":    {prooftest.Checker{Nonces: 4}, provider{Nonces: true}},
		"clocks ahead":   {prooftest.Checker{}, provider{Ahead: skew}},
		"clocks behind":  {prooftest.Checker{}, provider{Ahead: -skew}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newHosted(t, hosting{provider: c.p, proofs: &c.proofs})
			stderr, _, status := o.login(nil)
			require.Zero(t, status, stderr)
			all := o.several(3)
			for round := range 2 {
				o.refused.Store(o.kept().Token.Access, true)
				for _, answer := range all.call(o) {
					require.Contains(t, answer, `"`+account+`"`)
				}
				require.Equal(t, round+2, o.authority().given(), "for the login, and for each round")
			}
			login := o.kept() // which somebody has copied without its key
			said, err := o.authority().post(t.Context(), "/token", url.Values{
				"grant_type": {"refresh_token"}, "refresh_token": {login.Token.Refresh}, "client_id": {login.Client.ClientID}, "resource": {o.url},
			})
			require.NoError(t, err)
			require.Equal(t, "invalid_grant", said["error"])
			for _, answer := range all.call(o) {
				require.Contains(t, answer, `"`+account+`"`)
			}
			all.end(o)
			if c.p.Ahead == 0 {
				require.NoError(t, c.proofs.Err())
			}
		})
	}
}

// A token that the server would not take is not kept.
func TestAuthorizationServerThatBindsNoTokensIsNamed(t *testing.T) {
	o := newHosted(t, hosting{machines: true, proofs: &prooftest.Checker{}, provider: provider{Unbound: true}})
	const why = "the server asks for a token that is bound to a key (DPoP), and "
	stderr, _, status := o.login(nil)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, why+"the authorization server gives none")
	require.Empty(t, o.logins())
	_, err := o.member(login.Config{Grant: login.ClientCredentials{Client: login.Client{ID: "body", Secret: machineSecret}}}).call(o)
	require.ErrorContains(t, err, why+o.authority().URL+" gives none")
}

// Machines log in with the program, once, and need no browser.
func TestMachinesLogInWithTheProgram(t *testing.T) {
	o := newHosted(t, hosting{machines: true, proofs: &prooftest.Checker{}, provider: provider{Closed: true}})
	key := filepath.Join(o.dir, "key.pem")
	o.machines.write(t, key)
	for client, flags := range map[string][]string{"header": nil, "key": {"--client-key", key}} {
		env := o.env
		if flags == nil {
			o.env = append(o.env, "MCPACTOR_CLIENT_SECRET="+machineSecret)
		}
		_, stderr, status := o.run(append([]string{"login", o.url, "--client-credentials", "--client-id", client}, flags...)...)
		require.Zero(t, status, stderr)
		o.env = env
		for range 2 {
			stdout, stderr, status := o.call()
			require.Zero(t, status, stderr)
			require.Equal(t, client+"\n", stdout)
			o.refused.Store(o.kept().Token.Access, true)
		}
		require.NoFileExists(t, o.dir+"/opened")
	}
}

// The same is in a file, for all commands.
func TestMachinesAreInAFile(t *testing.T) {
	o := newHosted(t, hosting{machines: true, provider: provider{Closed: true}})
	files := map[string]string{"token": o.machines.issuer.sign(o.authority().URL, "job", time.Hour), "id": o.idToken(o.machines.identity, "at the provider", machineSecret)}
	for name, text := range files {
		files[name] = filepath.Join(o.dir, name)
		require.NoError(t, os.WriteFile(files[name], []byte(text), 0o600))
	}
	o.env = append(o.env, "MACHINE_SECRET="+machineSecret)
	for user, oauth := range map[string]map[string]any{
		"body": {"grant": "client_credentials", "clientId": "body", "clientSecret": "${env:MACHINE_SECRET}", "issuer": o.authority().URL},
		"job":  {"grant": "workload_identity", "clientId": "workload", "tokenFile": files["token"]},
		account: {
			"grant": "enterprise", "clientId": "enterprise", "clientSecret": machineSecret, "idTokenFile": files["id"],
			"provider": map[string]string{"issuer": o.machines.identity.URL, "clientId": "at the provider", "clientSecret": machineSecret},
		},
	} {
		data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"hosted": map[string]any{"url": o.url, "oauth": oauth}}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(o.config, data, 0o600))
		stdout, stderr, status := o.call("--log-level", "debug")
		require.Zero(t, status, stderr)
		require.Equal(t, user+"\n", stdout)
		require.NotContains(t, stderr, machineSecret)
		require.Empty(t, o.logins())
	}
}
