package config

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/mcpactor/mcpactor/toolset"
)

// Client says which tools a client of mcpactor serve gets. The zero value is all tools.
type Client struct {
	// Name is the name that the client gives itself in clientInfo, or a pattern such as "cursor*", in the form of [toolset.Filter.Allow].
	Name string
	// Allow are the tools that it gets. Defaults to all.
	Allow []Pattern
	// Deny are tools that it does not get. It takes precedence over Allow.
	Deny []Pattern
	// ReadOnly is the field of [toolset.Filter].
	ReadOnly bool
}

// Filter returns the filter for the tools of a server.
func (c Client) Filter(server string) toolset.Filter {
	of := func(patterns []Pattern) (tools []string) {
		for _, p := range patterns {
			if p.Fits(server) {
				tools = append(tools, p.tool)
			}
		}
		return tools
	}
	filter := toolset.Filter{Name: server, Allow: of(c.Allow), Deny: of(c.Deny), ReadOnly: c.ReadOnly}
	if len(c.Allow) > 0 && len(filter.Allow) == 0 { // tools of other servers only
		filter.Deny = []string{"*"}
	}
	return filter
}

// Pattern stands for tools of one of several servers, or of all of them. It is read-only.
type Pattern struct{ server, tool string }

// ParsePattern reads a pattern on the names that servers give their tools, in the form of [toolset.Filter.Allow]. What comes before
// the first slash, as in "files/read_*", is the name of a server, or a pattern on it: "*/admin/drop" is the tool admin/drop of any server.
func ParsePattern(text string) (Pattern, error) {
	p := Pattern{server: "*", tool: text}
	if server, tool, found := strings.Cut(text, "/"); found {
		p = Pattern{server, tool}
	}
	if p.server == "" || p.tool == "" {
		return p, errors.New("has no name of a tool, or none of a server before the slash")
	}
	for _, part := range []string{p.server, p.tool} {
		if _, err := path.Match(part, ""); err != nil {
			return p, fmt.Errorf("is not a valid pattern: %w", err)
		}
	}
	return p, nil
}

// String returns the text of the pattern, with its server.
func (p Pattern) String() string { return p.server + "/" + p.tool }

// Fits reports whether the pattern may stand for tools of a server.
func (p Pattern) Fits(server string) bool { return matches(p.server, server) }

// matches reports whether a name is a pattern, or matches it.
func matches(pattern, name string) bool {
	return toolset.Filter{Allow: []string{pattern}}.Wants(name, false)
}
