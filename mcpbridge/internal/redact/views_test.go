package redact

import (
	"encoding/json"
	"html"
	"html/template"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// A server may repeat a secret in a page, in JSON that is no JSON-RPC, or in a URL.
func TestEscapedSecretIsBlackedOut(t *testing.T) {
	const secret = `ab+1/efgh&5"ij'kl=<mn>\op==`
	quoted, err := json.Marshal(secret)
	require.NoError(t, err)
	for form, text := range map[string]string{
		"none":          secret,
		"Go JSON":       string(quoted),
		"JSON":          `ab+1/efgh&5\"ij'kl=<mn>\\op==`,
		"PHP JSON":      `ab+1\/efgh&5\"ij'kl=<mn>\\op==`,
		"HTML":          html.EscapeString(secret),
		"Go template":   template.HTMLEscapeString(secret),
		"html/template": strings.ReplaceAll(template.HTMLEscapeString(secret), "+", "&#43;"),
		"Python HTML":   "ab+1/efgh&amp;5&quot;ij&#x27;kl=&lt;mn&gt;\\op==",
		"query":         url.QueryEscape(secret),
		"path":          url.PathEscape(secret),
		"lower query":   "ab%2b1%2fefgh%265%22ij%27kl%3d%3cmn%3e%5cop%3d%3d",
	} {
		got := Clean("bad token: Bearer "+text+" is unknown", "Bearer "+secret, secret)
		require.NotContains(t, got, "efgh", form)
		require.NotContains(t, got, "op=", form)
		require.Contains(t, got, " is unknown", form)
	}
	require.Equal(t, "next to it, …", Clean("next to it, aa%2Fbb%2Fcc%2Fdd", "aa/bb/cc/dd"))
}

// A variable with the address of a database has a password in it, which drivers repeat alone.
func TestPasswordInAVariableIsASecret(t *testing.T) {
	server := &mcpbridge.Server{Command: "x", Env: map[string]string{"DATABASE_URL": "postgres://user:correct%2Fhorse@localhost:5432/shop?sslmode=off"}}
	require.Equal(t, "password … is wrong for shop", Clean("password correct/horse is wrong for shop", OfServer(server)...))
	require.Equal(t, "password … is wrong", Clean("password correct%2Fhorse is wrong", OfServer(server)...))
}
