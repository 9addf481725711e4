package commands

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/internal/nearest"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// maxAbout bounds a title or description in the table, in characters.
const maxAbout = 80

// ToolList is the result of the op tools.
type ToolList struct {
	Tools   []toolEntry    `json:"tools"`
	Missing []missingEntry `json:"missing"`
	LeftOut []missingEntry `json:"leftOut,omitempty"`
}

type toolEntry struct {
	Name         string               `json:"name"`
	Server       string               `json:"server"`
	Tool         string               `json:"tool"`
	Title        string               `json:"title,omitempty"`
	Description  string               `json:"description"`
	InputSchema  any                  `json:"inputSchema"`
	OutputSchema any                  `json:"outputSchema,omitempty"`
	Annotations  *mcp.ToolAnnotations `json:"annotations,omitempty"`
	Metadata     map[string]any       `json:"metadata"`
}

// missingEntry is a server whose tools could not be listed, or what is left out of its list: see [toolset.Set.LeftOut].
type missingEntry struct {
	Server string `json:"server"`
	Tool   string `json:"tool,omitempty"`
	Error  string `json:"error"`
}

// NewToolList returns the result for a list of tools. It leaves out a title that equals the
// name of the tool.
func NewToolList(set *toolset.Set) *ToolList {
	list := &ToolList{Tools: []toolEntry{}, Missing: entriesOf(set.Missing), LeftOut: entriesOf(set.LeftOut)}
	for _, tool := range set.Tools {
		e := toolEntry{
			Name: tool.Name, Server: tool.Server, Tool: tool.Original, Title: tool.Title, Description: tool.Description,
			InputSchema: tool.InputSchema, OutputSchema: tool.OutputSchema, Annotations: tool.Annotations, Metadata: tool.Metadata,
		}
		if e.Title == e.Tool {
			e.Title = ""
		}
		list.Tools = append(list.Tools, e)
	}
	return list
}

func entriesOf(failures []*messages.Failure) []missingEntry {
	all := []missingEntry{}
	for _, f := range failures {
		all = append(all, missingEntry{f.Key.Server, f.Target, f.Error()})
	}
	return all
}

// leftOut says what is left out of a list of tools, and why.
func leftOut(left *messages.Failure) string {
	if left.Target == "" {
		return cli.Printable(left.Detail)
	}
	return cli.Printable(left.Target + ": " + left.Detail)
}

// choose leaves the tools with a name, or those of a server with that name. described is true if they are tools.
func (l *ToolList) choose(name string) (described bool, err error) {
	if name == "" {
		return false, nil
	}
	chosen, known := []toolEntry{}, []string{}
	for _, tool := range l.Tools {
		its := tool.Name == name || tool.Tool == name
		if its || tool.Server == name {
			chosen, described = append(chosen, tool), its
		}
		known = append(known, tool.Name, tool.Tool, tool.Server)
	}
	l.Tools = chosen
	if meant := nearest.Of(name, known); len(chosen) == 0 && meant != "" {
		return false, cli.Usagef("there is no tool and no server %q: did you mean %q?", name, meant)
	} else if len(chosen) == 0 {
		return false, cli.Usagef("there is no tool and no server %q", name)
	}
	return described, nil
}

func (l *ToolList) json(out io.Writer) error { return json.NewEncoder(out).Encode(l) }

// unprefixed gives the tools of the only server the names that the server gives them.
func (l *ToolList) unprefixed() {
	for i := range l.Tools {
		l.Tools[i].Name = l.Tools[i].Tool
	}
}

// table writes a row for each tool. It makes the texts of servers safe for a terminal.
func (l *ToolList) table(out io.Writer, s cli.Screen) error {
	if len(l.Tools) == 0 {
		return nil
	}
	rows := [][]string{headings(s, "NAME", "ABOUT")}
	for _, tool := range l.Tools {
		rows = append(rows, []string{cli.Printable(tool.Name), tool.about()})
	}
	_, err := io.WriteString(out, s.Table(rows))
	return err
}

// about returns the title, or the first line of the description if there is no title.
func (e *toolEntry) about() string {
	text := cli.Printable(e.Title)
	for line := range strings.Lines(e.Description) {
		if text != "" {
			break
		}
		text = cli.Printable(line)
	}
	if runes := []rune(text); len(runes) > maxAbout {
		text = string(runes[:maxAbout-1])
		if word := strings.LastIndexByte(text, ' '); word > len(text)/2 {
			text = text[:word]
		}
		text += "…"
	}
	return text
}
