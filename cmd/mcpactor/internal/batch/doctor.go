package batch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/login"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Doctor is the command that tries each server.
type Doctor struct {
	Config   string        `required:"" placeholder:"FILE" help:"File with the servers, such as .mcp.json."`
	Inputs   Inputs        `embed:""`
	Timeout  time.Duration `default:"30s" help:"How long to wait for a server."`
	LogLevel string        `default:"error" enum:"debug,info,warn,error" help:"Log to stderr: debug, info, warn or error."`
}

// diagnosis is what was found out about a server.
type diagnosis struct {
	info  *mcp.InitializeResult
	tools int
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
			found[n] = cmd.examine(ctx, i, srv.Name)
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
	stopErr := i.stop(closeLimit)
	failed := false
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	for n, srv := range i.Supervisor.Servers {
		d := found[n]
		took := d.took.Round(10 * time.Millisecond)
		if d.err != nil {
			failed = true
			fmt.Fprintf(w, "%s\tfails\t\t\t\t%v\t%s\n", srv.Name, took, cmd.advise(srv, d))
			continue
		}
		fmt.Fprintf(w, "%s\tworks\t%s\t%s\t%s\t%v\t%s\n", srv.Name, d.info.ProtocolVersion, loginOf(srv), number(d.tools), took, printable(describe(d.info)))
	}
	err = errors.Join(w.Flush(), stopErr)
	for _, srv := range i.Supervisor.Servers {
		for _, warning := range srv.Warnings() {
			fmt.Fprintf(p.Out, "%s: %s\n", srv.Name, warning)
		}
	}
	for _, text := range LeftOut(i.File, "") { // these servers are not among those above
		failed = true
		fmt.Fprintln(p.Out, text)
	}
	switch {
	case err != nil:
		return err
	case failed:
		return cli.ErrFailed
	}
	return nil
}

// examine opens a session of a server, and lists its tools if it has some.
func (cmd *Doctor) examine(ctx context.Context, i *instance, server string) (d diagnosis) {
	ctx, cancel := context.WithTimeout(ctx, cmd.Timeout)
	defer cancel()
	began := time.Now()
	defer func() { d.took = time.Since(began) }()
	opened, err := i.sup.Client().Open(ctx, server, "")
	if err != nil {
		return diagnosis{err: err}
	}
	d.info = opened.Server
	if d.info.Capabilities == nil || d.info.Capabilities.Tools == nil {
		return d
	}
	listed, err := i.sup.Client().ListTools(ctx, server, "")
	if err != nil {
		return diagnosis{err: err}
	}
	d.tools = len(listed.Result.Tools)
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
