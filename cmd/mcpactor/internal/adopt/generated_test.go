package adopt

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/require"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"

	"github.com/mcpactor/mcpactor/config"
)

// generator makes files with servers, in any style.
type generator struct{ *rand.Rand }

func (g generator) oneOf(texts ...string) string { return texts[g.IntN(len(texts))] }

// servers returns the entries of up to four servers, by their names.
func (g generator) servers() map[string]any {
	servers := map[string]any{}
	for _, name := range []string{"a", "b", "c", "d"}[:1+g.IntN(4)] {
		entry := map[string]any{}
		if g.IntN(5) == 0 {
			entry["url"] = "https://" + name + ".example/mcp"
		} else {
			entry["command"] = g.oneOf("npx", "./a b", `C:\x "y"`, "größe", "it's", "a,b", "[x]", "8080", "a#b")
		}
		if entry["url"] == nil && g.IntN(3) > 0 {
			args := []string{}
			for range g.IntN(4) {
				args = append(args, g.oneOf("-y", "a b", `"y"\`, "größe", "it's", "a,b", "{y}", "#no", "--", "serve", "8080", "true", "null", "a: b", "- x", ""))
			}
			entry["args"] = args
		}
		if g.IntN(2) == 0 {
			entry["disabled"] = g.IntN(2) == 0
		}
		servers[name] = entry
	}
	return servers
}

// json writes servers as JSON with comments and white space anywhere.
func (g generator) json(servers map[string]any) []byte {
	data, _ := json.Marshal(map[string]any{"mcpServers": servers})
	if g.IntN(3) == 0 {
		data, _ = json.MarshalIndent(map[string]any{"mcpServers": servers}, "", g.oneOf("  ", "\t"))
	}
	tree, _ := hujson.Parse(data)
	for range g.IntN(2) {
		for v := range tree.All() {
			v.BeforeExtra = hujson.Extra(g.oneOf("", " ", "\n    ", " /* , ] */ ", "\n// \" ]\n"))
			v.AfterExtra = hujson.Extra(g.oneOf("", " ", "\n", " // it\n"))
		}
	}
	return tree.Pack()
}

// yaml writes servers as YAML in blocks and brackets, with and without quotes.
func (g generator) yaml(servers map[string]any) []byte {
	var root yaml.Node
	_ = root.Encode(map[string]any{"version": 1, "mcpServers": servers})
	for _, n := range root.Content { // a file that begins with a brace is JSON
		g.restyle(n, false)
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2 + g.IntN(3))
	_ = encoder.Encode(&root)
	return b.Bytes()
}

// restyle gives a node and those below it any style. There are no comments in brackets.
func (g generator) restyle(n *yaml.Node, inBrackets bool) {
	switch {
	case n.Kind != yaml.ScalarNode && g.IntN(4) == 0:
		n.Style, inBrackets = yaml.FlowStyle, true
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		n.Style = []yaml.Style{0, yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle}[g.IntN(3)]
		if !inBrackets {
			n.LineComment = g.oneOf("", "", "# it's, ]")
		}
	}
	for _, below := range n.Content {
		g.restyle(below, inBrackets)
	}
}

// toml writes servers as TOML, in tables of their own or in one.
func (g generator) toml(servers map[string]any) []byte {
	var b bytes.Buffer
	encoder := toml.NewEncoder(&b)
	encoder.SetTablesInline(g.IntN(2) == 0).SetArraysMultiline(g.IntN(2) == 0).SetIndentTables(g.IntN(2) == 0)
	_ = encoder.Encode(map[string]any{"mcp_servers": servers})
	return b.Bytes()
}

// read returns how the servers of a file are started, as programs read it: the words, or the URL.
func read(t *testing.T, path string, data []byte) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	if path == "config.toml" {
		var file struct {
			Servers map[string]struct {
				Command, URL string
				Args         []string
			} `toml:"mcp_servers"`
		}
		require.NoError(t, toml.Unmarshal(data, &file), "%s", data)
		for name, s := range file.Servers {
			found[name] = append([]string{s.Command + s.URL}, s.Args...)
		}
		return found
	}
	file, err := config.Loader{}.Parse(bytes.ReplaceAll(data, []byte("true"), []byte("false"))) // with those that are disabled
	require.NoError(t, err, "%s", data)
	for _, s := range file.Supervisor.Servers {
		found[s.Name] = append([]string{s.Command + s.URL}, s.Args...)
	}
	return found
}

// Each file is the same after adopt and undo, adopting again changes nothing, and programs that read it find serve before the same servers.
func TestGeneratedFilesAreAdoptedAndUndone(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	changed, left := 0, 0
	for range 300 {
		servers := g.servers()
		path := g.oneOf("mcp.json", "librechat.yaml", "config.toml")
		data := map[string]func(map[string]any) []byte{"mcp.json": g.json, "librechat.yaml": g.yaml, "config.toml": g.toml}[path](servers)
		if g.IntN(3) == 0 {
			data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
		}
		if g.IntN(5) == 0 && path != "config.toml" {
			data = append([]byte("\ufeff"), data...)
		}
		adopted, why := requireUndone(t, path, data)
		before, after := read(t, path, data), read(t, path, adopted)
		require.Len(t, after, len(servers), "%s", adopted)
		for name := range servers {
			want := before[name]
			switch reason := why[name]; {
			case reason == isOdd && path == "librechat.yaml":
				left++
			case reason != "":
				require.Fail(t, reason, "%s", data)
			case isHTTP(want[0]):
				want = append([]string{"mcpactor", "serve"}, want...)
			case wholePath.MatchString(want[0]):
				want = append([]string{installed.path, "serve", "--"}, want...)
			default:
				want = append([]string{"mcpactor", "serve", "--"}, want...)
			}
			require.Equal(t, want, after[name], "%s", adopted)
			changed++
		}
	}
	require.Less(t, left, changed/20)
}
