package config_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// serverWith returns the server of a file with one server.
func serverWith(t testing.TB, format string, args ...any) mcpbridge.Server {
	t.Helper()
	file, err := parse(`{"mcpServers": {"a": ` + fmt.Sprintf(format, args...) + `}}`)
	require.NoError(t, err)
	return file.Supervisor.Servers[0]
}

// ofScope returns the configuration of a scope.
func ofScope(t testing.TB, srv mcpbridge.Server, scope string) (*mcpbridge.Server, error) {
	t.Helper()
	key := messages.Key{Server: "a", Scope: scope}
	require.NoError(t, key.Validate())
	return srv.ForKey(t.Context(), key)
}

func TestScopeIsReplacedForEachKey(t *testing.T) {
	root := t.TempDir()
	srv := serverWith(t, `{"command": "x", "args": ["--user", "${scope}", "--file=/data/${scope}/x,${scope}", "plain"],
		"env": {"USER_ID": "${scope}", "KEY": "${TOKEN}"}, "cwd": %q,
		"setup": [{"tool": "open", "arguments": {"of": ["${scope}", 1], "scope": "for ${scope}"}}]}`, filepath.Join(root, "${scope}", "src"))
	require.NotNil(t, srv.PerKey)
	require.Equal(t, []string{"--user", "default", "--file=/data/default/x,default", "plain"}, srv.Args)
	require.NoDirExists(t, filepath.Join(root, "default"), "it is made for a session")
	for _, scope := range []string{"ann", "bob@example.com", "$(id)", "default"} {
		got, err := ofScope(t, srv, scope)
		require.NoError(t, err)
		require.Equal(t, []string{"--user", scope, "--file=/data/" + scope + "/x," + scope, "plain"}, got.Args)
		require.Equal(t, scope, got.Env["USER_ID"])
		require.Equal(t, srv.Env["KEY"], got.Env["KEY"])
		require.Equal(t, filepath.Join(root, scope, "src"), got.Dir)
		require.DirExists(t, got.Dir)
		require.Equal(t, []*mcp.CallToolParams{{Name: "open", Arguments: map[string]any{"of": []any{scope, float64(1)}, "scope": "for " + scope}}}, got.Setup)
	}

	srv = serverWith(t, `{"url": "https://h.example/u/${scope}/mcp?who=${scope}&x=1", "headers": {"X-User": "user ${scope}", "Authorization": "Bearer ${TOKEN}"}}`)
	for scope, want := range map[string]string{
		"ann":     "https://h.example/u/ann/mcp?who=ann&x=1",
		"a b&c=d": "",
		"a@b?c#d": "https://h.example/u/a@b%3Fc%23d/mcp?who=a%40b%3Fc%23d&x=1",
		"a/b":     "https://h.example/u/a%2Fb/mcp?who=a%2Fb&x=1",
		"%2e%2e":  "https://h.example/u/%252e%252e/mcp?who=%252e%252e&x=1",
	} {
		got, err := ofScope(t, srv, scope)
		if want == "" {
			require.ErrorContains(t, err, "headers.X-User: the scope has a character")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, got.URL)
		require.Equal(t, "user "+scope, got.Headers["X-User"])
		require.Equal(t, srv.Headers["Authorization"], got.Headers["Authorization"])
	}
}

// Attacks by the name of a scope: none leads out of a directory, a path or a header, and none
// becomes an option.
func TestScopeThatWouldMeanSomethingElseIsRefused(t *testing.T) {
	root := t.TempDir()
	for _, c := range []struct{ server, want string }{
		{fmt.Sprintf(`{"command": "x", "cwd": %q}`, root+"/${scope}"), "cwd: the scope"},
		{`{"command": "x", "cwd": "${scope}"}`, "cwd: the scope"},
		{`{"command": "x", "args": ["--root=/srv/${scope}"]}`, "args[0]: the scope"},
		{`{"command": "x", "args": ["a", "/srv/${scope}"]}`, "args[1]: the scope"},
		{`{"command": "x", "args": ["a", "C:\\work\\${scope}"]}`, "args[1]: the scope"},
		{`{"command": "x", "env": {"ROOT": "/srv/${scope}/x"}}`, "env.ROOT: the scope"},
		{`{"url": "https://x/${scope}/mcp"}`, "url: the scope leads out of its path"},
		{`{"url": "https://x/u/${scope}"}`, "url: the scope leads out of its path"},
	} {
		srv := serverWith(t, "%s", c.server)
		for _, scope := range []string{"..", ".", "../x", "../../etc", "a/../../b", "..\\x", "a\\..\\..\\b", "a/.."} {
			_, err := ofScope(t, srv, scope)
			require.ErrorContains(t, err, c.want, "%s: %q", c.server, scope)
			e := mcpbridge.AsError(err)
			require.Equal(t, mcpbridge.Invalid, e.Class)
		}
	}
	for _, scope := range []string{"/etc", "a/b", "a\\b"} {
		_, err := ofScope(t, serverWith(t, `{"command": "x", "cwd": %q}`, root+"/${scope}"), scope)
		require.ErrorContains(t, err, "cwd: the scope has a slash", scope)
	}
	_, err := ofScope(t, serverWith(t, `{"command": "x", "args": ["${scope}"]}`), "--config=/etc/passwd")
	require.ErrorContains(t, err, "args[0]: the scope begins with -")
	got, err := ofScope(t, serverWith(t, `{"command": "x", "args": ["--user=${scope}"]}`), "--config=/etc/passwd")
	require.NoError(t, err, "there it cannot become an option")
	require.Equal(t, []string{"--user=--config=/etc/passwd"}, got.Args)
	for _, scope := range []string{" ann", "ann ", "a,b", "a; admin=1", `a"b`, "a\\b", "ö", "a\u00a0b"} {
		_, err := ofScope(t, serverWith(t, `{"url": "https://x", "headers": {"X-User": "${scope}"}}`), scope)
		require.ErrorContains(t, err, "headers.X-User: the scope has a character", scope)
	}
}

// A directory that leads elsewhere is not followed.
func TestDirectoryOfAScopeIsInsideItsBase(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "link")))
	srv := serverWith(t, `{"command": "x", "cwd": %q}`, filepath.Join(root, "${scope}", "src"))
	_, err := ofScope(t, srv, "link")
	require.ErrorContains(t, err, "cwd: ")
	require.NoDirExists(t, filepath.Join(outside, "src"))
	_, err = ofScope(t, serverWith(t, `{"command": "x", "cwd": %q}`, filepath.Join(root, "missing", "${scope}")), "ann")
	require.ErrorContains(t, err, "cwd: ")
}

func TestScopeWhereItIsNotSupportedIsAnError(t *testing.T) {
	for _, c := range []struct{ server, want string }{
		{`{"command": "${scope}"}`, "a.command: the program cannot depend on the scope"},
		{`{"command": ["${scope}", "x"]}`, "a.command[0]: the program cannot depend on the scope"},
		{`{"command": {"path": "${scope}"}}`, "a.command.path: the program cannot depend on the scope"},
		{`{"command": "x", "envFile": "${scope}"}`, "a.envFile: cannot depend on the scope"},
		{`{"command": "x", "deny": ["${scope}"]}`, "a.deny[0]: cannot depend on the scope"},
		{`{"command": "x", "displayName": "${scope}"}`, "a.displayName: cannot depend on the scope"},
		{`{"command": "x", "metadata": {"args": "${scope}"}}`, "a.metadata.args: cannot depend on the scope"},
		{`{"command": "x", "protocolVersion": "${scope}"}`, "a.protocolVersion: cannot depend on the scope"},
		{`{"command": "x", "setup": [{"tool": "${scope}"}]}`, "a.setup[0].tool: the tool cannot depend on the scope"},
		{`{"command": "x", "args": ["${scope:-x}"]}`, "a.args[0]: the scope has no default"},
		{`{"url": "https://${scope}.example.com/mcp"}`, "a.url: the host cannot depend on the scope"},
		{`{"url": "https://${scope}@example.com/mcp"}`, "a.url: the host cannot depend on the scope"},
		{`{"serverUrl": "${scope}"}`, "a.serverUrl: the host cannot depend on the scope"},
		{`{"url": "${scope}://example.com/mcp"}`, "a.url: the host cannot depend on the scope"},
		{`{"url": "https://example.com:${scope}/mcp"}`, "a.url: the host cannot depend on the scope"},
		{`{"url": "https://example.com?${scope}#${scope}"}`, "a.url: the fragment is not sent"},
		{`{"url": "http://example.com", "headers": {"X-User": "${scope}"}}`, "would be sent to example.com without encryption"},
	} {
		_, err := parse("{\"mcpServers\": {\n\"a\": " + c.server + "}}")
		require.ErrorContains(t, err, "line 2: mcpServers.", c.server)
		require.ErrorContains(t, err, c.want, c.server)
	}
	_, err := parse("{\"mcpServers\": {\"a\": {\"command\": \"x\"}}, \"supervisor\": {\n\"store\": \"${scope}\"}}")
	require.ErrorContains(t, err, "line 2: supervisor.store: cannot depend on the scope")
	got := serverWith(t, `{"command": "x", "args": ["${env:scope}"]}`)
	require.Equal(t, []string{"of the environment"}, got.Args, "it is an environment variable")
	require.Nil(t, got.PerKey)
}

// A file that was read again has the same servers: their sessions stay open.
func TestServersWithAScopeAreTheSameWhenAFileIsReadAgain(t *testing.T) {
	one := serverWith(t, `{"command": "x", "args": ["${scope}", "default"]}`)
	two := serverWith(t, `{"command": "x", "args": ["${scope}", "default"]}`)
	other := serverWith(t, `{"command": "x", "args": ["default", "${scope}"]}`)
	plain := serverWith(t, `{"command": "x", "args": ["default", "default"]}`)
	require.True(t, one.Same(&two))
	require.False(t, one.Same(&other))
	require.False(t, one.Same(&plain))
}

// Whatever the scope is, it stays where it was put.
func FuzzScope(f *testing.F) {
	for _, scope := range []string{"ann", "../x", "..", "a/b", "%2e%2e", "a?b#c&d=e", "-x", "ö", "a\\b", " ", "C:", "a;b", "\x00", "${scope}", "$HOME"} {
		f.Add(scope)
	}
	root := f.TempDir()
	process := serverWith(f, `{"command": "x", "args": ["${scope}", "--root=/srv/${scope}/x"], "env": {"A": "${scope}"}, "cwd": %q}`, root+"/${scope}")
	remote := serverWith(f, `{"url": "https://h.example/u/${scope}/mcp?who=${scope}&x=1", "headers": {"X-User": "${scope}"}}`)
	f.Fuzz(func(t *testing.T, scope string) {
		key := messages.Key{Server: "a", Scope: scope}.Normal()
		if key.Validate() != nil {
			return
		}
		scope = key.Scope
		if got, err := process.ForKey(t.Context(), key); err == nil {
			require.Len(t, got.Args, 2)
			require.False(t, strings.HasPrefix(got.Args[0], "-"))
			require.Equal(t, "/srv/"+scope+"/x", strings.TrimPrefix(got.Args[1], "--root="))
			require.Equal(t, "/srv/"+scope+"/x", filepath.ToSlash(filepath.Clean("/srv/"+scope+"/x")))
			require.Equal(t, scope, got.Env["A"])
			require.Equal(t, root, filepath.Dir(got.Dir))
			require.Equal(t, scope, filepath.Base(got.Dir))
			require.NoError(t, os.Remove(got.Dir))
		}
		if got, err := remote.ForKey(t.Context(), key); err == nil {
			u, err := url.Parse(got.URL)
			require.NoError(t, err)
			require.Equal(t, "h.example", u.Host)
			require.Empty(t, u.Fragment)
			require.Equal(t, url.Values{"who": {scope}, "x": {"1"}}, u.Query())
			require.Equal(t, "/u/"+scope+"/mcp", u.Path)
			require.True(t, strings.HasPrefix(u.JoinPath().Path, "/u/"), "%q", u.Path)
			h := http.Header{}
			h.Set("X-User", got.Headers["X-User"])
			require.Equal(t, scope, strings.TrimSpace(h.Get("X-User")))
		}
	})
}
