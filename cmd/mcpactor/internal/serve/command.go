// Package serve is the command that is an MCP server for other clients, in front of a server or of those of a configuration.
package serve

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/browser"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/otlp"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/target"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/toolset"
)

// Serve is the command that is an MCP server in front of others.
type Serve struct {
	Server []string `arg:"" optional:"" passthrough:"" placeholder:"URL|COMMAND" help:"The server, last of all: a URL, or -- and its command."`
	target.Flags
	Share []string `placeholder:"SERVER" help:"Let clients share one session of this server, or all."`
	filterFlags
	listenFlags
	listFlags
	boundFlags
	Wait     time.Duration `help:"How long initialize waits for servers (several: 25s)."`
	Quiet    time.Duration `help:"End a call when its server is silent for this long."`
	NoCache  bool          `help:"Keep nothing on disk: no lists of tools, no clients."`
	LogLevel string        `default:"warn" enum:"debug,info,warn,error" help:"Log to stderr: debug, info, warn or error."`
}

// Help says how clients use the command.
func (*Serve) Help() string {
	return `In the client's file: "command": "mcpactor", "args": ["serve", "--", "npx", …]`
}

// Run serves until the client has gone, or a signal comes.
func (cmd *Serve) Run(p *cli.Program) error {
	hangups, ignore := cmd.hangups()
	defer ignore()
	plan, err := cmd.plan(p)
	if err != nil {
		return err
	}
	plan.supervisor.Logger = cli.NewLogger(p.Err, cmd.LogLevel)
	if cmd.Config == "" && cmd.Pins == nil {
		plan.supervisor.Logger.Info().Msg("what the server says of its tools is not pinned: see mcpactor pin --help")
	}
	closeStore, err := cmd.keep(p, plan)
	if err != nil {
		return err
	}
	export, err := otlp.Start(plan.supervisor.Logger)
	if err != nil {
		p.Errorf("no traces or metrics are sent: %v", err)
	}
	defer export.Stop()
	plan.telemetry = export.Providers()
	return errors.Join(cmd.serve(p, plan, hangups), closeStore())
}

// serve serves until the client has gone, or a signal comes.
func (cmd *Serve) serve(p *cli.Program, plan *plan, hangups <-chan os.Signal) error {
	signal.Ignore(syscall.SIGPIPE) // the end of the client must not end the process before the sessions
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if hangups == nil {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	r, err := plan.start()
	if err != nil {
		return cli.Usagef("%w", err)
	}
	defer cmd.reload(plan, r, hangups)()
	if cmd.Listen != "" {
		return errors.Join(cmd.listen(ctx, p, r), r.stop())
	}
	if in, is := p.In.(*os.File); is && term.IsTerminal(int(in.Fd())) {
		p.Errorf("a client has to start this: write it into the file of the client (see mcpactor serve --help). ^C ends it here")
	}
	cmd.hint(p)
	r.gateway.ServeStdio(ctx, p.In, p.Out)
	return r.stop()
}

// hint says how to pin the servers of a file that are not.
func (cmd *Serve) hint(p *cli.Program) {
	if cmd.Config != "" && cmd.Pins == nil {
		p.Errorf("%s", inputs.PinHint(cmd.Config))
	}
}

// plan returns what is served.
func (cmd *Serve) plan(p *cli.Program) (*plan, error) {
	if len(cmd.Server) > 0 && cmd.Server[0] == "--" { // kong passes it through
		cmd.Server = cmd.Server[1:]
	}
	if err := errors.Join(cmd.listenFlags.check(), cmd.listFlags.check()); err != nil {
		return nil, err
	}
	plan, wrong := new(plan), cmd.Check(cmd.Server)
	switch {
	case len(cmd.Server) > 0 && strings.HasPrefix(cmd.Server[0], "-"): // likewise
		return nil, cli.Usagef("unknown flag %s", cmd.Server[0])
	case cmd.Wait < 0:
		return nil, cli.Usagef("--wait: must not be negative")
	case wrong != nil:
		return nil, wrong
	case cmd.Config != "":
		if err := cmd.file(p, plan); err != nil {
			return nil, err
		}
	default:
		srv, err := cmd.ServerOf(cmd.Server)
		if err != nil {
			return nil, err
		}
		plan.supervisor.Servers = []mcpbridge.Server{srv}
		plan.gateway.Servers = []toolset.Filter{{Name: srv.Name}}
		plan.attach = func(servers []mcpbridge.Server, loggedIn func()) {
			logins := browser.Logins{Options: func(string) browser.Options {
				return browser.Options{Asking: browser.Once, Err: p.Err, Timeout: loginPatience, Done: loggedIn, Remedy: loginRemedy}
			}}
			logins.Attach(servers)
		}
	}
	if cmd.Pins != nil {
		plan.gateway.Pins = cmd.Pins
	}
	cmd.listFlags.apply(&plan.gateway)
	if err := cmd.boundFlags.apply(&plan.supervisor); err != nil {
		return nil, err
	}
	plan.gateway.Wait, plan.gateway.Quiet = cmd.Wait, cmd.Quiet
	plan.gateway.Lingers = cmd.Listen != ""
	var err error
	if plan.gateway.Servers, err = cmd.shared(plan.gateway.Servers); err != nil {
		return nil, err
	}
	if err := cmd.filterFlags.check(plan.gateway.Servers); err != nil {
		return nil, err
	}
	plan.gateway.Filters = func(client, server string) []toolset.Filter { return cmd.filters(plan.file.Load(), client, server) }
	return plan, nil
}

const (
	// loginPatience is how long a person may take to log in in the browser.
	loginPatience = 5 * time.Minute
	loginRemedy   = "log in in the browser that mcpactor has opened, or run: mcpactor login URL"
)
