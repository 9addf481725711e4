package target

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/internal/visible"
)

// runners are programs that run the server which their arguments name.
var runners = []string{"npx", "bunx", "pnpm", "yarn", "uvx", "uv", "pipx", "node", "deno", "python", "python3", "docker", "podman"}

// unnamed are the files and the folders of a package that say nothing about it.
var unnamed = []string{"index", "main", "cli", "server", "dist", "build", "src", "bin", "lib", "."}

// programOf returns the name of the package or the file at a path.
func programOf(file string) string {
	for at := file; at != "/" && at != "."; at = path.Dir(at) {
		if name := path.Base(at); !slices.Contains(unnamed, strings.TrimSuffix(name, path.Ext(name))) {
			return name
		}
	}
	return path.Base(file)
}

// nameOf returns a name for the server of a command: that of the package or the file that is run.
func nameOf(command []string) string {
	name := strings.TrimSuffix(filepath.Base(command[0]), ".exe")
	if slices.Contains(runners, name) {
		for _, argument := range command[1:] {
			if !strings.HasPrefix(argument, "-") && argument != "run" && argument != "dlx" && argument != "exec" {
				name = programOf(filepath.ToSlash(argument))
				break
			}
		}
	}
	if before, _, versioned := strings.Cut(name, "@"); versioned && before != "" {
		name = before
	}
	if name = visible.Name(name); name == "" {
		return "server"
	}
	return name
}
