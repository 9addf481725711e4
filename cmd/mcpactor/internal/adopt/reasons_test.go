package adopt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServersThatCannotBeAdoptedStayAndSayWhy(t *testing.T) {
	for entry, want := range map[string]string{
		`{"command": "mcpactor", "args": ["serve", "--", "x"]}`:                       isAdopted,
		`{"command": "/opt/mcpactor", "args": ["serve", "--config", "x.json"]}`:       isAdopted,
		`{"command": "npx", "args": ["-y", "mcpactor@1.2.3", "serve", "--", "x"]}`:    isAdopted,
		`{"command": "C:\\bin\\mcpactor.exe", "args": ["serve", "http://x.example"]}`: isAdopted,
		`{"command": ["mcpactor", "serve", "--", "x"], "type": "local"}`:              isAdopted,

		`{"source": "extension"}`:                         "it has neither a command nor a URL",
		`{"command": "x", "url": "http://x.example"}`:     "it has a command and a URL: remove one of them",
		`{"command": "~/bin/x"}`:                          "its command begins with ~, which few clients replace in args: write the whole path",
		`{"command": "x", "args": "y"}`:                   isOdd,
		`{"command": "x", "args": null}`:                  isOdd,
		`{"command": 5}`:                                  isOdd,
		`{"command": []}`:                                 isOdd,
		`{"url": "http://x.example", "url": "http://y"}`:  isOdd,
		`{"url": "${HOST}/mcp"}`:                          "its URL does not begin with https:// or http://: change it by hand",
		`{"url": "https://x.example/mcp?key=s3cret"}`:     "its URL may have a secret, which other users would see among the processes",
		`{"url": "https://ada:s3cret@x.example/mcp"}`:     "its URL may have a secret, which other users would see among the processes",
		`{"url": "https://x.example/${KEY}/mcp"}`:         "its URL has a variable or a fragment, which may be a secret, and which other users would see among the processes",
		`{"url": "https://x.example/$KEY/mcp"}`:           "its URL has a variable or a fragment, which may be a secret, and which other users would see among the processes",
		`{"url": "https://x.example/{env:KEY}/mcp"}`:      "its URL has a variable or a fragment, which may be a secret, and which other users would see among the processes",
		`{"url": "https://x.example/${input:key}"}`:       "its URL has a variable or a fragment, which may be a secret, and which other users would see among the processes",
		`{"url": "https://x.example/mcp#s3cret"}`:         "its URL has a variable or a fragment, which may be a secret, and which other users would see among the processes",
		`{"url": "https://x.example/mcp", "type": "sse"}`: "its type is sse: change it by hand",
		`{"serverUrl": "https://x.example/mcp"}`:          "its URL is in serverUrl, not in url: change it by hand",
		`{"url": "https://x.example", "oauth": {}}`:       `it has oauth: change it by hand to the arguments "serve" and the URL, and run mcpactor login with the URL`,
		`{"command": "npx -y foo"}`:                       "its command has arguments: put them into args",
		`{"command": ["npx -y foo"]}`:                     "its command has arguments: put them into args",
		`{"command": ""}`:                                 "its command is empty: write the name or the path of a program",
		`{"command": " ", "args": ["x"]}`:                 "its command is empty: write the name or the path of a program",
	} {
		data := []byte(`{"mcpServers": {"a": ` + entry + `}}`)
		now, why := all(t, "mcp.json", data, adopter(installed))
		require.Equal(t, want, why["a"], entry)
		require.Equal(t, string(data), string(now))
	}
	for path, entry := range map[string]string{
		"/home/ada/.gemini/settings.json":      `{"httpUrl": "https://x.example/mcp", "trust": true}`,
		"/x/.gemini/settings.json":             `{"url": "https://x.example/mcp", "type": "http"}`,
		"/x/.codeium/windsurf/mcp_config.json": `{"serverUrl": "https://x.example/mcp"}`,
	} {
		adopted, why := requireUndone(t, path, []byte(`{"mcpServers": {"a": `+entry+`}}`))
		require.Empty(t, why)
		require.Contains(t, string(adopted), `"command": "mcpactor", "args": ["serve", "https://x.example/mcp"]`)
	}
}

// Clients with windows are often started without the PATH of a shell.
func TestProgramHasItsPathWhereThePathOfAClientMayNotHaveIt(t *testing.T) {
	for _, entry := range []string{
		`{"command": "/opt/x"}`, `{"command": "C:\\x.exe", "args": []}`, `{"command": ["/opt/x"]}`,
		`{"command": "x", "env": {"PATH": "/usr/bin"}}`, `{"command": ["x"], "environment": {"Path": "C:\\bin"}}`,
		`{"command": {"path": "x", "env": {"PATH": "/usr/bin"}}}`,
	} {
		data := []byte(`{"mcpServers": {"a": ` + entry + `}}`)
		adopted, why := requireUndone(t, "mcp.json", data)
		require.Empty(t, why)
		require.Contains(t, string(adopted), `"/opt/bin/mcpactor"`)
		now, why := all(t, "mcp.json", data, adopter(program{words: []string{"npx", "-y", "mcpactor"}}))
		require.Equal(t, needsPath, why["a"])
		require.Equal(t, string(data), string(now))
	}
}

// Flags that somebody has added go with serve. What adopt could not have written stays.
func TestUndoTakesServeAway(t *testing.T) {
	for entry, want := range map[string]string{
		`{"command": "mcpactor", "args": ["serve", "--wait", "8s", "--", "npx", "-y", "x"]}`:             `{"command": "npx", "args": ["-y", "x"]}`,
		"{\"args\": [\n \"serve\",\n \"--\",\n \"npx\"\n ], \"command\": \"mcpactor\"}":                  "{\"args\": [\n ], \"command\": \"npx\"}",
		`{"command": "cmd", "args": ["/c", "npx", "-y", "mcpactor", "serve", "--", "x"]}`:                `{"command": "x"}`,
		`{"command": {"path": "mcpactor", "args": ["serve", "--", "x", "y"]}}`:                           `{"command": {"path": "x", "args": ["y"]}}`,
		`{"command": "mcpactor", "args": ["serve", "--config", "x.json"]}`:                               "",
		`{"command": "mcpactor", "args": ["serve", "--header", "A=${B}", "https://x.example"]}`:          "",
		`{"command": "cmd", "args": ["/c", "mcpactor", "serve", "--", "x"]}`:                             `{"command": "x"}`,
		`{"command": "npx", "args": ["-y", "mcpactor@1.2.3", "serve", "--", "x"]}`:                       `{"command": "x"}`,
		`{"command": "npx", "args": ["-y", "dotenv-cli", "-e", ".env", "mcpactor", "serve", "--", "x"]}`: "",
		`{"command": "npx", "args": ["mcpactor", "serve", "--", "x"]}`:                                   "",
		`{"command": "cmd", "args": ["/c", "echo", "mcpactor", "serve", "--", "x"]}`:                     "",
		`{"command": "env", "args": ["A=b", "mcpactor", "serve", "--", "x"]}`:                            "",
		`{"command": "mcpactor", "args": ["serve", "--"]}`:                                               "",
		`{"command": "mcpactor", "args": ["serve", "--", "x"], "url": "https://x.example"}`:              "",
		`{"command": "mcpactor", "env": {}, "args": ["serve", "https://x.example"]}`:                     "",
	} {
		now, why := all(t, "mcp.json", []byte(`{"mcpServers": {"a": `+entry+`}}`), undo)
		if want == "" {
			require.Equal(t, notOurs, why["a"], entry)
			want = entry
		}
		require.Equal(t, `{"mcpServers": {"a": `+want+`}}`, string(now))
	}
}

func TestProgramIsWrittenSoThatTheClientFindsIt(t *testing.T) {
	const package_ = "/home/ada/.npm/_npx/1f/node_modules/@mcpactor/linux-x64/bin/mcpactor"
	for _, c := range []struct {
		self, found string
		same        bool
		system      string
		want        []string
		path        string
	}{
		{"/usr/bin/mcpactor", "/usr/bin/mcpactor", true, "linux", []string{"mcpactor"}, "/usr/bin/mcpactor"},
		{"/home/ada/go/bin/mcpactor", "", false, "linux", []string{"/home/ada/go/bin/mcpactor"}, "/home/ada/go/bin/mcpactor"},
		{"/home/ada/go/bin/mcpactor", "/usr/bin/mcpactor", false, "linux", []string{"/home/ada/go/bin/mcpactor"}, "/home/ada/go/bin/mcpactor"},
		{package_, "/home/ada/.npm/_npx/1f/node_modules/.bin/mcpactor", false, "linux", []string{"npx", "-y", "mcpactor"}, ""},
		{package_, "/usr/bin/mcpactor", false, "linux", []string{"mcpactor"}, "/usr/bin/mcpactor"},
		{"C:/npm/node_modules/mcpactor/node_modules/@mcpactor/win32-x64/bin/mcpactor.exe", "C:/npm/mcpactor.CMD", false, "windows", []string{"cmd", "/c", "mcpactor"}, "C:/npm/node_modules/mcpactor/node_modules/@mcpactor/win32-x64/bin/mcpactor.exe"},
		{package_, "", false, "windows", []string{"cmd", "/c", "npx", "-y", "mcpactor"}, ""},
		{"/usr/lib/node_modules/mcpactor/node_modules/@mcpactor/linux-x64/bin/mcpactor", "/usr/bin/mcpactor", false, "linux", []string{"mcpactor"}, "/usr/lib/node_modules/mcpactor/node_modules/@mcpactor/linux-x64/bin/mcpactor"},
		{"/tmp/go-build123/b001/exe/mcpactor", "", false, "linux", nil, "/tmp/go-build123/b001/exe/mcpactor"},
	} {
		words := wordsFor(c.self, c.found, c.same, c.system)
		require.Equal(t, c.want, words)
		require.Equal(t, c.path, pathFor(c.self, c.found, c.same, words))
	}
}
