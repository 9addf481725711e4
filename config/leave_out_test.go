package config

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// form is a kind of file, with the entries of its servers and further fields of its root in place of SERVERS and ROOT.
type form struct{ path, text string }

func forms(t *testing.T) []form {
	folder, err := os.Getwd()
	require.NoError(t, err)
	project, err := json.Marshal(folder)
	require.NoError(t, err)
	return []form{
		{"claude_desktop_config.json", `{"mcpServers": {SERVERS} ROOT}`},
		{".claude.json", `{"mcpServers": {}, "projects": {` + string(project) + `: {"mcpServers": {SERVERS}, "allowedTools": ["x"]}} ROOT}`},
		{".cursor/mcp.json", `{"mcpServers": {SERVERS} ROOT}`},
		{".vscode/mcp.json", `{"servers": {SERVERS} ROOT}`},
		{"settings.json", `{"mcp": {"inputs": [], "servers": {SERVERS}} ROOT}`},
		{".gemini/settings.json", `{"mcpServers": {SERVERS} ROOT}`},
		{"opencode.json", `{"mcp": {SERVERS} ROOT}`},
		{"v2/opencode.json", `{"mcp": {"servers": {SERVERS}} ROOT}`},
		{"zed.json", `{"context_servers": {SERVERS} ROOT}`},
		{"librechat.yaml", "anchor: &alias x\nmcpServers: {SERVERS} ROOT"},
	}
}

// load reads a file of a form, strictly and with LeaveOut.
func (f form) load(servers, root string) (strict, lenient *File, strictErr, lenientErr error) {
	if root != "" {
		root = map[bool]string{true: "\n", false: ", "}[f.isYAML()] + root
	}
	data := []byte(strings.NewReplacer("SERVERS", servers, "ROOT", root).Replace(f.text))
	none := func(string) (string, bool) { return "", false }
	strict, strictErr = Loader{LookupEnv: none}.reader(f.path).read(data)
	lenient, lenientErr = Loader{LookupEnv: none, LeaveOut: true}.reader(f.path).read(data)
	return strict, lenient, strictErr, lenientErr
}

func (f form) isYAML() bool { return strings.HasSuffix(f.path, ".yaml") }

// comparable returns servers without their functions.
func comparable(servers []mcpbridge.Server) []mcpbridge.Server {
	servers = slices.Clone(servers)
	for i := range servers {
		servers[i].PerKey = nil
	}
	return servers
}

const goodEntry = `"good": {"command": "x", "deny": ["y"]}`

// badEntries are entries with each field and each kind of value, of which many are no error.
func badEntries(yaml bool) (entries []string) {
	values := []string{
		`null`, `true`, `false`, `0`, `-1`, `1.5`, `1e400`, `""`, `"x"`, `"${NOT_SET}"`, `"$NOT_SET"`, `"${"`, `"{{A}}"`, `"{env:NOT_SET}"`, `"${scope}"`, `"${file:/no/such}"`,
		`"a\u0000"`, `"http://h.example"`, `[]`, `["x"]`, `["["]`, `[7]`, `[null]`, `["${NOT_SET}"]`, `[["x"]]`, `{}`, `{"x": "y"}`, `{"x": 7}`, `{"x": null}`, `{"x": "${NOT_SET}"}`,
		`{"x": "a", "x": "b"}`, `[{"tool": ""}]`, `{"deny": ["x"]}`, `{"x": {"y": "deny"}}`, `{"maxSessions": -5}`, `{"callTimeout": "x"}`, `{"enabled": 1}`,
	}
	if yaml {
		values = append(values, `*alias`, `!tag x`, `{<<: {}}`, `{? [a] : b}`, `2001-01-01`)
	} else {
		values = append(values, `"\ud800"`, `{"\ud800": 1}`)
	}
	fields := append(slices.Sorted(maps.Keys((&entry{}).fields())), "timeout", "trust", "Deny", "toolFilter", "isActive", "sandbox", "commnd", "policy")
	for _, value := range values {
		entries = append(entries, value)
		for _, field := range fields {
			base := `"command": "x", `
			switch {
			case slices.Contains([]string{"command", "url", "httpUrl", "serverUrl"}, field):
				base = ""
			case slices.Contains([]string{"headers", "oauth", "auth", "noStream", "noCookies", "transport"}, field):
				base = `"url": "https://h.example/mcp", `
			}
			entries = append(entries, `{`+base+`"`+field+`": `+value+`}`)
		}
	}
	return append(entries, `{"command": "x", "deny": ["y"], "deny": []}`, `{"command": "x", "url": "https://h.example"}`, `{"url": "http://mcp.example.com/mcp", "headers": {"A": "b"}}`)
}

// H-H: an error in an entry costs that entry only, in each kind of file. What is served has the content that it has without
// LeaveOut, so that nothing is served with less restriction.
func TestAnErrorInAnEntryCostsThatEntry(t *testing.T) {
	for _, f := range forms(t) {
		t.Run(f.path, func(t *testing.T) {
			t.Parallel()
			alone, _, err, _ := f.load(goodEntry, "")
			require.NoError(t, err)
			cost, kept := 0, 0
			for _, entry := range badEntries(f.isYAML()) {
				bad := `"bad": ` + entry
				strict, lenient, strictErr, err := f.load(goodEntry+", "+bad, "")
				require.NoError(t, err, bad)
				if strictErr == nil {
					kept++
					require.Equal(t, comparable(strict.Supervisor.Servers), comparable(lenient.Supervisor.Servers), bad)
					require.Equal(t, strict.Tools, lenient.Tools, bad)
					require.Equal(t, strict.Warnings, lenient.Warnings, bad)
					continue
				}
				cost++
				require.Equal(t, alone.Supervisor.Servers, lenient.Supervisor.Servers, bad)
				require.Equal(t, alone.Tools, lenient.Tools, bad)
				for line := range strings.SplitSeq(strings.TrimPrefix(strictErr.Error(), f.path+":"), "\n"+f.path+":") {
					require.True(t, slices.ContainsFunc(lenient.Warnings, func(w Warning) bool {
						return w.Server == "bad" && strings.HasSuffix(w.String(), line+"; the server is left out")
					}), "%s: %s in %v", bad, line, lenient.Warnings)
				}
				if cost%10 == 0 { // to save time
					_, _, strictErr, err = f.load(bad, "")
					require.Error(t, err, "no server is left: %s", bad)
					require.Equal(t, strictErr.Error(), err.Error())
				}
			}
			require.Greater(t, cost, 800)
			require.Greater(t, kept, 300)
		})
	}
}

// An error outside of the entries costs the file: it may restrict all servers.
func TestAnErrorOutsideOfEntriesCostsTheFile(t *testing.T) {
	for _, f := range forms(t) {
		for _, root := range []string{
			`"disabled": true`, `"supervisr": {}`, `"supervisor": {"maxSession": 1}`, `"supervisor": {"store": "${NOT_SET}"}`, `"supervisor": {"store": "${input:x}"}`,
			`"permissions": {"deny": ["x"]}`, `"disabledMcpServers": ["bad"]`, `"supervisor": {}, "supervisor": {}`, `"supervisor": 7`,
		} {
			if f.isYAML() {
				root = strings.ReplaceAll(root, "}, ", "}\n")
			}
			for _, bad := range []string{`, "bad": {"command": 7}`, ``} {
				_, _, strictErr, err := f.load(goodEntry+bad, root)
				require.Error(t, err, "%s: %s", f.path, root)
				require.Contains(t, strictErr.Error(), err.Error())
			}
		}
		for _, servers := range []string{
			`"bad": {"command": "x"}, "bad": {"command": 7}`, `"bad": {"command": 7}, "bad": {"command": 7}`,
			`"a b": {"command": 7}, "a-b": {"command": "x"}`, `"a b": {"command": "x"}, "a-b": {"command": 7}`,
		} {
			_, _, _, err := f.load(goodEntry+", "+servers, "")
			require.Error(t, err, "%s: %s", f.path, servers)
			require.Regexp(t, "is a duplicate|is the name of", err.Error(), servers)
		}
	}
}
