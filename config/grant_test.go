package config_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/login"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// withOAuth returns a file with a server that has an object oauth.
func withOAuth(fields string) []byte {
	return []byte(`{"mcpServers": {"a": {"url": "https://a.example/mcp",
"oauth": {` + fields + `}}}}`)
}

func TestServerGetsTokensWithoutAPerson(t *testing.T) {
	for fields, grant := range map[string]login.Grant{
		`"grant": "client_credentials", "clientId": "me", "clientSecret": "${API_KEY}", "issuer": "https://b.example", "scopes": ["a"]`:                    login.ClientCredentials{Client: login.Client{ID: "me", Secret: "k", Issuer: "https://b.example"}},
		`"grant": "client_credentials", "clientId": "me", "clientKeyFile": "/run/key.pem", "clientKeyId": "1", "scopes": ["a"]`:                            login.ClientCredentials{Client: login.Client{ID: "me", KeyFile: "/run/key.pem", KeyID: "1"}},
		`"grant": "workload_identity", "tokenFile": "/run/token", "issuer": "https://b.example", "scopes": ["a"]`:                                          login.WorkloadIdentity{TokenFile: "/run/token", Client: login.Client{Issuer: "https://b.example"}},
		`"grant": "workload_identity", "tokenFile": "/run/token", "clientId": "me", "issuer": "https://b.example", "scopes": ["a"]`:                        login.WorkloadIdentity{TokenFile: "/run/token", Client: login.Client{ID: "me", Issuer: "https://b.example"}},
		`"grant": "enterprise", "clientId": "me", "idTokenFile": "/run/id", "provider": {"issuer": "https://p.example", "clientId": "p"}, "scopes": ["a"]`: login.Enterprise{Provider: "https://p.example", ProviderClient: login.Client{ID: "p"}, IDTokenFile: "/run/id", Client: login.Client{ID: "me"}},
	} {
		file, err := loader.Parse(withOAuth(fields))
		require.NoError(t, err, fields)
		require.Empty(t, file.Warnings)
		kind := file.OAuth["a"].Grant
		require.Contains(t, fields, `"grant": "`+kind+`"`)
		require.Equal(t, config.OAuth{Grant: kind}, file.OAuth["a"], "nobody logs in")
		want, err := login.New(login.Config{Grant: grant, Scopes: []string{"a"}})
		require.NoError(t, err)
		require.True(t, file.Supervisor.Servers[0].Same(&mcpbridge.Server{Name: "a", URL: "https://a.example/mcp", Auth: mcpbridge.OAuth(want)}), fields)
		again, err := loader.Parse(withOAuth(fields))
		require.NoError(t, err)
		require.True(t, file.Supervisor.Servers[0].Same(&again.Supervisor.Servers[0]), "a server keeps its sessions when the file is loaded again")
	}
}

func TestGrantWithoutAnIssuerIsWarnedOf(t *testing.T) {
	for fields, warned := range map[string]bool{
		`"grant": "client_credentials", "clientId": "me", "clientSecret": "s"`:     true,
		`"grant": "client_credentials", "clientId": "me", "clientKeyFile": "/key"`: false, // an assertion is for one authorization server
		`"grant": "workload_identity", "tokenFile": "/run/token"`:                  true,
	} {
		file, err := loader.Parse(withOAuth(fields))
		require.NoError(t, err)
		if !warned {
			require.Empty(t, file.Warnings, fields)
			continue
		}
		require.Len(t, file.Warnings, 1, fields)
		require.Equal(t, "mcpServers.a.oauth", file.Warnings[0].Field)
		require.Contains(t, file.Warnings[0].String(), "has no issuer")
	}
}

func TestErrorsOfAGrantNameTheField(t *testing.T) {
	for fields, want := range map[string]string{
		`"grant": "password"`: `mcpServers.a.oauth.grant: is "password": use client_credentials, workload_identity or enterprise`,
		`"grant": 1`:          `mcpServers.a.oauth.grant: is a number`,
		`"grant": "client_credentials", "clientId": "", "clientSecret": "s"`:                                                                                                   `mcpServers.a.oauth.clientId: is empty`,
		`"grant": "client_credentials", "clientId": "me", "clientSecret": "${EMPTY:-}"`:                                                                                        `mcpServers.a.oauth.clientSecret: is empty`,
		`"grant": "client_credentials", "clientId": "me", "clientSecret": "s", "issuer": "${EMPTY:-}"`:                                                                         `mcpServers.a.oauth.issuer: is empty`,
		`"grant": "client_credentials", "clientId": "me", "clientSecret": "s", "issuer": "http://b.example"`:                                                                   `Client Issuer is not over https`,
		`"grant": "workload_identity", "tokenFile": ""`:                                                                                                                        `mcpServers.a.oauth.tokenFile: is empty`,
		`"grant": "workload_identity", "tokenFile": "/${scope}"`:                                                                                                               `mcpServers.a.oauth.tokenFile: cannot depend on the scope`,
		`"grant": "enterprise", "clientId": "me", "idTokenFile": "f", "provider": {"issuer": ""}`:                                                                              `mcpServers.a.oauth.provider.issuer: is empty`,
		`"grant": "workload_identity", "tokenFile": "f"}, "headers": {"authorization": "x"`:                                                                                    `mcpServers.a.oauth: conflicts with the credentials in url or headers`,
		`"grant": "client_credentials", "clientSecret": "s"`:                                                                                                                   `mcpServers.a.oauth.clientId: is missing`,
		`"grant": "client_credentials", "clientId": "me"`:                                                                                                                      `mcpServers.a.oauth.clientSecret: is missing, and so is clientKeyFile: set one`,
		`"grant": "client_credentials", "clientId": "me", "clientSecret": "s", "clientKeyFile": "f"`:                                                                           `mcpServers.a.oauth.clientKeyFile: conflicts with clientSecret: give one of them`,
		`"grant": "client_credentials", "clientId": "me", "clientSecret": "s", "tokenFile": "f"`:                                                                               `mcpServers.a.oauth.tokenFile: is not a field`,
		`"grant": "workload_identity"`:                                                                                                                                         `mcpServers.a.oauth.tokenFile: is missing`,
		`"grant": "workload_identity", "tokenfile": "f"`:                                                                                                                       `mcpServers.a.oauth.tokenfile: is not a field: did you mean "tokenFile"?`,
		`"grant": "enterprise", "clientId": "me", "idTokenFile": "f"`:                                                                                                          `mcpServers.a.oauth.provider: is missing`,
		`"grant": "enterprise", "clientId": "me", "idTokenFile": "f", "provider": {}`:                                                                                          `mcpServers.a.oauth.provider.issuer: is missing`,
		`"grant": "enterprise", "clientId": "me", "idTokenFile": "f", "provider": {"issuer": "p", "clientid": "x"}`:                                                            `mcpServers.a.oauth.provider.clientid: is not a field: did you mean "clientId"?`,
		`"grant": "enterprise", "clientId": "me", "idTokenFile": "f", "provider": {"issuer": "p"}`:                                                                             `mcpServers.a.oauth: login: Grant: Provider is no URL`,
		`"grant": "enterprise", "clientId": "me", "idTokenFile": "f", "provider": {"issuer": "https://p.example", "clientId": "p", "clientSecret": "s", "clientKeyFile": "f"}`: `mcpServers.a.oauth.provider.clientKeyFile: conflicts with clientSecret`,
		`"grant": "client_credentials", "clientId": "me", "clientSecret": "${NO}"`:                                                                                             `the environment variable NO is not set`,
	} {
		_, err := loader.Parse(withOAuth(fields))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "line 2: ")
	}
	_, err := loader.Parse([]byte(`{"mcpServers": {"a": {"command": "x", "oauth": {"grant": "workload_identity", "tokenFile": "f"}}}}`))
	require.ErrorContains(t, err, "mcpServers.a.oauth: is for servers with a url")
	for _, url := range []string{"https://u:hush@a.example/mcp", "https://u:hush@a.example/${scope}/mcp"} {
		_, err = loader.Parse(bytes.ReplaceAll(withOAuth(`"grant": "workload_identity", "tokenFile": "f"`), []byte("https://a.example/mcp"), []byte(url)))
		require.ErrorContains(t, err, "mcpServers.a.oauth: conflicts with the credentials in url or headers")
		require.NotContains(t, err.Error(), "hush")
	}
	_, err = loader.Parse(withOAuth(`"grant": "enterprise", "clientId": "me", "idTokenFile": "f", "provider": []`))
	require.EqualError(t, err, "line 2: mcpServers.a.oauth.provider: is a list, want an object")
}
