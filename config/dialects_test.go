package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
)

// written loads a file with a text.
func written(t *testing.T, path, text string) (*config.File, error) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return config.Loader{LookupEnv: environment}.Load(path)
}

// VS Code takes numbers, and null for a variable that is not to be inherited.
func TestVariablesInAFileOfVSCodeMayBeNumbersAndNull(t *testing.T) {
	const env = `{"s": {"command": "x", "env": {"PORT": 8080, "RATE": 0.5, "NONE": null}}}`
	for _, text := range []string{`{"servers": ` + env + `}`, `{"mcp": {"inputs": [], "servers": ` + env + `}}`} {
		file, err := parse(text)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"PORT": "8080", "RATE": "0.5"}, file.Supervisor.Servers[0].Env)
		require.Len(t, file.Warnings, 1)
		require.Regexp(t, `s\.env\.NONE: has no effect: a server inherits only the variables that programs need`, file.Warnings[0].String())
	}
	for _, number := range []string{"1e3", "1.0", "12345678901234567890"} {
		_, err := parse(`{"servers": {"s": {"command": "x", "env": {"A": ` + number + `}}}}`)
		require.ErrorContains(t, err, "servers.s.env.A: is a number that can be written in several ways: write it as a string", "its text in VS Code is another: %s", number)
	}
	_, err := parse(`{"mcpServers": ` + env + `}`)
	require.ErrorContains(t, err, "mcpServers.s.env.PORT: is a number, want a string")
}

func TestGeminiCLIIsKnownByItsFolder(t *testing.T) {
	file, err := written(t, filepath.Join(t.TempDir(), ".gemini", "settings.json"), `{"mcpServers": {"s": {"command": "x", "env": {"T": "$TOKEN"}}}}`)
	require.NoError(t, err)
	require.Equal(t, "t0ken ${HOME}", file.Supervisor.Servers[0].Env["T"])
}

// ~/.claude.json has the servers of the user, and those of each folder, of which those of this one count.
func TestServersOfAProjectOfClaudeCodeAreThoseOfTheWorkingDirectory(t *testing.T) {
	home := t.TempDir()
	repository := filepath.Join(home, "repository")
	inside := filepath.Join(repository, "a", "b")
	require.NoError(t, os.MkdirAll(inside, 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(repository, ".git"), 0o700))
	load := func(folder, users, project string) ([]string, *config.File, error) {
		t.Chdir(folder)
		key, err := json.Marshal(repository)
		require.NoError(t, err)
		file, err := written(t, filepath.Join(home, ".claude.json"),
			`{`+users+`"projects": {"/other": {"mcpServers": {"other": {"command": "x"}}, "disabledMcpServers": ["user"]}, `+string(key)+`: `+project+`}}`)
		var commands []string
		if err == nil {
			for _, server := range file.Supervisor.Servers {
				commands = append(commands, server.Name+" "+server.Command)
			}
		}
		return commands, file, err
	}
	const users = `"mcpServers": {"both": {"command": "of-user"}, "user": {"command": "of-user"}}, `
	const project = `{"mcpServers": {"both": {"command": "of-project"}}, "allowedTools": ["x"], "disabledMcpjsonServers": ["both"], "history": []}`
	for _, folder := range []string{repository, inside} {
		got, file, err := load(folder, users, project)
		require.NoError(t, err)
		require.Equal(t, []string{"both of-project", "user of-user"}, got)
		require.Contains(t, file.Warnings, config.Warning{File: filepath.Join(home, ".claude.json"), Field: "mcpServers.both", Line: 1, Text: "is replaced by projects." + repository + ".mcpServers.both"})
	}
	got, _, err := load(home, users, project)
	require.NoError(t, err)
	require.Equal(t, []string{"both of-user", "user of-user"}, got)

	got, _, err = load(repository, users, `{"mcpServers": {}, "disabledMcpServers": ["user"]}`)
	require.NoError(t, err)
	require.Equal(t, []string{"both of-user"}, got)
	_, _, err = load(repository, users, `{"mcpServers": {}, "deniedMcpServers": ["user"]}`)
	require.ErrorContains(t, err, "deniedMcpServers: may restrict")

	for _, users := range []string{"", `"mcpServers": {}, `} {
		got, _, err = load(repository, users, project)
		require.NoError(t, err)
		require.Equal(t, []string{"both of-project"}, got)
		_, _, err = load(home, users, project)
		require.ErrorContains(t, err, "projects: has servers for other folders only: start this program in one of them, such as /other")
	}
}

// A shell would replace ~, and no shell starts a server. VS Code replaces it in args too.
func TestHomeDirectoryMayBeWrittenAsATilde(t *testing.T) {
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	const server = `{"s": {"command": "~/bin/x", "args": ["~/data/", "~", "~else", "a~/b"], "cwd": "~"}}`
	file, err := parse(`{"servers": ` + server + `}`)
	require.NoError(t, err)
	got := file.Supervisor.Servers[0]
	require.Equal(t, []string{home + "/bin/x", home + "/data/", home, "~else", "a~/b", home}, append(append([]string{got.Command}, got.Args...), got.Dir))
	require.Empty(t, file.Warnings)

	file, err = parse(`{"mcpServers": ` + server + `}`)
	require.NoError(t, err)
	got = file.Supervisor.Servers[0]
	require.Equal(t, []string{home + "/bin/x", "~/data/", "~", "~else", "a~/b", home}, append(append([]string{got.Command}, got.Args...), got.Dir))
	require.Len(t, file.Warnings, 2)
	require.Equal(t, "line 1: mcpServers.s.args[0]: begins with ~, which is not replaced here: write ${userHome} if it is the home directory of this machine", file.Warnings[0].String())
}
