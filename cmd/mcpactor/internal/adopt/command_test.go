package adopt

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
)

// user is somebody with a home and a project, who has installed mcpactor.
type user struct {
	*testing.T
	home, project string
}

func newUser(t *testing.T) *user {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("links need a permission")
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	u := &user{t, home, filepath.Join(home, "project")}
	require.NoError(t, os.MkdirAll(filepath.Join(home, "bin"), 0o700))
	require.NoError(t, os.MkdirAll(u.project, 0o700))
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(home, "bin", "mcpactor")))
	t.Setenv("PATH", filepath.Join(home, "bin"))
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"} {
		t.Setenv(name, "")
	}
	t.Chdir(u.project)
	return u
}

// writes writes a file in the home directory, and returns its path.
func (u *user) writes(path, text string) string {
	u.Helper()
	path = filepath.Join(u.home, path)
	require.NoError(u, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(u, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// reads returns the content of a file.
func (u *user) reads(path string) string {
	u.Helper()
	data, err := os.ReadFile(path)
	require.NoError(u, err)
	return string(data)
}

// runs runs the command, and returns what it prints, and its exit status.
func (u *user) runs(args ...string) (said string, status int) {
	var out bytes.Buffer
	p := &cli.Program{Name: "mcpactor", In: &bytes.Buffer{}, Out: &out, Err: &out}
	status = p.Run(&struct {
		Adopt Adopt `cmd:""`
		Other Adopt `cmd:""` // with one command there is no name
	}{}, append([]string{"adopt"}, args...))
	return out.String(), status
}

// succeeds runs the command, and returns what it prints.
func (u *user) succeeds(args ...string) string {
	u.Helper()
	said, status := u.runs(args...)
	require.Zero(u, status, said)
	return said
}

const (
	plain   = "{\"mcpServers\": {\"a\": {\"command\": \"npx\", \"args\": [\"x\"]}}}\n"
	adopted = "{\"mcpServers\": {\"a\": {\"command\": \"mcpactor\", \"args\": [\"serve\", \"--\", \"npx\", \"x\"]}}}\n"
)

func TestFileIsAdoptedAndUndone(t *testing.T) {
	u := newUser(t)
	path := u.writes("mcp.json", plain)

	said := u.succeeds(path, "--dry-run")
	require.Equal(t, path+": a: adopted\n--- "+path+"\n+++ "+path+"\n@@ -1 +1 @@\n-"+plain+"+"+adopted+"Nothing was changed: this is a dry run.\n", said)
	require.Equal(t, plain, u.reads(path))
	require.NoFileExists(t, path+suffix)

	require.Equal(t, path+": a: adopted\n"+path+": before its first change, it was as in mcp.json"+suffix+"\nRestart the client: then it starts its servers anew.\n", u.succeeds(path))
	require.Equal(t, adopted, u.reads(path))
	require.Equal(t, plain, u.reads(path+suffix))

	require.Equal(t, path+": a: runs mcpactor serve already\n", u.succeeds(path))
	require.Equal(t, adopted, u.reads(path))

	require.Contains(t, u.succeeds(path, "--undo"), path+": a: runs without mcpactor serve again\n")
	require.Equal(t, plain, u.reads(path))
	require.NoFileExists(t, path+suffix)
	require.Equal(t, path+": a: does not run mcpactor serve\n", u.succeeds(path, "--undo"))
}

// A file of a repository may have been written by anybody.
func TestNothingInAFileReachesTheTerminalAsAnEscape(t *testing.T) {
	u := newUser(t)
	path := u.writes("\x1b[2J\u202e.json", "{\"mcpServers\": {\r\n\t// \x1b]0;x\a \u202e \u009b2J\r\n\t\"a\": {\"command\": \"x\"}}}")
	for _, args := range [][]string{{path, "--dry-run"}, {path}, {path, "--undo"}, {u.writes("\x1b.yaml", "a: b: c")}} {
		said, _ := u.runs(args...)
		require.NotContains(t, said, "\r")
		require.NotRegexp(t, `[\x{1b}\x{07}\x{9b}\x{202e}]`, said)
	}
	require.Contains(t, u.succeeds(path, "--dry-run"), "\n \t// \ufffd]0;x\ufffd")
}

func TestUndoNamesTheFlagsThatItDrops(t *testing.T) {
	u := newUser(t)
	path := u.writes("mcp.json", `{"mcpServers": {"a": {"command": "mcpactor", "args": ["serve", "--wait", "8s", "--", "x"]}}}`)
	require.Contains(t, u.succeeds(path, "--undo"), "a: runs without mcpactor serve again, and without its --wait 8s\n")
}

// The first copy is what the user has written, until nothing is adopted any more.
func TestCopyIsReplacedIfNothingIsAdopted(t *testing.T) {
	u := newUser(t)
	path := u.writes("mcp.json", plain)
	u.succeeds(path)
	more := strings.Replace(adopted, `"mcpServers": {`, `"mcpServers": {"b": {"command": "y"}, `, 1)
	u.writes("mcp.json", more)
	u.succeeds(path)
	require.Equal(t, plain, u.reads(path+suffix))
	u.succeeds(path, "--undo")
	now := strings.Replace(plain, `"mcpServers": {`, `"mcpServers": {"b": {"command": "y"}, `, 1)
	require.Equal(t, now, u.reads(path))
	require.Equal(t, plain, u.reads(path+suffix))
	u.succeeds(path)
	require.Equal(t, now, u.reads(path+suffix))
}

func TestAFileThatFailsIsNotCalledAdopted(t *testing.T) {
	u := newUser(t)
	project, users := u.writes("project/.mcp.json", plain), u.writes(".claude.json", plain)
	require.NoError(t, os.MkdirAll(filepath.Join(users+suffix, "full"), 0o700))
	said, status := u.runs("claude")
	require.Equal(t, cli.ExitFailed, status, said)
	require.Contains(t, said, project+": a: adopted\n")
	require.NotContains(t, said, users+": a: adopted\n")
	require.Contains(t, said, "Restart the client")
	require.Equal(t, plain, u.reads(users))
}

// Those of the project, and those of the user.
func TestAllFilesOfAClientAreAdopted(t *testing.T) {
	u := newUser(t)
	project := u.writes("project/.mcp.json", plain)
	users := u.writes(".claude.json", `{"mcpServers": {"b": {"command": "y"}}, "projects": {"/other": {"mcpServers": {"c": {"command": "z"}}}, "/none": {}}}`)
	said := u.succeeds("claude")
	require.Contains(t, said, project+": a: adopted\n")
	require.Contains(t, said, users+": b: adopted\n"+users+": c (in /other): adopted\n")
	require.Contains(t, u.succeeds("claude", "--undo", "c"), "c (in /other): runs without mcpactor serve again")
	require.Contains(t, u.reads(users), `"c": {"command": "z"}`)
	require.Equal(t, adopted, u.reads(project))

	for client, path := range map[string]string{
		"claude-desktop": ".config/Claude/claude_desktop_config.json", "cursor": ".cursor/mcp.json", "gemini": ".gemini/settings.json", "vscode": ".config/Code/User/mcp.json",
		"windsurf": ".codeium/windsurf/mcp_config.json", "zed": ".config/zed/settings.json", "opencode": ".config/opencode/opencode.jsonc", "librechat": "project/librechat.yaml", "codex": ".codex/config.toml",
	} {
		text := plain
		if client == "codex" {
			text = "[mcp_servers.a]\ncommand = \"npx\"\n"
		}
		if runtime.GOOS == "darwin" {
			path = strings.Replace(path, ".config/C", "Library/Application Support/C", 1)
		}
		path = u.writes(path, text)
		require.Contains(t, u.succeeds(client), path+": a: adopted\n")
		require.Contains(t, u.reads(path), "mcpactor")
	}
	require.Len(t, clients, 10)
}

func TestEmptyFileDoesNotHideTheOthersOfAClient(t *testing.T) {
	u := newUser(t)
	u.writes("project/.mcp.json", "")
	path := u.writes(".claude.json", plain)
	require.Contains(t, u.succeeds("claude"), path+": a: adopted\n")
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestDryRunThatCannotBePrintedFails(t *testing.T) {
	u := newUser(t)
	cmd := Adopt{Client: u.writes("mcp.json", plain), DryRun: true}
	require.ErrorIs(t, cmd.Run(&cli.Program{Out: fullDisk{}}), syscall.ENOSPC)
}

func TestServersThatAreNamedAreAdopted(t *testing.T) {
	u := newUser(t)
	path := u.writes("mcp.json", `{"mcpServers": {"memory": {"command": "x"}, "other": {"command": "y"}, "web": {"url": "https://x.example", "headers": {"A": "b"}}}}`)
	said := u.succeeds(path, "memory")
	require.NotContains(t, said, "other")
	require.Contains(t, u.reads(path), `"other": {"command": "y"}`)

	said, status := u.runs(path, "web")
	require.Equal(t, cli.ExitFailed, status)
	require.Equal(t, path+": web: left as it is: it has headers: change it by hand to the arguments \"serve\", \"--header\", \"NAME=${VAR}\" and the URL, with VAR in its env\n", said)
	require.Contains(t, u.succeeds(path), "web: left as it is: ", "nobody asked for it")
}

func TestWrongUsageSaysWhatToGive(t *testing.T) {
	u := newUser(t)
	path := u.writes("mcp.json", plain)
	for want, args := range map[string][]string{
		`there is no file "curser": give the path of a client's file, or a client: did you mean "cursor"?`: {"curser"},
		`or a client: claude, claude-desktop, codex`:                                                       {"nonsense.json"},
		`no server was found in ` + filepath.Join(u.project, "librechat.yaml"):                             {"librechat"},
		`there is no server "b": a`:                                                                        {path, "b"},
		`there is no server "memry": did you mean "memory"?`:                                               {u.writes("m.json", `{"servers": {"memory": {"command": "x"}}}`), "memry"},
		`a.json: is not valid JSON: line 2, column 16: `:                                                   {u.writes("a.json", "{\n  \"mcpServers\" {}}")},
		`a.yaml: is neither JSON nor YAML: line 2: `:                                                       {u.writes("a.yaml", "a: b\nc: d: e\n")},
		`a.toml: is not valid TOML: line 2: `:                                                              {u.writes("a.toml", "a = 1\nb = \n")},
		`wide.json: is not valid UTF-8: save it as UTF-8`:                                                  {u.writes("wide.json", "\xff\xfe{\x00}\x00")},
		`empty.json: is empty`:                                                                             {u.writes("empty.json", " \n")},
		`no server was found in ` + filepath.Join(u.home, "none.json"):                                     {u.writes("none.json", "[1]")},
	} {
		said, status := u.runs(args...)
		require.Equal(t, cli.ExitUsage, status, said)
		require.Contains(t, said, want)
	}
}
