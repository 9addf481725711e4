// Package serve is the command that is an MCP server for other clients, in front of a server or of those of a configuration.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/login"
	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/internal/loopback"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/toolset"
)

// Serve is the command that is an MCP server in front of others.
type Serve struct {
	Server   []string          `arg:"" optional:"" passthrough:"" placeholder:"URL|COMMAND" help:"The server, after all flags: a URL, or -- and its command. Its tools keep their names."`
	Config   string            `placeholder:"FILE" help:"Serve all servers of a file, as SERVER__TOOL."`
	Inputs   inputs.Flags      `embed:""`
	Header   map[string]string `mapsep:"none" placeholder:"NAME=VALUE" help:"Header for the URL. $${VAR} is an environment variable."`
	Share    []string          `placeholder:"SERVER" help:"Let all clients share one session of this server."`
	Listen   string            `placeholder:"HOST:PORT" help:"Serve streamable HTTP at /mcp instead of stdio, and show the sessions at /debug/mcp/."`
	Token    string            `env:"MCPACTOR_SERVE_TOKEN" placeholder:"TOKEN" help:"Bearer token for --listen."`
	Wait     time.Duration     `help:"How long initialize waits for servers (several: 25s)."`
	Quiet    time.Duration     `help:"End a call when its server is silent for this long."`
	NoCache  bool              `help:"Keep nothing on disk: no lists of tools, no clients."`
	LogLevel string            `default:"warn" enum:"debug,info,warn,error" help:"Log to stderr: debug, info, warn or error."`
}

// Help says how clients use the command.
func (*Serve) Help() string {
	return `In the file of the client, write this in place of the server:

  "command": "mcpactor", "args": ["serve", "--", "npx", "some-server"]`
}

// Run serves until the client has gone, or a signal comes.
func (cmd *Serve) Run(p *cli.Program) error {
	plan, err := cmd.plan(p)
	if err != nil {
		return err
	}
	plan.supervisor.Logger = cli.NewLogger(p.Err, cmd.LogLevel)
	closeStore, err := cmd.keep(p, plan)
	if err != nil {
		return err
	}
	return errors.Join(cmd.serve(p, plan), closeStore())
}

// serve serves until the client has gone, or a signal comes.
func (cmd *Serve) serve(p *cli.Program, plan *plan) error {
	signal.Ignore(syscall.SIGPIPE) // the end of the client must not end the process before the sessions
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	r, err := plan.start()
	if err != nil {
		return cli.Usagef("%w", err)
	}
	if cmd.Listen != "" {
		return errors.Join(cmd.listen(ctx, p, r), r.stop())
	}
	if in, is := p.In.(*os.File); is && term.IsTerminal(int(in.Fd())) {
		p.Errorf("a client has to start this: write it into the file of the client (see mcpactor serve --help). ^C ends it here")
	}
	r.gateway.ServeStdio(ctx, p.In, p.Out)
	return r.stop()
}

// listen serves clients over HTTP until ctx ends.
func (cmd *Serve) listen(ctx context.Context, p *cli.Program, r *running) error {
	e := r.gateway.HTTP(cmd.Token)
	web, err := cli.Serve(cmd.Listen, r.supervisor, r.supervisor, false, func(pages http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.Handle(endpointPath, e)
		mux.Handle("/", e.Guard(pages))
		return mux
	})
	if err != nil {
		return err
	}
	p.Errorf("clients connect to %s; the sessions are shown at %s", strings.TrimSuffix(web.URL, cli.PagePath)+endpointPath, web.URL)
	<-ctx.Done()
	e.Close()
	web.Close()
	return nil
}

// plan returns what is served.
func (cmd *Serve) plan(p *cli.Program) (*plan, error) {
	if len(cmd.Server) > 0 && cmd.Server[0] == "--" { // kong passes it through
		cmd.Server = cmd.Server[1:]
	}
	plan := new(plan)
	switch {
	case len(cmd.Server) > 0 && strings.HasPrefix(cmd.Server[0], "-"): // likewise
		return nil, cli.Usagef("unknown flag %s", cmd.Server[0])
	case cmd.Listen != "" && !isLocal(cmd.Listen):
		return nil, cli.Usagef("--listen: %q is not on this machine: use 127.0.0.1:PORT", cmd.Listen)
	case cmd.Wait < 0:
		return nil, cli.Usagef("--wait: must not be negative")
	case cmd.Config == "" && len(cmd.Server) == 0:
		return nil, cli.Usagef("give a URL, or a command after --, or --config FILE")
	case cmd.Config != "" && len(cmd.Server) > 0:
		return nil, cli.Usagef("give a server or --config, not both")
	case cmd.Config != "" && len(cmd.Header) > 0:
		return nil, cli.Usagef("--header: is for a server at a URL: write headers into the file")
	case cmd.Config != "":
		file, err := inputs.Load(cmd.Config, cmd.Inputs, p)
		if err != nil {
			return nil, err
		}
		if own := startsItself(file.Supervisor.Servers, cmd.Config); own != "" {
			return nil, cli.Usagef("--config: %s: server %q is mcpactor serve with this file, and would start itself without end: write it into another file", cmd.Config, own)
		}
		if file.Store != "" {
			p.Errorf("--config: %s: its store is not used: mcpactor serve has one of its own", cmd.Config)
		}
		plan.supervisor = file.Supervisor
		plan.supervisor.LeaveOpen, plan.supervisor.Store = false, nil // its store is for other programs
		plan.gateway = gateway.Config{Servers: file.Tools, LeftOut: inputs.LeftOut(file, ""), Prefixed: true}
	default:
		srv, err := cmd.server()
		if err != nil {
			return nil, err
		}
		plan.supervisor.Servers = []mcpbridge.Server{srv}
		plan.gateway.Servers = []toolset.Filter{{Name: srv.Name}}
		plan.attach = func(servers []mcpbridge.Server, loggedIn func()) {
			logins := login.Logins{Options: func(string) login.Options {
				return login.Options{Asking: login.Once, Err: p.Err, Timeout: loginPatience, Done: loggedIn, Remedy: loginRemedy}
			}}
			logins.Attach(servers)
		}
	}
	plan.gateway.Wait, plan.gateway.Quiet = cmd.Wait, cmd.Quiet
	plan.gateway.Lingers = cmd.Listen != ""
	for _, name := range cmd.Share {
		i := slices.IndexFunc(plan.gateway.Servers, func(t toolset.Filter) bool { return t.Name == name })
		if i < 0 {
			return nil, cli.Usagef("--share: there is no server %q", name)
		}
		plan.gateway.Servers[i].Scope = shared
	}
	return plan, nil
}

const (
	// loginPatience is how long a person may take to log in in the browser.
	loginPatience = 5 * time.Minute
	loginRemedy   = "log in in the browser that mcpactor has opened, or run: mcpactor login URL"
)

// endpointPath is where clients reach the endpoint.
const endpointPath = "/mcp"

// shared is the scope of sessions that clients share.
const shared = "shared"

// isLocal reports whether an address to listen at is on this machine.
func isLocal(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && loopback.Is(host)
}

// startsItself returns the name of a server that is this program with the file that has the server, or "".
func startsItself(servers []mcpbridge.Server, path string) string {
	file, err := os.Stat(path)
	if err != nil {
		return ""
	}
	for _, srv := range servers {
		if !slices.Contains(srv.Args, "serve") {
			continue
		}
		for _, argument := range srv.Args {
			its, err := os.Stat(strings.TrimPrefix(argument, "--config="))
			if err == nil && os.SameFile(file, its) {
				return srv.Name
			}
		}
	}
	return ""
}

// server returns the server of the command line.
func (cmd *Serve) server() (mcpbridge.Server, error) {
	first := cmd.Server[0]
	if !strings.HasPrefix(first, "http:") && !strings.HasPrefix(first, "https:") {
		if len(cmd.Header) > 0 {
			return mcpbridge.Server{}, cli.Usagef("--header: is for a server at a URL")
		}
		// What the client has set for the server is in our environment.
		return mcpbridge.Server{Name: nameOf(cmd.Server), Command: first, Args: cmd.Server[1:], InheritEnv: true}, nil
	}
	switch {
	case len(cmd.Server) > 1 && strings.HasPrefix(cmd.Server[1], "-"):
		return mcpbridge.Server{}, cli.Usagef("%s: write flags before the URL", cmd.Server[1])
	case len(cmd.Server) > 1:
		return mcpbridge.Server{}, cli.Usagef("give one URL: %q is too much", cmd.Server[1])
	}
	u, err := url.Parse(first)
	if err != nil || u.Host == "" {
		return mcpbridge.Server{}, cli.Usagef("the URL is malformed")
	}
	srv := mcpbridge.Server{Name: visible.Name(u.Hostname()), URL: first, Headers: map[string]string{}}
	for name, value := range cmd.Header {
		if srv.Headers[name], err = expand(value); err != nil {
			return srv, cli.Usagef("--header: %s: %w", name, err)
		}
	}
	return srv, nil
}

// variable matches an environment variable in a header.
var variable = regexp.MustCompile(`\$\{(\w+)\}`)

// expand replaces the environment variables in a text.
func expand(text string) (expanded string, err error) {
	return variable.ReplaceAllStringFunc(text, func(match string) string {
		name := match[2 : len(match)-1]
		value, set := os.LookupEnv(name)
		if !set {
			err = fmt.Errorf("the environment variable %s is not set", name)
		}
		return value
	}), err
}

// runners are programs that run the server which their arguments name.
var runners = []string{"npx", "bunx", "pnpm", "yarn", "uvx", "uv", "pipx", "node", "deno", "python", "python3", "docker", "podman"}

// unnamed are the files and the folders of a package that say nothing about it.
var unnamed = []string{"index", "main", "cli", "server", "dist", "build", "src", "bin", "lib", "."}

// programOf returns the name of the package or the file at a path.
func programOf(file string) string {
	for at := file; at != "/" && at != "."; at = path.Dir(at) {
		if name := path.Base(at); !slices.Contains(unnamed, strings.TrimSuffix(name, path.Ext(name))) {
			return name
		}
	}
	return path.Base(file)
}

// nameOf returns a name for the server of a command: that of the package or the file that is run.
func nameOf(command []string) string {
	name := strings.TrimSuffix(filepath.Base(command[0]), ".exe")
	if slices.Contains(runners, name) {
		for _, argument := range command[1:] {
			if !strings.HasPrefix(argument, "-") && argument != "run" && argument != "dlx" && argument != "exec" {
				name = programOf(filepath.ToSlash(argument))
				break
			}
		}
	}
	if before, _, versioned := strings.Cut(name, "@"); versioned && before != "" {
		name = before
	}
	if name = visible.Name(name); name == "" {
		return "server"
	}
	return name
}
