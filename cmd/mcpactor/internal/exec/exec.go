package exec

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/messages"
)

// Exec is the batch runner.
type Exec struct {
	Config      string        `required:"" placeholder:"FILE" help:"File with the servers, such as .mcp.json. SIGHUP reloads it."`
	Inputs      inputs.Flags  `embed:""`
	Parallel    int           `default:"1" placeholder:"N" help:"Requests of the same server and scope that run at once. With 1, the default, they run in order."`
	Events      bool          `help:"Also print events: what happens to sessions, and the notifications of servers."`
	Listen      string        `placeholder:"ADDR" help:"Show the sessions at /debug/mcp/, and serve the probes /livez and /readyz, at an address such as 127.0.0.1:8080, without authentication."`
	LogLevel    string        `default:"warn" enum:"debug,info,warn,error" help:"Log to stderr: debug, info, warn or error."`
	StopTimeout time.Duration `default:"20s" help:"How long closing the sessions may take at the end."`
}

// Run runs the requests until the end of input or a signal.
func (cmd *Exec) Run(p *cli.Program) error {
	if cmd.Parallel < 1 {
		return cli.Usagef("--parallel: %d is less than 1", cmd.Parallel)
	}
	hangups, ignore := inputs.Hangups()
	defer ignore() // only at the end: the default action of SIGHUP ends the process
	loader := inputs.NewLoader(cmd.Inputs, p)
	reloader, err := inputs.NewReloader(loader, cmd.Config)
	if err != nil {
		return err
	}
	i, err := inputs.Start(cmd.Config, reloader.File, loader.Pins, p.Err, cmd.LogLevel)
	if err != nil {
		return err
	}
	if cmd.Listen != "" {
		web, err := cli.Serve(cmd.Listen, cli.Site{Shown: i.Running, Supervisor: i.Running, Log: i.Supervisor.Logger})
		if err != nil {
			return errors.Join(err, i.Stop(cmd.StopTimeout))
		}
		defer web.Close()
		p.Errorf("the sessions are shown at %s", web.URL)
		if web.Public {
			p.Errorf("other machines may reach this page, which has no authentication")
		}
	}
	// If the reader of stdout goes away, SIGPIPE must not end the process before the
	// sessions are closed.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once

	r := newRunner(i.Running.Client(), p.Out, cmd.Parallel)
	r.toolsets, r.pins = newToolsets(i.Toolset, i.Tools), i.Pins
	if cmd.Events {
		unsubscribe := i.Running.Subscribe(r.events.publish)
		defer unsubscribe()
	}
	reloader.Log = &i.Supervisor.Logger
	endReload := reloader.Run(hangups, nil, false, func(ctx context.Context, file *config.File) (*messages.Closed, error) {
		closed, err := i.Running.Reload(ctx, file.Supervisor.Servers)
		if err == nil {
			r.toolsets.replace(file.Tools)
		}
		return closed, err
	})
	var stopErr error
	r.close = func() {
		endReload()
		r.toolsets.closeAll()
		stopErr = i.Stop(cmd.StopTimeout)
	}
	failed := r.run(ctx, p.In)
	switch {
	case stopErr != nil:
		return stopErr
	case failed:
		return cli.ErrFailed
	}
	return nil
}
