package commands

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/internal/finder"
	"github.com/mcpactor/mcpactor/internal/toolsize"
	"github.com/mcpactor/mcpactor/toolset"
)

const (
	// largest is how many tools of several servers are shown.
	largest = 10
	// findAt is the number of tools for which the saving by serve --find is shown: it lists no more of them.
	findAt = 20
)

// sizes is what the tools take of a model's context, see package toolsize. Servers and Tools are sorted by their size, the largest first.
type sizes struct {
	Total   amount         `json:"total"`
	Servers []serverSize   `json:"servers"`
	Tools   []toolSize     `json:"tools"`
	Saved   savings        `json:"saved"`
	Missing []missingEntry `json:"missing"`
	LeftOut []missingEntry `json:"leftOut,omitempty"`
}

// amount is the size of several tools together.
type amount struct {
	Tools  int `json:"tools"`
	Bytes  int `json:"bytes"`
	Tokens int `json:"tokens"`
}

func (a *amount) add(tools, bytes int) {
	a.Tools, a.Bytes = a.Tools+tools, a.Bytes+bytes
	a.Tokens = toolsize.Tokens(a.Bytes)
}

type serverSize struct {
	Server string `json:"server"`
	amount
}

type toolSize struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	Tool   string `json:"tool"`
	Bytes  int    `json:"bytes"`
	Tokens int    `json:"tokens"`
}

// savings are the tools that are not listed, and what this saves.
type savings struct {
	Find     amount `json:"find"`     // before a tool is found
	ReadOnly amount `json:"readOnly"` // by serve --read-only
	Filters  amount `json:"filters"`  // by the filters in the file, which are in force: the tools are not in the total
}

// unfiltered returns the servers without the filters of their tools.
func unfiltered(filters []toolset.Filter) []toolset.Filter {
	all := slices.Clone(filters)
	for i, f := range all {
		all[i] = toolset.Filter{Name: f.Name, Scope: f.Scope, Disabled: f.Disabled}
	}
	return all
}

// split returns the part of a set that passes the filters of its servers, and the tools that do not.
func split(set *toolset.Set, filters []toolset.Filter) (passing, hidden *toolset.Set) {
	passes := func(server, tool string, readsOnly bool) bool {
		return !slices.ContainsFunc(filters, func(f toolset.Filter) bool { return f.Name == server && !f.Wants(tool, readsOnly) })
	}
	passing, hidden = &toolset.Set{Missing: set.Missing}, &toolset.Set{}
	for _, tool := range set.Tools {
		if passes(tool.Server, tool.Original, readsOnly(tool.Annotations)) {
			passing.Tools = append(passing.Tools, tool)
		} else {
			hidden.Tools = append(hidden.Tools, tool)
		}
	}
	for _, left := range set.LeftOut {
		if left.Target == "" || passes(left.Key.Server, left.Target, true) {
			passing.LeftOut = append(passing.LeftOut, left)
		}
	}
	return passing, hidden
}

func readsOnly(a *mcp.ToolAnnotations) bool { return a != nil && a.ReadOnlyHint }

// sizesOf returns the sizes of the tools in a list, but for Tools. hidden are those that the filters in the file hide.
func sizesOf(list *ToolList, hidden *toolset.Set) *sizes {
	s := &sizes{Servers: []serverSize{}, Missing: list.Missing, LeftOut: list.LeftOut}
	for i := range list.Tools {
		tool, bytes := &list.Tools[i], list.Tools[i].size()
		s.Total.add(1, bytes)
		at := slices.IndexFunc(s.Servers, func(of serverSize) bool { return of.Server == tool.Server })
		if at < 0 {
			at, s.Servers = len(s.Servers), append(s.Servers, serverSize{Server: tool.Server})
		}
		s.Servers[at].add(1, bytes)
		if !readsOnly(tool.Annotations) {
			s.Saved.ReadOnly.add(1, bytes)
		}
	}
	slices.SortFunc(s.Servers, func(a, b serverSize) int { return cmp.Or(b.Bytes-a.Bytes, cmp.Compare(a.Server, b.Server)) })
	if s.Total.Tools > findAt {
		s.Saved.Find.add(s.Total.Tools, s.Total.Bytes-toolsize.Of(finder.Name, finder.Description, json.RawMessage(finder.Schema)))
	}
	for _, tool := range hidden.Tools {
		s.Saved.Filters.add(1, toolsize.Of(tool.Original, tool.Description, tool.InputSchema))
	}
	return s
}

// choose sets the tools whose own sizes are shown.
func (s *sizes) choose(tools []toolEntry) {
	s.Tools = []toolSize{}
	for _, tool := range tools {
		bytes := tool.size()
		s.Tools = append(s.Tools, toolSize{tool.Name, tool.Server, tool.Tool, bytes, toolsize.Tokens(bytes)})
	}
	slices.SortFunc(s.Tools, func(a, b toolSize) int { return cmp.Or(b.Bytes-a.Bytes, cmp.Compare(a.Name, b.Name)) })
}

// size returns the size of a tool. The name that counts is the one that its server gives it.
func (e *toolEntry) size() int { return toolsize.Of(e.Tool, e.Description, e.InputSchema) }

func (s *sizes) json(out io.Writer) error { return json.NewEncoder(out).Encode(s) }

// tables writes the sizes of the servers, of the tools or the largest of them, and of what is saved.
func (s *sizes) tables(out io.Writer, screen cli.Screen) error {
	row := func(bytes, of int, rest ...string) []string {
		share := fmt.Sprintf("%.1f%%", 100*float64(bytes)/float64(max(1, of)))
		return append([]string{fmt.Sprint(toolsize.Tokens(bytes)), fmt.Sprint(bytes), share}, rest...)
	}
	servers := [][]string{{"TOKENS", "BYTES", "SHARE", "TOOLS", "SERVER"}}
	for _, of := range s.Servers {
		servers = append(servers, row(of.Bytes, s.Total.Bytes, fmt.Sprint(of.Tools), cli.Printable(of.Server)))
	}
	if len(s.Servers) > 1 {
		servers = append(servers, row(s.Total.Bytes, s.Total.Bytes, fmt.Sprint(s.Total.Tools), fmt.Sprintf("all %d servers", len(s.Servers))))
	}
	each := [][]string{{"TOKENS", "BYTES", "SHARE", "TOOL"}}
	for i, of := range s.Tools {
		if i == largest && len(s.Servers) > 1 {
			break
		}
		each = append(each, row(of.Bytes, s.Total.Bytes, cli.Printable(of.Name)))
	}
	saved := [][]string{{"TOKENS", "BYTES", "SHARE", "TOOLS", "SAVED BY"}}
	save := func(a amount, of int, by string) {
		if a.Tools > 0 {
			saved = append(saved, row(a.Bytes, of, fmt.Sprint(a.Tools), by))
		}
	}
	save(s.Saved.Find, s.Total.Bytes, fmt.Sprintf("mcpactor serve --find %d, until the first tool is found", findAt))
	save(s.Saved.ReadOnly, s.Total.Bytes, "mcpactor serve --read-only")
	save(s.Saved.Filters, s.Total.Bytes+s.Saved.Filters.Bytes, "the filters in the file, already")
	var text strings.Builder
	for _, rows := range [][][]string{servers, each, saved} {
		if len(rows) > 1 {
			alignRight(rows)
			rows[0] = headings(screen, rows[0]...)
			text.WriteString(screen.Table(rows) + "\n")
		}
	}
	text.WriteString(screen.Wrap("Counted is what a model gets of a tool: its name, description and input schema, as JSON. Tokens are bytes / 4.\n", 0))
	_, err := io.WriteString(out, text.String())
	return err
}

// alignRight puts spaces in front of the cells of all columns but the last.
func alignRight(rows [][]string) {
	for i := range len(rows[0]) - 1 {
		width := 0
		for _, row := range rows {
			width = max(width, ansi.StringWidth(row[i]))
		}
		for _, row := range rows {
			row[i] = strings.Repeat(" ", width-ansi.StringWidth(row[i])) + row[i]
		}
	}
}
