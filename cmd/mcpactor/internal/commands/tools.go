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
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// closeLimit is how long closing the sessions may take after a list.
const closeLimit = 20 * time.Second

// Tools is the command that lists the tools of all servers, or describes some.
type Tools struct {
	Name     string        `arg:"" optional:"" help:"A server, to list its tools, or a tool, to describe it."`
	Config   string        `required:"" placeholder:"FILE" help:"File with the servers, such as .mcp.json."`
	Inputs   inputs.Flags  `embed:""`
	Scope    string        `default:"default" help:"Value of $${scope} in the file."`
	JSON     bool          `name:"json" help:"Print JSON with the schemas."`
	Timeout  time.Duration `default:"30s" help:"How long to wait for the servers."`
	LogLevel string        `default:"error" enum:"debug,info,warn,error" help:"Log to stderr: debug, info, warn or error."`
}

// Run prints the tools: all, those of a server, or one in words. It fails if the tools of some server cannot be listed.
func (cmd *Tools) Run(p *cli.Program) error {
	if err := (messages.Key{Scope: cmd.Scope}).Validate(); err != nil {
		return cli.Usagef("--%w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	i, err := open(cmd.Config, cmd.Inputs, p, cmd.LogLevel, cmd.Timeout)
	if err != nil {
		return err
	}
	cmd.narrow(i)
	done := waiting(p, func() string { return fmt.Sprintf("listing the tools of %d servers", len(i.Tools)) })
	set, err := i.List(ctx, toolset.Config{Scope: cmd.Scope, Servers: i.Tools, ListTimeout: cmd.Timeout})
	done()
	stopErr := i.Stop(closeLimit)
	if err == nil {
		err = cmd.print(i, set, p)
	}
	if stopErr != nil {
		return stopErr
	}
	return err
}

// narrow leaves the server that the name is of, or that the name of a tool begins with, so that no other is started.
func (cmd *Tools) narrow(i *inputs.Instance) {
	for _, srv := range i.Tools {
		if cmd.Name == srv.Name || strings.HasPrefix(cmd.Name, toolset.SafeName(srv.Name, "")) {
			i.Tools = []toolset.Filter{srv}
			return
		}
	}
}

// print prints the tools to stdout, and the servers that could not be listed to stderr.
func (cmd *Tools) print(i *inputs.Instance, set *toolset.Set, p *cli.Program) error {
	list := NewToolList(set)
	described, err := list.choose(cmd.Name)
	lacks := inputs.LeftOut(i.File, "")
	isLeftOut := slices.ContainsFunc(set.LeftOut, func(left *messages.Failure) bool {
		return left.Target != "" && (cmd.Name == left.Target || cmd.Name == toolset.SafeName(left.Key.Server, left.Target))
	})
	if err != nil && len(set.Missing)+len(lacks) == 0 && !isLeftOut {
		return err
	}
	write := list.table
	if described {
		write = func(out io.Writer) error { return words(out, list.Tools) }
	}
	if cmd.JSON {
		write = list.json
	}
	if writing := write(p.Out); writing != nil {
		return writing
	}
	if _, noServer := serverIn(i.File, cmd.Name); err != nil && noServer != nil && len(inputs.LeftOut(i.File, cmd.Name)) == 0 {
		p.Errorf("%q is no tool and no server of those that could be listed. Not listed:", cmd.Name)
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
