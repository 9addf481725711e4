package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/target"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// closeLimit is how long closing the sessions may take after a list.
const closeLimit = 20 * time.Second

// Tools is the command that lists the tools of all servers, or describes some.
type Tools struct {
	Words []string `arg:"" optional:"" command:"" name:"name" help:"A tool, to describe it; or a server of the file, to list its tools."`
	target.Flags
	Scope    string        `default:"default" help:"Value of $${scope} in the file."`
	JSON     bool          `name:"json" help:"Print JSON with the schemas."`
	Size     bool          `help:"Print the size of the tools for a model, and how to save."`
	Timeout  time.Duration `default:"30s" help:"How long to wait for the servers."`
	LogLevel string        `default:"error" enum:"debug,info,warn,error" help:"Log to stderr: debug, info, warn or error."`
}

// Help has the forms of the command.
func (*Tools) Help() string {
	return `Write one of these:

  mcpactor tools URL
  mcpactor tools -- npx some-server
  mcpactor tools --config FILE`
}

// Run prints the tools: all, those of a server, or one in words. It fails if the tools of some server cannot be listed.
func (cmd *Tools) Run(p *cli.Program) error {
	if err := (messages.Key{Scope: cmd.Scope}).Validate(); err != nil {
		return cli.Usagef("--%w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	file, rest, err := load(&cmd.Flags, p, cmd.Words, cmd.Timeout)
	if err == nil && len(rest) > 1 {
		err = cli.Usagef("%q is too much: give the name of one server or one tool", rest[1])
	}
	if err != nil {
		return err
	}
	name := strings.Join(rest, "")
	i, err := start(&cmd.Flags, file, p, cmd.LogLevel, cmd.Timeout)
	if err != nil {
		return err
	}
	narrow(i, name)
	what := i.Tools[0].Name
	if len(i.Tools) > 1 {
		what = fmt.Sprintf("%d servers", len(i.Tools))
	}
	done := waiting(p, func() string { return "listing the tools of " + what })
	servers := i.Tools
	if cmd.Size {
		servers = unfiltered(servers)
	}
	set, err := i.List(ctx, toolset.Config{Scope: cmd.Scope, Servers: servers, ListTimeout: cmd.Timeout})
	done()
	stopErr := i.Stop(closeLimit)
	if err == nil {
		err = cmd.print(i, set, name, p)
	}
	if stopErr != nil {
		return stopErr
	}
	return err
}

// narrow leaves the server that the name is of, or those of which it may be that of a tool, so that no other is started.
func narrow(i *inputs.Instance, name string) {
	for _, isMeant := range []func(toolset.Filter) bool{
		func(srv toolset.Filter) bool { return srv.Name == name },
		func(srv toolset.Filter) bool { return mayName(name, srv.Name) },
	} {
		if slices.ContainsFunc(i.Tools, isMeant) {
			i.Tools = slices.DeleteFunc(i.Tools, func(srv toolset.Filter) bool { return !isMeant(srv) })
			return
		}
	}
}

// print prints the tools to stdout, and the servers that could not be listed to stderr.
func (cmd *Tools) print(i *inputs.Instance, set *toolset.Set, name string, p *cli.Program) error {
	var hidden *toolset.Set
	if cmd.Size { // all were listed
		set, hidden = split(set, i.Tools)
	}
	list := NewToolList(set)
	if cmd.Config == "" {
		list.unprefixed()
	}
	var size *sizes
	if cmd.Size { // of all tools, and not only of those that are chosen
		size = sizesOf(list, hidden)
	}
	described, err := list.choose(name)
	if cmd.Size {
		size.choose(list.Tools)
	}
	lacks := inputs.LeftOut(i.File, "")
	isLeftOut := slices.ContainsFunc(set.LeftOut, func(left *messages.Failure) bool {
		return left.Target != "" && (name == left.Target || name == toolset.SafeName(left.Key.Server, left.Target))
	})
	if err != nil && len(set.Missing)+len(lacks) == 0 && !isLeftOut {
		return err
	}
	screen := cli.ScreenOf(p.Out)
	write := func(out io.Writer) error { return list.table(out, screen) }
	switch {
	case cmd.Size && cmd.JSON:
		write = size.json
	case cmd.Size:
		write = func(out io.Writer) error { return size.tables(out, screen) }
	case cmd.JSON:
		write = list.json
	case described:
		write = func(out io.Writer) error { return words(out, screen, list.Tools) }
	}
	if writing := write(p.Out); writing != nil {
		return writing
	}
	if _, noServer := serverIn(i.File, name); err != nil && noServer != nil && len(inputs.LeftOut(i.File, name)) == 0 {
		p.Errorf("%q is no tool and no server of those that could be listed. Not listed:", name)
	}
	for _, missing := range set.Missing {
		srv, _ := serverIn(i.File, missing.Key.Server)
		p.Errorf("%s: %s", srv.Name, causeOf(srv, missing, cmd.Timeout))
	}
	for _, left := range set.LeftOut {
		p.Errorf("%s: %s", left.Key.Server, leftOut(left))
	}
	for _, text := range lacks {
		p.Errorf("%s", text)
	}
	if len(set.Missing) > 0 || err != nil {
		return cli.ErrFailed
	}
	return nil
}
