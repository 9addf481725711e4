package config_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"github.com/tailscale/hujson"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/toolset"
)

// H-H: no restriction of a file is lost.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`{"mcpServers": {"a": {"command": "x", "args": ["${A:-b}"], "env": {"A": "b"}}}, "supervisor": {"callTimeout": "1s"}}`,
		`{"mcpServers": {"a": {"url": "http://x", "type": "sse", "headers": {"A": "${TOKEN}"}}}}`,
		`{"mcpServers": {"a": {"command": "x", "allow": ["[a-"], "deny": ["b"], "metadata": {"c": "${A:-b}"}}}, "supervisor": {"store": "s", "roots": true}}`,
		`{"mcpServers": {"a": {"command": "x", "disabledTools": ["b"], "Deny": ["c"], "enabled": false}}}`,
		`{"mcpServers": {"a b": {"httpUrl": "http://x/$TOKEN", "includeTools": ["c"]}}, "mcp": {"allowed": ["a b"]}, "tools": {"exclude": ["x"]}}`,
		`{"mcp": {"a": {"type": "local", "command": ["x", "{env:TOKEN}"], "enabled": true}}, "tools": {"a_x*": false}, "permission": {"*": "deny"}}`,
		`{"servers": {"a": {"command": "x", "sandbox": {"deny": ["y"]}}}, "inputs": [{"id": "a"}], /* c */ }`,
		"mcpServers:\n  a:\n    command: x\n    deny: [y]\n    env: {A: '{{B}}'}\n",
		"context_servers: {a: {source: custom, command: {path: x}, enabled: false}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := config.Loader{LookupEnv: environment}.Parse(data)
		if err != nil {
			require.NotEmpty(t, err.Error())
			require.Nil(t, file)
			if file, err = (config.Loader{LookupEnv: environment, LeaveOut: true}).Parse(data); err != nil {
				return
			}
		}
		require.Len(t, file.Tools, len(file.Supervisor.Servers))
		for i, server := range file.Supervisor.Servers {
			require.NoError(t, server.Validate())
			require.Equal(t, server.Name, file.Tools[i].Name)
			for _, values := range [][]string{{server.URL, server.Command, server.Dir}, values(server.Headers), values(server.Env)} {
				for _, value := range values {
					require.NotRegexp(t, `^(Bearer )?(\$\{[^}]*\}|\$[A-Za-z_]+|\{env:[^}]*\}|\{\{\w+\}\})$`, strings.ReplaceAll(value, "t0ken ${HOME}", ""))
				}
			}
		}
		var root map[string]any
		if standard, err := hujson.Standardize(data); err == nil && json.Unmarshal(standard, &root) == nil {
			restrictionsHold(t, root, file)
		}
	})
}

// H-H: no restriction is lost, for each word, spelling, place in a file and kind of
// value.
func TestNoSpellingOfARestrictionIsIgnored(t *testing.T) {
	spellings := []func(string) string{
		func(word string) string { return word },
		strings.ToLower, strings.ToUpper,
		func(word string) string { return strings.ToUpper(word[:1]) + word[1:] },
		func(word string) string {
			return strings.ToLower(strings.NewReplacer("Tools", "_Tools", "Servers", "-Servers").Replace(word))
		},
		func(word string) string { return " " + word + "." },
	}
	kinds := []string{`["x"]`, `{"x": ["y"]}`, `"x"`, `{"x": true}`, "1", "[[1]]"}
	places := []string{
		`{"mcpServers": {"a": {"command": "c", %s}}}`,
		`{"mcpServers": {"a": {"command": "c", "other": {"more": [{%s}]}}}}`,
		`{"mcpServers": {"a": {"command": "c"}}, %s}`,
		`{"mcpServers": {"a": {"command": "c"}}, "other": [{"more": {%s}}]}`,
		`{"mcpServers": {"a": {"command": "c"}}, "supervisor": {%s}}`,
		`{"mcpServers": {"a": {"command": "c"}}, "mcp": {%s}}`,
	}
	for _, word := range []string{"deny", "disabledTools", "excludeTools", "includeTools", "enabledTools", "allowedTools"} {
		for _, spelling := range spellings {
			for _, value := range kinds {
				for _, place := range places {
					text := strings.Replace(place, "%s", `"`+spelling(word)+`": `+value, 1)
					file, err := parse(text)
					if err != nil {
						continue
					}
					require.Equal(t, places[0], place, text)
					require.Equal(t, word, spelling(word), text)
					require.Equal(t, []string{"x"}, append(file.Tools[0].Allow, file.Tools[0].Deny...), text)
				}
			}
		}
	}
	for word, off := range map[string]string{"disabled": "true", "enabled": "false"} {
		for _, spelling := range spellings {
			for _, place := range []string{places[0], places[2], places[4], places[5]} {
				_, err := parse(strings.Replace(place, "%s", `"`+spelling(word)+`": `+off, 1))
				require.Error(t, err, "the only server is disabled, or the field is unknown")
			}
		}
	}
}

func values(of map[string]string) (values []string) {
	for _, value := range of {
		values = append(values, value)
	}
	return values
}

// restrictionsHold checks that each restriction in a file with mcpServers has its effect.
func restrictionsHold(t *testing.T, root map[string]any, file *config.File) {
	servers, ours := root["mcpServers"].(map[string]any)
	if !ours {
		return
	}
	for name, value := range root {
		if name != "mcpServers" && name != "mcp" && name != "clients" && name != "projects" { // the projects of other folders restrict nothing here
			require.Empty(t, restrictions(map[string]any{name: value}))
		}
	}
	for name, value := range servers {
		i := slices.IndexFunc(file.Tools, func(tools toolset.Filter) bool { return tools.Name == name })
		entry, _ := value.(map[string]any)
		if off, on := entry["disabled"] == true, entry["enabled"] != false; off || !on {
			require.Negative(t, i)
			continue
		}
		if i < 0 {
			continue // the server has another name, or is excluded
		}
		for field, value := range entry {
			list, _ := value.([]any)
			switch field {
			case "deny", "disabledTools", "excludeTools":
				for _, item := range list {
					if name := item.(string); !strings.ContainsAny(name, "${") {
						require.Contains(t, file.Tools[i].Deny, name)
					}
				}
			case "allow", "includeTools", "enabledTools", "tools":
				require.True(t, len(list) == 0 || len(file.Tools[i].Allow) == len(list))
			case "disabled", "enabled", "env", "environment", "headers", "metadata", "setup":
			default:
				require.Empty(t, restrictions(map[string]any{field: value}))
			}
		}
	}
}

// restrictions returns the names of the fields that restrict, in any case and with any
// punctuation, unless their values have no effect.
func restrictions(value any) (found []string) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			found = append(found, restrictions(item)...)
		}
	case map[string]any:
		for name, field := range value {
			word := strings.ToLower(strings.Map(func(r rune) rune {
				if unicode.IsLetter(r) || unicode.IsDigit(r) {
					return r
				}
				return -1
			}, name))
			if slices.Contains([]string{"deny", "disabledtools", "excludetools", "includetools", "enabledtools", "allowedtools"}, word) && hasEffect(field) {
				found = append(found, name)
			}
			found = append(found, restrictions(field)...)
		}
	}
	return found
}

// hasEffect reports whether a value is more than false, empty, or a list of such values.
func hasEffect(value any) bool {
	switch value := value.(type) {
	case bool, nil:
		return false // "deny": false
	case string:
		return value != ""
	case []any:
		return slices.ContainsFunc(value, hasEffect)
	case map[string]any:
		for _, field := range value {
			if hasEffect(field) {
				return true
			}
		}
		return false
	}
	return true
}
