//go:build real

package real

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/proof"
	"github.com/mcpactor/mcpactor/internal/proof/prooftest"
	"github.com/mcpactor/mcpactor/login"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
)

// skew is more than the clocks of a client and a server may differ by in the libraries of both.
const skew = 330 // seconds

// member is a supervisor with a login of its own, as each member of a cluster has.
type member struct {
	*login.Login
	sup *supervisor.Supervisor
}

func (o *hosted) member(cfg login.Config) *member {
	o.t.Helper()
	l, err := login.New(cfg)
	require.NoError(o.t, err)
	sup, err := supervisor.Start(o.system, supervisor.Config{Servers: []mcpbridge.Server{{Name: "hosted", URL: o.url, Auth: mcpbridge.OAuth(l)}}})
	require.NoError(o.t, err)
	o.t.Cleanup(func() { // before the server ends
		ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
		defer cancel()
		require.NoError(o.t, sup.Stop(ctx))
	})
	return &member{l, sup}
}

// call calls the tool, and returns the user.
func (m *member) call(o *hosted) (string, error) {
	result, err := m.sup.Client().CallTool(o.t.Context(), "hosted", "", &mcp.CallToolParams{Name: "who"})
	if err != nil {
		return "", err
	}
	return text(o.t, result), nil
}

// token returns the access token that is kept.
func (m *member) token(o *hosted) string {
	o.t.Helper()
	r, err := m.Kept(o.t.Context())
	require.NoError(o.t, err)
	require.NotNil(o.t, r)
	return r.Token.AccessToken
}

// machines are clients of an authorization server without a person, with what they need.
type machines struct {
	issuer   *issuer    // of the tokens of workloads
	identity *authority // the identity provider of an enterprise
	key      *ecdsa.PrivateKey
}

const machineSecret = "secret+of/the machine" // which is not the same in a URL

func (h *harness) newMachines(ahead int) *machines {
	h.t.Helper()
	key, err := proof.NewKey()
	require.NoError(h.t, err)
	return &machines{h.newIssuer(), h.newAuthority(provider{
		AccessSeconds: 3600, Ahead: ahead, Names: map[string]string{"at the provider": "enterprise"},
		Clients: []map[string]any{{
			"client_id": "at the provider", "client_secret": machineSecret, "redirect_uris": []string{"http://127.0.0.1/back"}, "application_type": "native",
			"grant_types": []string{"authorization_code", exchange},
		}},
	}), key}
}

// clients returns the clients as an authorization server knows them.
func (m *machines) clients() []map[string]any {
	one := func(id, grant, method string, more ...any) map[string]any {
		client := map[string]any{"client_id": id, "token_endpoint_auth_method": method, "grant_types": []string{grant}, "redirect_uris": []string{}, "response_types": []string{}}
		for pair := range slices.Chunk(more, 2) {
			client[pair[0].(string)] = pair[1]
		}
		return client
	}
	keys := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: m.key.Public(), KeyID: "first", Algorithm: string(jose.ES256), Use: "sig"}}}
	return []map[string]any{
		one("header", "client_credentials", "client_secret_basic", "client_secret", machineSecret),
		one("body", "client_credentials", "client_secret_post", "client_secret", machineSecret),
		one("key", "client_credentials", "private_key_jwt", "jwks", keys),
		one("workload", jwtBearer, "none"),
		one("enterprise", jwtBearer, "client_secret_post", "client_secret", machineSecret),
	}
}

// Each grant gets tokens of a real authorization server, also if they are bound to a key, and if the clocks of both servers are five
// minutes ahead or behind. It gets one after the server has refused the first before its time.
func TestMachinesGetTokens(t *testing.T) {
	for name, c := range map[string]struct {
		proofs *prooftest.Checker
		p      provider
	}{
		"bearer tokens":                {nil, provider{}},
		"bearer tokens, clocks ahead":  {nil, provider{Ahead: skew}},
		"bearer tokens, clocks behind": {nil, provider{Ahead: -skew}},
		"bound tokens, with nonces":    {&prooftest.Checker{Nonces: 1}, provider{Nonces: true}},
		"bound tokens, clocks ahead":   {&prooftest.Checker{}, provider{Ahead: skew}},
		"bound tokens, clocks behind":  {&prooftest.Checker{}, provider{Ahead: -skew}},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && c.proofs == nil {
				t.Skip("those of bound tokens ask for more")
			}
			c.p.Closed = true
			o := newHosted(t, hosting{provider: c.p, proofs: c.proofs, machines: true})
			m := o.machines
			file := filepath.Join(o.dir, "token")
			require.NoError(t, os.WriteFile(file, []byte(m.issuer.sign(o.authority().URL, "job", time.Hour)), 0o600))
			for client, grant := range map[string]login.Grant{
				"header": login.ClientCredentials{Client: login.Client{ID: "header", Secret: machineSecret}},
				"body":   login.ClientCredentials{Client: login.Client{ID: "body", Secret: machineSecret}},
				"key":    login.ClientCredentials{Client: login.Client{ID: "key", Key: m.key, KeyID: "first"}},
				"job":    login.WorkloadIdentity{TokenFile: file, Client: login.Client{ID: "workload"}},
				account: login.Enterprise{
					Provider: m.identity.URL, ProviderClient: login.Client{ID: "at the provider", Secret: machineSecret}, IDTokenFile: filepath.Join(o.dir, "id"),
					Client: login.Client{ID: "enterprise", Secret: machineSecret},
				},
			} {
				if client == account {
					require.NoError(t, os.WriteFile(filepath.Join(o.dir, "id"), []byte(o.idToken(m.identity, "at the provider", machineSecret)), 0o600))
				}
				one := o.member(login.Config{Grant: grant})
				for range 2 {
					user, err := one.call(o)
					require.NoError(t, err, client)
					require.Equal(t, client, user)
					o.refused.Store(one.token(o), true)
				}
			}
			if c.proofs != nil && c.p.Ahead == 0 {
				require.NoError(t, c.proofs.Err())
			}
		})
	}
}

// A client is registered at one authorization server, and authenticates to no other one.
func TestMachineIsNotKnownToAnotherAuthorizationServer(t *testing.T) {
	o := newHosted(t, hosting{machines: true})
	one := o.member(login.Config{Grant: login.ClientCredentials{Client: login.Client{ID: "body", Secret: machineSecret}}})
	_, err := one.call(o)
	require.NoError(t, err)
	first := o.authority()
	o.move(provider{Clients: o.machines.clients()})
	_, err = one.call(o)
	require.ErrorContains(t, err, "the server uses the authorization server "+o.authority().URL+", and not "+first.URL)
	require.Zero(t, o.authority().asked("client_credentials"))
	require.Equal(t, 1, first.asked("client_credentials"))
	o.use(first)
	_, err = one.call(o)
	require.NoError(t, err)
}

// Whoever has copied a token cannot use it without its key.
func TestBoundTokenIsOfNoUseWithoutItsKey(t *testing.T) {
	o := newHosted(t, hosting{proofs: &prooftest.Checker{}, machines: true})
	one := o.member(login.Config{Grant: login.ClientCredentials{Client: login.Client{ID: "key", Key: o.machines.key, KeyID: "first"}}})
	_, err := one.call(o)
	require.NoError(t, err)
	kept, err := one.Kept(t.Context())
	require.NoError(t, err)
	own, _, err := proof.ParseKey(kept.Key)
	require.NoError(t, err)
	other, err := proof.NewKey()
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	send := func(scheme string, key crypto.Signer) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.url, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", scheme+" "+kept.Token.AccessToken)
		if key != nil {
			req, err = proof.Prove(req, key, kept.Token.AccessToken, proof.State{})
			require.NoError(t, err)
		}
		resp, err := client.Do(req)
		require.NoError(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	require.Equal(t, http.StatusUnauthorized, send("Bearer", nil))
	require.Equal(t, http.StatusUnauthorized, send("Bearer", own))
	require.Equal(t, http.StatusUnauthorized, send("DPoP", nil))
	require.Equal(t, http.StatusUnauthorized, send("DPoP", other))
	require.NotEqual(t, http.StatusUnauthorized, send("DPoP", own))
}

// The file with the token of a workload is read for each token. What is wrong with it is said without its text.
func TestTokenOfAWorkloadIsReadAgain(t *testing.T) {
	o := newHosted(t, hosting{machines: true})
	file := filepath.Join(o.dir, "token")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	one := o.member(login.Config{Grant: login.WorkloadIdentity{TokenFile: file, Client: login.Client{ID: "workload"}}})
	expired := o.machines.issuer.sign(o.authority().URL, "job", -time.Minute)
	write(expired)
	_, err := one.call(o)
	require.ErrorContains(t, err, "invalid_grant")
	require.NotContains(t, err.Error(), expired)
	for round := range 2 {
		token := o.machines.issuer.sign(o.authority().URL, "job", time.Duration(round+1)*time.Hour)
		write(token + "\n")
		if round == 0 { // the session is not tried again so soon
			require.NoError(t, one.sup.Client().Restart(t.Context(), "hosted", ""))
		}
		user, err := one.call(o)
		require.NoError(t, err)
		require.Equal(t, "job", user)
		require.True(t, o.authority().heard(token))
		o.refused.Store(one.token(o), true)
	}
}

// write writes the key of the client "key" into a file.
func (m *machines) write(t *testing.T, path string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(m.key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
}
