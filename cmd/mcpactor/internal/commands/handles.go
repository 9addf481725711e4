package commands

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/handleguess"
	"github.com/mcpactor/mcpactor/internal/nearest"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// proposals writes the declarations that the tools of servers suggest, each as a line that can be copied into a file.
func proposals(all []*diagnosis, s cli.Screen) string {
	var text strings.Builder
	for _, d := range all {
		if len(d.Handles) > 0 {
			text.WriteString(s.Wrap(fmt.Sprintf("\n%s: some of its tools look as if they open what others close. The lines below are not in use: "+
				"to have it closed when a conversation ends, check a line, and put it into the list \"handles\" of the server\n", d.Server), 4))
		}
		for _, guess := range d.Handles {
			line, _ := json.Marshal(guess) // texts
			text.WriteString(string(line) + "\n" + s.Wrap(hints(guess), 0))
		}
	}
	return text.String()
}

// hints says what a proposed declaration lacks, and what it might have.
func hints(guess handleguess.Guess) string {
	var all []string
	if guess.Path == "" {
		all = append(all, fmt.Sprintf("it lacks \"path\" or \"pattern\", which say where the result of %s has %s", guess.Mint, guess.Argument))
	}
	if guess.Instead != nil {
		all = append(all, "its \"release\" may also be "+strings.Join(guess.Instead, " or "))
	}
	if guess.Lists != nil {
		all = append(all, "its \"list\" may be "+strings.Join(guess.Lists, " or "))
	}
	if all == nil {
		return ""
	}
	return "    " + strings.Join(all, "; ") + "\n"
}

// misdeclared says which declarations do not fit the tools that a server lists.
func misdeclared(handles []mcpbridge.Handle, tools []*mcp.Tool) (warnings []string) {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	for i, h := range handles {
		for _, given := range []struct{ field, tool string }{{"mint", h.Mint}, {"release", h.Release}, {"list", h.List}} {
			if given.tool == "" || slices.Contains(names, given.tool) {
				continue
			}
			warning := fmt.Sprintf("handles[%d].%s: the server lists no tool %q", i, given.field, given.tool)
			if near := nearest.Of(given.tool, names); near != "" {
				warning += fmt.Sprintf(": did you mean %q?", near)
			}
			warnings = append(warnings, warning)
		}
		if n := slices.Index(names, h.Release); n >= 0 && !hasArgument(tools[n], h.ArgumentName()) {
			warnings = append(warnings, fmt.Sprintf("handles[%d].argument: %s has no argument %q", i, h.Release, h.ArgumentName()))
		}
	}
	return warnings
}

// hasArgument reports whether a tool has an argument, as far as its schema says.
func hasArgument(tool *mcp.Tool, name string) bool {
	data, err := json.Marshal(tool.InputSchema)
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	return err != nil || json.Unmarshal(data, &s) != nil || len(s.Properties) == 0 || s.Properties[name] != nil
}
