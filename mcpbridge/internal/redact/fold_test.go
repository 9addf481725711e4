package redact

import (
	"encoding/base64"
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
	for form, text := range map[string]string{
		"upper case":     strings.ToUpper(secret),
		"JSON twice":     strings.ReplaceAll(strings.ReplaceAll(string(quoted), `\`, `\\`), `"`, `\"`),
		"HTML twice":     html.EscapeString(html.EscapeString(secret)),
		"query twice":    url.QueryEscape(url.QueryEscape(secret)),
		"query thrice":   url.QueryEscape(url.QueryEscape(url.QueryEscape(secret))),
		"the first half": secret[:len(secret)/2+1],
		"the other half": secret[len(secret)/2:],
		"on two lines":   secret[:9] + "\r\n\t" + secret[9:],
	} {
		got := Clean("bad token: "+text+" is unknown", secret)
		require.NotContains(t, strings.ToLower(got), "efgh", form)
		require.NotContains(t, strings.ToLower(got), "op=", form)
		require.Regexp(t, `bad token: \W{0,3}…`, got, form)
		require.Contains(t, got, " is unknown", form)
	}
	require.Equal(t, "next to it, …", Clean("next to it, aa%2Fbb%2Fcc%2Fdd", "aa/bb/cc/dd"))
}

// Little is left of such secrets when they are folded.
func TestSecretOfPunctuationIsBlackedOut(t *testing.T) {
	for _, row := range []struct{ secret, text, want string }{
		{"P&ssw0rd", `{"password":"P\u0026ssw0rd"}`, `{"password":"…"}`},
		{"P&ssw0rd", "?p=P%26ssw0rd", "?p=…"},
		{"P&ssw0rd", "?p=P%2526ssw0rd&q", "?p=…&q"},
		{"P&ssw0rd", "<b>P&amp;ssw0rd</b>", "<b>…</b>"},
		{"P&ssw0rd", "P&amp;ssw0rd; P&ssw0rd; P&amp;amp;ssw0rd", "… … …"},
		{"P&ssw0rd", "it is P&SSW0RD", "it is …"},
		{"P&ssw0rd", "it is P&ss", "it is …"},
		{"P&ssw0rd", "it is P%26ss", "it is …"},
		{"P&ssw0rd", "it is P&s, or Pssw0rd", "it is P&s, or Pssw0rd"},
		{"P&ssw0rd", "it is " + base64.StdEncoding.EncodeToString([]byte("user:P&ssw0rd")) + " there", "it is dXNlcj…== there"},
		{`a\b\c\d\e`, `a\\b\\c\\d\\e`, "…"},
		{`a\b\c\d\e`, `"a\\\\b\\\\c\\\\d\\\\e"`, `"…"`},
		{"a b c d e", "x=a+b+c+d+e and a%20b%20c\r\n d  e, a b c.", "x=… and …, a b c."},
		{"+++++++++", strings.Repeat("%2B", 9), "…"},
		{"%2B%2B%2B", "+, +++, x%2B%2B%2Bx, x%252B%252B%252Bx", "+, +++, x…x, x…x"},
		{"p%40ss%21", "p%2540ss%2521, not p@ss!.", "…, not p@ss!."},
		{`\\\\\\\\`, `one \\\\\\\\\\\\\\\\ two`, "one…two"},
	} {
		require.Equal(t, row.want, Line(row.text, row.secret), "%s in %s", row.secret, row.text)
	}
}

// A variable with the address of a database has a password in it, which drivers repeat alone.
func TestPasswordInAVariableIsASecret(t *testing.T) {
	server := &mcpbridge.Server{Command: "x", Env: map[string]string{"DATABASE_URL": "postgres://user:correct%2Fhorse@localhost:5432/shop?sslmode=off"}}
	require.Equal(t, "password … is wrong for shop", Clean("password correct/horse is wrong for shop", OfServer(server)...))
	require.Equal(t, "password … is wrong", Clean("password correct%2Fhorse is wrong", OfServer(server)...))
}

// A server repeats a header in base64, alone or within something else, in any of its alphabets, and cut anywhere.
func TestSecretInBase64IsBlackedOut(t *testing.T) {
	const secret = "correct-horse-battery-staple?~>"
	for before := range 4 {
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString([]byte("Bearer  "[:8-before] + secret + "...."[:before]))
			for _, shown := range []string{text, url.QueryEscape(text), text[:20] + "\n" + text[20:]} {
				require.Regexp(t, `^bad header \S{0,12}…\S{0,9} it is$`, Clean("bad header "+shown+" it is", secret, "Bearer "+secret), text)
			}
			for cut := range len(text) / 3 {
				require.LessOrEqual(t, len(Clean(text[cut:], secret)), len("…")+12, text[cut:])
				require.LessOrEqual(t, len(Clean(text[:len(text)-cut], secret)), len("…")+12, text[:len(text)-cut])
			}
		}
	}
}

// What is configured often has paths and names in it, which errors are about as well.
func TestSmallPartsOfConfiguredValuesStay(t *testing.T) {
	secrets := OfServer(&mcpbridge.Server{Command: "x", Env: map[string]string{
		"DATABASE_URL": "postgres://user:correct%2Fhorse@localhost:5432/shop?sslmode=off", "ROOT": "/home/user/projects/documents", "API": "https://api.example.com/v1/things",
		"DATA_DIR": "/home/alice/project/data", "REDIS_URL": "redis://localhost:6379/0", "HOST": "db-1.internal.example.com:5432", "NODE_OPTIONS": "--require /home/alice/project/hook.js",
		"WINDOWS": `C:\Users\Alice\AppData\Local`,
	}, Headers: map[string]string{"Accept": "application/json", "Via": "internal-service"}})
	for _, text := range []string{
		"cannot connect to postgres at localhost:5432", "ENOENT: /home/user/other/file", "https://api.test answered 503", "Error: Cannot find module '/usr/lib/node_modules/x.js'",
		"Cannot find module '/home/alice/project/dist/index.js' ENOENT: no such file '/home/alice/project/config.yaml'", "dial tcp: lookup localhost: no such host",
		"the application failed to start: reload the flag", "Internal Server Error 500: no service", "dial tcp: lookup internal.example.com: no such host", `C:\Users\Alice\AppData\Roaming\npm`,
	} {
		require.Equal(t, text, Clean(text, secrets...))
	}
	for _, text := range []string{
		"/home/alice/project/data", "%2Fhome%2Falice%2Fproject%2Fdata", `\/home\/alice\/project\/data`, "redis://localhost:6379/0", "application/json", "INTERNAL-SERVICE", `C:\\Users\\Alice\\AppData\\Local`,
		base64.StdEncoding.EncodeToString([]byte("/home/alice/project/data")),
	} {
		require.Regexp(t, `^no \\?…=?$`, Clean("no "+text, secrets...), text)
	}
}

func TestTokensAreTold(t *testing.T) {
	for value, plain := range map[string]bool{
		"/home/alice/project/2024-data": true, "~/x/y": true, "./data/x": true, "src/main.py": true, "https://example.com/A1b2C3": true, "127.0.0.1:8080": true, "alice@example.com": true,
		"text-model.large": true, "application/json; charset=utf-8": true, "plain words": true, "Engineering": true, "eu-west-1": true, "America/New_York": true,
		"correct-horse-battery-staple": false, "hunter22": false, "Summer2024": false, "sk-live-a1b2": false, "ümlaut-x": false, "eyJhbGciOiJIUzI1NiJ9.e30.x": false, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": false, "/K7MDENG/bPxRfiCYEXAMPLEKEY": false,
		"0f8a2c1d:9b7e6f5a": false, "Bearer sk-live-0123456789": false, "123456789012345.x": false, "x=A1b2C3d4": false,
	} {
		require.Equal(t, plain, isPlain(value), value)
	}
}
