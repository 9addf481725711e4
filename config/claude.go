package config

import (
	"os"
	"path/filepath"
)

// project returns the servers that a file of Claude Code, ~/.claude.json, has for the folder that this program was started in, or
// nil. The projects of other folders have no effect, and neither have their restrictions.
func (r *reader) project(projects *node) (local *node) {
	for _, folder := range projectFolders() {
		for _, project := range projects.items {
			if filepath.Clean(project.name) != folder || project.field("mcpServers") == nil && project.field("disabledMcpServers") == nil {
				continue
			}
			r.fields(project, map[string]any{"mcpServers": &local, "disabledMcpServers": &r.excluded}, func(field *node) {
				switch field.name {
				case "allowedTools", "enabledMcpjsonServers", "disabledMcpjsonServers": // tools that need no confirmation, and servers of other files
					r.warn(field, "has no effect")
				default:
					r.unknown(field)
				}
			})
			return local
		}
	}
	r.warn(projects, "has no effect")
	return nil
}

// projectFolders returns the folders whose project this may be: the working directory, and the root of its repository.
func projectFolders() (folders []string) {
	start, err := os.Getwd()
	if err != nil {
		return nil
	}
	folders = []string{start}
	if resolved, err := filepath.EvalSymlinks(start); err == nil {
		folders = append(folders, resolved)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return append(folders, dir)
		}
		if dir == filepath.Dir(dir) {
			return folders
		}
	}
}

// otherProject returns the folder of a project that has servers, or "".
func otherProject(projects *node) string {
	if projects == nil {
		return ""
	}
	for _, project := range projects.items {
		if servers := project.field("mcpServers"); servers != nil && !neutral(servers) {
			return project.name
		}
	}
	return ""
}
