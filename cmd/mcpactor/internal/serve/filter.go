package serve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/toolset"
)

// filterFlags say which tools all clients get.
type filterFlags struct {
	Allow    patterns `placeholder:"PATTERN" hidden:"" help:"Serve only these tools, as in read_* or SERVER/read_*."`
	Deny     patterns `hidden:"" placeholder:"PATTERN" help:"Serve none of these tools."`
	ReadOnly bool     `hidden:"" help:"Serve only tools with the annotation readOnlyHint."`
}

// patterns are the values of a flag, which may be repeated.
type patterns []config.Pattern

// UnmarshalText adds patterns that are separated by commas. An empty text is an error: it could be meant as a restriction.
func (p *patterns) UnmarshalText(text []byte) error {
	for one := range strings.SplitSeq(string(text), ",") {
		pattern, err := config.ParsePattern(one)
		if err != nil {
			return fmt.Errorf("%q %w", one, err)
		}
		*p = append(*p, pattern)
	}
	return nil
}

// check returns an error if a pattern is for none of the servers.
func (f *filterFlags) check(servers []toolset.Filter) error {
	for _, pattern := range slices.Concat(f.Allow, f.Deny) {
		if !slices.ContainsFunc(servers, func(srv toolset.Filter) bool { return pattern.Fits(srv.Name) }) {
			return cli.Usagef("--allow, --deny: %s: there is no such server: write */TOOL for a tool whose name has a slash", pattern)
		}
	}
	return nil
}

// filters returns the filters beside that in the entry of a server: that of the flags, and that of the file for the client.
func (f *filterFlags) filters(file *config.File, client, server string) []toolset.Filter {
	all := []toolset.Filter{config.Client{Allow: f.Allow, Deny: f.Deny, ReadOnly: f.ReadOnly}.Filter(server)}
	if file != nil {
		all = append(all, file.Client(client).Filter(server))
	}
	return all
}
