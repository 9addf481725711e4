package adopt

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// clients are the files of clients, by their names: those of the current folder, then those of the user. $CONFIG is the folder for
// configuration of the system.
var clients = map[string][]string{
	"claude":         {".mcp.json", "$HOME/.claude.json", "$CLAUDE_CONFIG_DIR/.claude.json"},
	"claude-desktop": {"$CONFIG/Claude/claude_desktop_config.json"},
	"codex":          {".codex/config.toml", "$HOME/.codex/config.toml", "$CODEX_HOME/config.toml"},
	"cursor":         {".cursor/mcp.json", "$HOME/.cursor/mcp.json"},
	"gemini":         {".gemini/settings.json", "$HOME/.gemini/settings.json"},
	"librechat":      {"librechat.yaml"},
	"opencode": {
		"opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc",
		"$HOME/.config/opencode/opencode.json", "$HOME/.config/opencode/opencode.jsonc", "$CONFIG/opencode/opencode.json", "$CONFIG/opencode/opencode.jsonc",
	},
	"vscode":   {".vscode/mcp.json", "$CONFIG/Code/User/mcp.json"},
	"windsurf": {"$HOME/.codeium/windsurf/mcp_config.json"},
	"zed":      {".zed/settings.json", "$HOME/.config/zed/settings.json", "$CONFIG/zed/settings.json"},
}

// clientNames returns the names of the clients, in order.
func clientNames() []string { return slices.Sorted(maps.Keys(clients)) }

// Candidates returns what a shell offers as the first argument.
func (*Adopt) Candidates() []string { return clientNames() }

// filesOf returns where a client may have files, once each.
func filesOf(client string) (paths []string) {
	for _, path := range clients[client] {
		known := true
		path = os.Expand(path, func(name string) string {
			folder := os.Getenv(name)
			switch name {
			case "HOME":
				folder, _ = os.UserHomeDir()
			case "CONFIG":
				folder, _ = os.UserConfigDir()
			}
			known = known && folder != ""
			return folder
		})
		if path, err := filepath.Abs(path); err == nil && known && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}
