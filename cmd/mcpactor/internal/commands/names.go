package commands

import (
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/internal/nearest"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/toolset"
)

// named is a tool that a command line names.
type named struct {
	servers []mcpbridge.Server // that may have it: several only if the name of one is the beginning of another's
	words   []string           // the name of the tool, and the arguments
}

// nameIn returns the tool that words name: SERVER TOOL, or one word as the command tools shows it. path is that of the file.
func nameIn(file *config.File, path string, words []string) (named, error) {
	if len(words) == 0 {
		return named{}, nil
	}
	srv, err := serverIn(file, words[0])
	isAlone := len(words) == 1 || strings.ContainsAny(words[1], "={") // an argument follows
	switch {
	case err == nil && isAlone:
		return named{}, cli.Usagef("%s: give the name of a tool as well: mcpactor tools --config %s %s lists them", words[0], path, words[0])
	case err == nil:
		return named{[]mcpbridge.Server{srv}, words[1:]}, nil
	}
	meant := named{words: words}
	for _, srv := range file.Supervisor.Servers {
		if mayName(words[0], srv.Name) {
			meant.servers = append(meant.servers, srv)
		}
	}
	if len(meant.servers) > 0 {
		return meant, nil
	}
	for _, warning := range file.Warnings {
		if warning.Server != "" && mayName(words[0], warning.Server) {
			_, err = serverIn(file, warning.Server)
			return named{}, err
		}
	}
	if isAlone && !strings.Contains(words[0], "__") {
		err = cli.Usagef("%s: write SERVER__TOOL: mcpactor tools --config %s lists these names", words[0], path)
	}
	return named{}, err
}

// mayName reports whether a tool of a server may have a name: the name begins like others of the server, except for a hash.
func mayName(name, server string) bool {
	prefix := toolset.SafeName(server, "")
	if prefix != server+"__" {
		prefix = prefix[:strings.LastIndexByte(prefix, '_')]
	}
	return strings.HasPrefix(name, prefix[:min(len(prefix), shortest)])
}

// shortest is how much of a name is left if it is cut for the longest hash.
const shortest = 31

// toolIn returns the tool of a server in a list, or nil. It may be named as the server names it, or else as the command tools does.
func toolIn(tools []*mcp.Tool, server, name string) *mcp.Tool {
	at := slices.IndexFunc(tools, func(t *mcp.Tool) bool { return t.Name == name })
	if at < 0 {
		at = slices.IndexFunc(tools, func(t *mcp.Tool) bool { return toolset.SafeName(server, t.Name) == name })
	}
	if at < 0 {
		return nil
	}
	return tools[at]
}

// serverIn returns the server of a file with a name, which may be that in the file.
func serverIn(file *config.File, name string) (mcpbridge.Server, error) {
	var names []string
	for _, srv := range file.Supervisor.Servers {
		if srv.Name == name || srv.Name == file.Renamed[name] {
			return srv, nil
		}
		names = append(names, srv.Name)
	}
	if lacks := inputs.LeftOut(file, name); len(lacks) > 0 {
		return mcpbridge.Server{}, cli.Usagef("%s", lacks[0])
	}
	known := slices.Clone(names)
	for _, warning := range file.Warnings {
		known = append(known, warning.Server)
	}
	if meant := nearest.Of(name, known); meant != "" {
		return mcpbridge.Server{}, cli.Usagef("there is no server %q: did you mean %q?", name, meant)
	}
	return mcpbridge.Server{}, cli.Usagef("there is no server %q: the file has %s", name, strings.Join(names, ", "))
}
