package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
)

// The forms are those of the documentation of each client. Claude Desktop and Windsurf have none in their files.
func TestLoginsAreReadAsEachClientWritesThem(t *testing.T) {
	const server = `{"mcpServers": {"a": {"url": "https://a.example/mcp", `
	for name, c := range map[string]struct {
		file     string
		want     config.OAuth
		warnings []string
	}{
		"Claude Code": {
			file:     server + `"oauth": {"clientId": "id", "callbackPort": 8080, "scopes": "a  b", "authServerMetadataUrl": "https://b.example"}}}}`,
			want:     config.OAuth{ClientID: "id", Redirect: "http://localhost:8080/callback", Scopes: []string{"a", "b"}},
			warnings: []string{"mcpServers.a.oauth.authServerMetadataUrl"},
		},
		"VS Code": {
			file: `{"servers": {"a": {"type": "http", "url": "https://a.example/mcp", "oauth": {"clientId": "id"}}}}`,
			want: config.OAuth{ClientID: "id"},
		},
		"Cursor": {
			file: server + `"auth": {"CLIENT_ID": "id", "CLIENT_SECRET": "${API_KEY}", "scopes": ["a"]}}}}`,
			want: config.OAuth{ClientID: "id", ClientSecret: "k", Scopes: []string{"a"}},
		},
		"Gemini CLI": {
			file: server + `"oauth": {"enabled": true, "clientId": "id", "clientSecret": "$API_KEY", "redirectUri": "http://localhost:7777/oauth/callback",
				"scopes": ["a"], "tokenUrl": "https://b.example/token"}, "trust": false}}}`,
			want:     config.OAuth{ClientID: "id", ClientSecret: "k", Redirect: "http://localhost:7777/oauth/callback", Scopes: []string{"a"}},
			warnings: []string{"mcpServers.a.oauth.tokenUrl", "mcpServers.a.trust"},
		},
		"Gemini CLI, off": {file: server + `"oauth": {"enabled": false}}}}`, want: config.OAuth{Off: true}},
		"opencode": {
			file: `{"mcp": {"a": {"type": "remote", "url": "https://a.example/mcp",
				"oauth": {"clientId": "id", "clientSecret": "{env:API_KEY}", "scope": "a b", "redirectUri": "http://127.0.0.1:1/x", "callbackPort": 1}}}}`,
			want:     config.OAuth{ClientID: "id", ClientSecret: "k", Redirect: "http://127.0.0.1:1/x", Scopes: []string{"a", "b"}},
			warnings: []string{"mcp.a.oauth.callbackPort"},
		},
		"opencode, off": {file: `{"mcp": {"a": {"type": "remote", "url": "https://a.example/mcp", "oauth": false}}}`, want: config.OAuth{Off: true}},
		"Zed": {
			file: `{"context_servers": {"a": {"url": "https://a.example/mcp", "oauth": {"client_id": "id", "client_secret": "s"}}}}`,
			want: config.OAuth{ClientID: "id", ClientSecret: "s"},
		},
		"LibreChat": {
			file: `{"mcpServers": {"a": {"type": "streamable-http", "url": "https://a.example/mcp",
				"oauth": {"client_id": "id", "client_secret": "s", "scope": "a", "redirect_uri": "https://chat.example/api/mcp/a/oauth/callback"}}}}`,
			want:     config.OAuth{ClientID: "id", ClientSecret: "s", Scopes: []string{"a"}},
			warnings: []string{"mcpServers.a.oauth"},
		},
		"nothing": {file: server + `"oauth": {}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := loader.Parse([]byte(c.file))
			require.NoError(t, err)
			require.Equal(t, c.want, file.OAuth["a"])
			var warned []string
			for _, warning := range file.Warnings {
				warned = append(warned, warning.Field)
			}
			require.ElementsMatch(t, c.warnings, warned)
		})
	}
	for want, fields := range map[string]string{
		"mcpServers.a.auth: conflicts with oauth":  `"oauth": {"clientId": "x"}, "auth": {"CLIENT_ID": "x"}`,
		"mcpServers.a.oauth.clientId: is a number": `"oauth": {"clientId": 1}`,
		"mcpServers.a.oauth.callbackPort: is a st": `"oauth": {"callbackPort": "80"}`,
		"the environment variable NO is not set":   `"oauth": {"clientSecret": "${NO}"}`,
		"cannot depend on the scope":               `"oauth": {"clientId": "${scope}"}`,
	} {
		_, err := loader.Parse([]byte(server + fields + `}}}`))
		require.ErrorContains(t, err, want)
	}
}
