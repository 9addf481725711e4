package serve

import (
	"os"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/toolset"
)

// file plans to serve the servers of the configuration file.
func (cmd *Serve) file(p *cli.Program, plan *plan) error {
	reloader, err := inputs.NewReloader(inputs.NewLoader(cmd.Inputs, p), cmd.Config)
	if err != nil {
		return err
	}
	file := reloader.File
	if err := cmd.checkFile(file); err != nil {
		return err
	}
	for _, text := range inputs.LeftOut(file, "") {
		p.Errorf("%s", text)
	}
	if file.Store != "" {
		p.Errorf("--config: %s: its store is not used: mcpactor serve has one of its own", cmd.Config)
	}
	plan.supervisor = file.Supervisor
	plan.supervisor.LeaveOpen, plan.supervisor.Store = false, nil // its store is for other programs
	plan.gateway = gateway.Config{Servers: file.Tools, LeftOut: inputs.LeftOut(file, ""), Prefixed: true}
	plan.reloader, cmd.Pins = reloader, reloader.Loader.Pins
	plan.file.Store(file)
	return nil
}

// checkFile returns an error if a file cannot be served.
func (cmd *Serve) checkFile(file *config.File) error {
	if own := startsItself(file.Supervisor.Servers, cmd.Config); own != "" {
		return cli.Usagef("--config: %s: server %q is mcpactor serve with this file, and would start itself without end: write it into another file", cmd.Config, own)
	}
	if len(file.Shared) > 0 && cmd.Listen == "" {
		return cli.Usagef("--config: %s: server %q has share, which needs --listen: over stdio there is one client", cmd.Config, file.Shared[0])
	}
	if cmd.Listen == "" {
		return nil
	}
	for _, srv := range file.Supervisor.Servers {
		for i, kind := range srv.Handles {
			if kind.Idle == 0 {
				return cli.Usagef("--config: %s: server %q: handles[%d].idle: is missing: clients of --listen may have no connection whose end releases what %s mints: "+
					"write how long a handle may be unused, such as \"idle\": \"2h\"", cmd.Config, srv.Name, i, kind.Mint)
			}
		}
	}
	return nil
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

// shared returns servers whose sessions all clients share if the command line names them.
func (cmd *Serve) shared(servers []toolset.Filter) ([]toolset.Filter, error) {
	if len(cmd.Share) > 0 && cmd.Listen == "" {
		return nil, cli.Usagef("--share: needs --listen: over stdio there is one client")
	}
	servers = slices.Clone(servers)
	var err error
	for _, name := range cmd.Share {
		isKnown := name == all
		for i := range servers {
			if name == all && servers[i].Scope == "" || servers[i].Name == name {
				servers[i].Scope, isKnown = config.SharedScope, true
			}
		}
		if !isKnown {
			err = cli.Usagef("--share: there is no server %q", name)
		}
	}
	return servers, err
}

// all is what --share calls all servers.
const all = "all"
