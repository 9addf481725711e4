package commands

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/browser"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/handleguess"
)

// diagnosis is what was found out about a server. The texts of servers are safe for a terminal, except for those of Implementation.
type diagnosis struct {
	Server          string              `json:"server"`
	Works           bool                `json:"works"`
	Elapsed         string              `json:"elapsed,omitempty"` // empty if the server was not tried
	Tools           int                 `json:"tools"`
	Implementation  *mcp.Implementation `json:"serverInfo,omitempty"`
	ProtocolVersion string              `json:"protocolVersion,omitempty"`
	LoggedIn        bool                `json:"loggedIn,omitempty"`
	LoginWay        string              `json:"loginWay,omitempty"`    // by which way, see [browser.Words]
	LoginOffers     *browser.Offered    `json:"loginOffers,omitempty"` // if the server asks for a login
	Pinned          bool                `json:"pinned,omitempty"`      // the lock file has it
	Error           string              `json:"error,omitempty"`
	Next            string              `json:"next,omitempty"` // what a person would do next
	Warnings        []string            `json:"warnings,omitempty"`
	Handles         []handleguess.Guess `json:"proposedHandles,omitempty"` // what a file might declare; nothing uses it
}

var (
	good    = ansi.Style{}.ForegroundColor(ansi.Green)
	bad     = ansi.Style{}.ForegroundColor(ansi.Red)
	doubt   = ansi.Style{}.ForegroundColor(ansi.Yellow)
	heading = ansi.Style{}.Bold()
)

// report has a row for each server. Where signs cannot be shown, a row is a line, and the warnings follow the table.
func report(all []*diagnosis, s cli.Screen) string {
	rows, warnings := [][]string{headings(s, "SERVER", "STATUS", "TOOLS", "TIME", "ABOUT")}, ""
	for _, d := range all {
		sign, style, status, tools := "✓", good, "works", strconv.Itoa(d.Tools)
		switch {
		case d.Elapsed == "":
			sign, style, status, tools = "✗", bad, "left out", ""
		case !d.Works:
			sign, style, status, tools = "✗", bad, "fails", ""
		}
		server, about := d.Server, d.about(s)
		if s.Signs {
			server = s.Paint(style, sign) + " " + server
		}
		for _, warning := range d.Warnings {
			if s.Signs {
				about += "\n" + s.Paint(doubt, "!") + " " + warning
			} else {
				warnings += fmt.Sprintf("%s: %s\n", d.Server, warning)
			}
		}
		rows = append(rows, []string{server, s.Paint(style, status), tools, d.Elapsed, about})
	}
	if s.Signs {
		rows[0][0] = "  " + rows[0][0]
	}
	return s.Table(rows) + s.Wrap(warnings, 4)
}

// headings returns the first row of a table.
func headings(s cli.Screen, names ...string) []string {
	for i, name := range names {
		names[i] = s.Paint(heading, name)
	}
	return names
}

// about returns what the server is, or why it fails and what to do.
func (d *diagnosis) about(s cli.Screen) string {
	switch {
	case d.Works:
		return d.names()
	case d.Next == "":
		return d.Error
	case s.Signs:
		return d.Error + "\n→ " + d.Next
	}
	return d.Error + "; " + d.Next
}

// names returns the name and the version of a server, and which login and protocol are used.
func (d *diagnosis) names() string {
	var all []string
	if i := d.Implementation; i != nil {
		all = append(all, cli.Printable(i.Name+" "+i.Version))
	}
	if d.LoggedIn {
		all = append(all, browser.Words(d.LoginWay))
	}
	if d.Pinned {
		all = append(all, "pinned")
	}
	return strings.Join(append(all, "MCP "+d.ProtocolVersion), ", ")
}
