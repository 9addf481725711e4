package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

const (
	// closeLimit is how long closing the sessions may take after a list.
	closeLimit = 20 * time.Second
	// maxAbout is how much of a title or description stands in the table.
	maxAbout = 80
)

// toolsCmd lists tools.
type toolsCmd struct {
	Config   string        `required:"" placeholder:"FILE" help:"Configuration file, as for exec. Its store is not used: the sessions are new ones, and are closed."`
	Scope    string        `default:"default" help:"Scope whose sessions are used. Default: default."`
	JSON     bool          `name:"json" help:"Print what exec answers to the op tools, instead of a table."`
	Timeout  time.Duration `default:"30s" help:"How long servers are waited for. Default: 30s."`
	LogLevel string        `default:"warn" enum:"debug,info,warn,error" help:"Least level that is logged to stderr: debug, info, warn or error. Default: warn."`
}

// Run prints the tools of all servers, and fails if some could not be listed.
func (cmd *toolsCmd) Run(std streams) error {
	if cmd.Timeout <= 0 {
		return &usageError{fmt.Errorf("--timeout: %v is not above 0", cmd.Timeout)}
	}
	if err := (messages.Key{Scope: cmd.Scope}).Validate(); err != nil {
		return &usageError{fmt.Errorf("--%w", err)}
	}
	file, err := config.Load(cmd.Config)
	if err != nil {
		return wrongConfig(err)
	}
	file.Store, file.Supervisor.LeaveOpen = "", false
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends us at once
	l, err := launch(cmd.Config, file, std.err, cmd.LogLevel)
	if err != nil {
		return err
	}
	set, err := cmd.list(ctx, l)
	left := l.stop(closeLimit)
	if err == nil {
		err = cmd.print(set, std)
	}
	if left != nil {
		return left
	}
	return err
}

// list lists the tools once.
func (cmd *toolsCmd) list(ctx context.Context, l *launched) (*toolset.Set, error) {
	tools, err := l.toolset(toolset.Config{Scope: cmd.Scope, Servers: l.Tools, ListTimeout: cmd.Timeout})
	if err != nil {
		return nil, err
	}
	defer tools.Close()
	return tools.Tools(ctx)
}

// print prints the tools, and to stderr the servers that could not be listed.
func (cmd *toolsCmd) print(set *toolset.Set, std streams) error {
	list := newToolList(set)
	write := list.table
	if cmd.JSON {
		write = list.json
	}
	if err := write(std.out); err != nil {
		return err
	}
	for _, missing := range list.Missing {
		fmt.Fprintf(std.err, "demo: %s: %s\n", missing.Server, printable(missing.Error))
	}
	if len(list.Missing) > 0 {
		return errFailed
	}
	return nil
}

func (l *toolList) json(out io.Writer) error { return json.NewEncoder(out).Encode(l) }

// table writes a line for each tool. What servers say is made fit for a terminal.
func (l *toolList) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSERVER\tTOOL\tABOUT")
	for _, tool := range l.Tools {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", tool.Name, tool.Server, printable(tool.Tool), tool.about())
	}
	return w.Flush()
}

// about is the title, or else the first line of the description.
func (e *toolEntry) about() string {
	text := printable(e.Title)
	for line := range strings.Lines(e.Description) {
		if text != "" {
			break
		}
		text = printable(line)
	}
	if runes := []rune(text); len(runes) > maxAbout {
		text = string(runes[:maxAbout-1]) + "…"
	}
	return text
}

// printable replaces what a terminal would not show but act upon: control
// characters, and those that turn the direction of text.
func printable(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)), " ")
}
