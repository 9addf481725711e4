package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/term"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/login"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/toolset"
)

// Doctor is the command that tries each server.
type Doctor struct {
	Config   string        `required:"" placeholder:"FILE" help:"File with the servers, such as .mcp.json."`
	Inputs   inputs.Flags  `embed:""`
	Timeout  time.Duration `default:"30s" help:"How long to wait for a server."`
	LogLevel string        `default:"error" enum:"debug,info,warn,error" help:"Log to stderr: debug, info, warn or error."`
}

// diagnosis is what was found out about a server.
type diagnosis struct {
	info  *mcp.InitializeResult
	tools int
	odd   []string
	took  time.Duration
	err   error
}

// Run prints a line for each server, and a line for each warning about its configuration. It fails if a server does not work.
func (cmd *Doctor) Run(p *cli.Program) error {
	i, err := open(cmd.Config, cmd.Inputs, p, cmd.LogLevel, cmd.Timeout)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	found := make([]diagnosis, len(i.Supervisor.Servers))
	var all sync.WaitGroup
	var left sync.Map // the servers that are still tried
	for n, srv := range i.Supervisor.Servers {
		left.Store(srv.Name, nil)
		all.Go(func() {
			found[n] = cmd.examine(ctx, i, i.Tools[n])
			left.Delete(srv.Name)
		})
	}
	done := waiting(p, func() string {
		names := []string{}
		for name := range left.Range {
			names = append(names, name.(string))
		}
		slices.Sort(names)
		return fmt.Sprintf("waiting for %.60s", strings.Join(names, ", "))
	})
	all.Wait()
	done()
	stopErr := i.Stop(closeLimit)
	failed := false
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for n, srv := range i.Supervisor.Servers {
		d := found[n]
		took := d.took.Round(10 * time.Millisecond)
		if d.err != nil {
			failed = true
			fmt.Fprintf(w, "%s\tfails\t\t\t\t%v\t%s\n", srv.Name, took, cmd.advise(srv, d))
			continue
		}
		fmt.Fprintf(w, "%s\tworks\t%s\t%s\t%s\t%v\t%s\n", srv.Name, d.info.ProtocolVersion, loginOf(srv), number(d.tools), took, cli.Printable(describe(d.info)))
	}
	err = errors.Join(w.Flush(), stopErr)
	for n, srv := range i.Supervisor.Servers {
		for _, warning := range slices.Concat(srv.Warnings(), found[n].odd) {
			fmt.Fprintf(&out, "%s: %s\n", srv.Name, cli.Printable(warning))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.Renamed)) {
		fmt.Fprintf(&out, "%s: its name in the file is %q: a name has only the letters A to Z, digits, dots, dashes and underscores\n", i.Renamed[name], name)
	}
	for _, text := range inputs.LeftOut(i.File, "") { // these servers are not among those above
		failed = true
		fmt.Fprintln(&out, text)
	}
	_, writeErr := io.WriteString(p.Out, wrapped(out.String(), widthOf(p.Out)))
	err = errors.Join(err, writeErr)
	switch {
	case err != nil:
		return err
	case failed:
		return cli.ErrFailed
	}
	return nil
}

// widthOf returns the width of a terminal, or 0 for anything else.
func widthOf(out io.Writer) int {
	file, is := out.(*os.File)
	if !is {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// wrapped breaks the lines of a table between words, and indents what follows like its last column. A width of 0 is no limit.
func wrapped(table string, width int) string {
	var all strings.Builder
	for line := range strings.Lines(table) {
		indent := strings.LastIndex(line, "  ") + len("  ") // no cell has two spaces
		if indent < 2 || indent > width/2 {
			indent = 4
		}
		at := 0
		for word := range strings.SplitAfterSeq(line, " ") {
			if width > 0 && at > indent && at+ansi.StringWidth(strings.TrimSpace(word)) > width {
				all.WriteString("\n" + strings.Repeat(" ", indent))
				at = indent
			}
			all.WriteString(word)
			at += ansi.StringWidth(word)
		}
	}
	return all.String()
}

// examine opens a session of a server, and lists its tools if it has some.
func (cmd *Doctor) examine(ctx context.Context, i *inputs.Instance, server toolset.Filter) (d diagnosis) {
	ctx, cancel := context.WithTimeout(ctx, cmd.Timeout)
	defer cancel()
	began := time.Now()
	defer func() { d.took = time.Since(began) }()
	opened, err := i.Running.Client().Open(ctx, server.Name, "")
	if err != nil {
		return diagnosis{err: err}
	}
	d.info = opened.Server
	if d.info.Capabilities == nil || d.info.Capabilities.Tools == nil {
		return d
	}
	listed, err := i.Running.Client().ListTools(ctx, server.Name, "")
	if err != nil {
		return diagnosis{err: err}
	}
	d.tools = len(listed.Result.Tools)
	set, err := i.List(ctx, toolset.Config{Servers: []toolset.Filter{server}, ListTimeout: cmd.Timeout})
	if err != nil {
		return diagnosis{err: err}
	}
	for _, left := range set.LeftOut {
		d.odd = append(d.odd, leftOut(left))
	}
	return d
}

// loginOf says whether a login at a server is kept.
func loginOf(srv mcpbridge.Server) string {
	if srv.Auth != nil && login.Kept(srv.URL) {
		return "logged in"
	}
	return ""
}

// advise returns why a server fails, and what to change: also where a call might succeed later.
func (cmd *Doctor) advise(srv mcpbridge.Server, d diagnosis) string {
	text := causeOf(srv, d.err, cmd.Timeout)
	if d.took >= cmd.Timeout-cmd.Timeout/10 { // see connectWithin
		text += ", or give it more --timeout"
	}
	return text
}

// describe returns the name and the version of a server.
func describe(info *mcp.InitializeResult) string {
	if info.ServerInfo == nil {
		return ""
	}
	return info.ServerInfo.Name + " " + info.ServerInfo.Version
}

// number says how many tools there are.
func number(tools int) string {
	if tools == 1 {
		return "1 tool"
	}
	return fmt.Sprintf("%d tools", tools)
}
