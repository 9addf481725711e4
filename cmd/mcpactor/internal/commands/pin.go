package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/target"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/pin"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Pin is the command that writes down what servers say about their tools, and shows what differs from that.
type Pin struct {
	Words []string `arg:"" optional:"" command:"" name:"server" help:"Servers of the file (default: all), or a URL."`
	target.Flags
	Accept   bool          `help:"Accept what differs, and write it into the lock file."`
	NoNew    bool          `help:"Refuse what is new as well, until it is accepted."`
	Scope    string        `default:"default" help:"Value of $${scope} in the file."`
	JSON     bool          `name:"json" help:"Print JSON."`
	Timeout  time.Duration `default:"30s" help:"How long to wait for a server."`
	LogLevel string        `default:"error" enum:"debug,info,warn,error" help:"Log to stderr: debug, info, warn or error."`
}

// Help has the forms of the command.
func (*Pin) Help() string {
	return `Write one of these. The lock file of mcp.json is mcp.lock.json beside it:

  mcpactor pin --config FILE
  mcpactor pin --pin LOCKFILE URL
  mcpactor pin --pin LOCKFILE -- npx some-server`
}

// pinned is what was found out about a server.
type pinned struct {
	Server  string    `json:"server"`
	Changes []*change `json:"changes,omitempty"`
	Version string    `json:"version,omitempty"` // that of now, if it differs
	Error   string    `json:"error,omitempty"`   // why its definitions could not be listed

	was, now *pin.Server // nil if the lock does not have it, or it was not listed
}

// pinning is the outcome of the command.
type pinning struct {
	File      string    `json:"file"`
	Written   bool      `json:"written"`
	RefuseNew bool      `json:"refuseNew"`
	Servers   []*pinned `json:"servers"`

	isFirst, differs, turned bool // turned is true if what is new is refused now, and was not
}

// Run writes the lock file if there is none. Otherwise it shows what differs, and writes it if that is accepted.
func (cmd *Pin) Run(p *cli.Program) error {
	if err := (messages.Key{Scope: cmd.Scope}).Validate(); err != nil {
		return cli.Usagef("--%w", err)
	}
	file, identities, err := cmd.load(p)
	if err != nil {
		return err
	}
	path := cmp.Or(cmd.Inputs.Pin, inputs.PinsBeside(cmd.Config))
	lock, err := pin.Read(path)
	done := &pinning{File: path, isFirst: errors.Is(err, fs.ErrNotExist)}
	switch {
	case done.isFirst:
		lock = &pin.Lock{}
	case err != nil:
		return cli.Usagef("the lock file is invalid: %w", err)
	}
	if done.Servers, err = cmd.examine(p, file, lock, identities); err != nil {
		return err
	}
	next := &pin.Lock{RefuseNew: lock.RefuseNew || cmd.NoNew, Servers: map[string]*pin.Server{}}
	maps.Copy(next.Servers, lock.Servers)
	done.RefuseNew, done.turned = next.RefuseNew, next.RefuseNew != lock.RefuseNew
	done.differs = done.turned
	lacks := inputs.LeftOut(file, "")
	fails := len(lacks) > 0
	for _, one := range done.Servers {
		done.differs, fails = done.differs || len(one.Changes) > 0, fails || one.Error != ""
		if one.now != nil {
			next.Servers[one.Server] = one.now
		}
	}
	if cmd.Accept || done.isFirst && len(next.Servers) > 0 {
		if err := next.Write(path); err != nil {
			return err
		}
		done.Written = true
	}
	if cmd.JSON {
		err = json.NewEncoder(p.Out).Encode(done)
	} else {
		_, err = io.WriteString(p.Out, done.report(cli.ScreenOf(p.Out)))
	}
	for _, one := range done.Servers {
		if one.Error != "" {
			p.Errorf("%s: %s", one.Server, one.Error)
		}
	}
	for _, text := range lacks {
		p.Errorf("%s", text)
	}
	if err == nil && (fails || done.differs && !done.Written) {
		err = cli.ErrFailed
	}
	return err
}

// load returns the servers that are meant, and how each is reached. Nothing is left out because the lock refuses it.
func (cmd *Pin) load(p *cli.Program) (*config.File, map[string]pin.Identity, error) {
	identities := map[string]pin.Identity{}
	cmd.Flags.Accept = func(server string, is pin.Identity) error {
		identities[server] = is
		return nil
	}
	file, names, err := load(&cmd.Flags, p, cmd.Words, cmd.Timeout)
	switch {
	case err != nil:
		return nil, nil, err
	case cmd.Config == "" && cmd.Inputs.Pin == "":
		return nil, nil, cli.Usagef("give --pin FILE, the lock file: only a configuration file has one beside it")
	case cmd.Config == "" && len(names) > 0:
		return nil, nil, cli.Usagef("%q is too much: give one URL, or one command after --", names[0])
	case len(names) == 0:
		return file, identities, nil
	}
	for i, name := range names {
		srv, err := serverIn(file, name)
		if err != nil {
			return nil, nil, err
		}
		names[i] = srv.Name
	}
	file.Supervisor.Servers = slices.DeleteFunc(file.Supervisor.Servers, func(srv mcpbridge.Server) bool { return !slices.Contains(names, srv.Name) })
	file.Warnings = nil // they are about others
	return file, identities, nil
}

// examine compares all servers with the lock at once. A server that is not reached as it was when it was accepted is not started before
// that is accepted.
func (cmd *Pin) examine(p *cli.Program, file *config.File, lock *pin.Lock, identities map[string]pin.Identity) (all []*pinned, err error) {
	var open []mcpbridge.Server
	var opened []*pinned
	for _, srv := range file.Supervisor.Servers {
		one, is := &pinned{Server: srv.Name, was: lock.Servers[srv.Name]}, identities[srv.Name]
		if lock.Identity(srv.Name, is) == nil || cmd.Accept || lock.Servers == nil {
			open, opened = append(open, srv), append(opened, one)
		} else {
			one.Changes = slices.DeleteFunc(changesIn(lock, srv.Name, &pin.Server{Identity: is}), func(c *change) bool { return c.Of != ofServer })
		}
		all = append(all, one)
	}
	if len(open) == 0 {
		return all, nil
	}
	file.Supervisor.Servers = open
	i, err := start(&cmd.Flags, file, p, cmd.LogLevel, cmd.Timeout)
	if err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	done := waiting(p, func() string { return fmt.Sprintf("listing what %d servers have", len(open)) })
	var listing sync.WaitGroup
	for n, one := range opened {
		listing.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, cmd.Timeout)
			defer cancel()
			now, err := definitionsOf(ctx, i.Running.Client(), one.Server, cmd.Scope)
			if err != nil {
				one.Error = causeOf(open[n], err, cmd.Timeout)
				return
			}
			now.Identity = identities[one.Server]
			one.now, one.Changes = now, changesIn(lock, one.Server, now)
			if one.was != nil && one.was.Version != now.Version {
				one.Version = now.Version
			}
		})
	}
	listing.Wait()
	done()
	return all, i.Stop(closeLimit)
}

// definitionsOf lists what a server has, on the session of a scope.
func definitionsOf(ctx context.Context, client *supervisor.Client, server, scope string) (*pin.Server, error) {
	opened, err := client.Open(ctx, server, scope)
	if err != nil {
		return nil, err
	}
	info, header := opened.Server, messages.To(server, scope)
	its := &pin.Server{Instructions: pin.OfInstructions(info.Instructions)}
	if info.ServerInfo != nil {
		its.Name, its.Version = info.ServerInfo.Name, info.ServerInfo.Version
	}
	list := func(op messages.Operation) map[string]pin.Definition {
		all, incomplete, failed := inputs.Definitions(ctx, client, op)
		if failed == nil && incomplete != "" {
			failed = messages.NewFailure(op, messages.CodeProtocol, "the list is incomplete: "+incomplete)
		}
		err = cmp.Or(err, failed)
		return all
	}
	if info.Capabilities != nil && info.Capabilities.Tools != nil {
		its.Tools = list(&messages.ListTools{Header: header})
	}
	if info.Capabilities != nil && info.Capabilities.Prompts != nil {
		its.Prompts = list(&messages.ListPrompts{Header: header})
	}
	return its, err
}

// report says what was written for the first time, or what differs.
func (done *pinning) report(s cli.Screen) string {
	var out strings.Builder
	for _, one := range done.Servers {
		switch {
		case !done.isFirst:
			one.write(&out, s)
		case one.now != nil:
			fmt.Fprintf(&out, "%s: %s, %s (%s)\n", one.Server, number(len(one.now.Tools), "tool"), number(len(one.now.Prompts), "prompt"), cli.Printable(one.now.Name+" "+one.now.Version))
		}
	}
	if done.turned {
		out.WriteString("What is new is to be refused from now on.\n")
	}
	switch {
	case done.isFirst && done.Written:
		fmt.Fprintf(&out, "This is in %s now. What differs from it is not offered, until mcpactor pin --accept.\n", done.File)
	case done.isFirst: // stderr says why
	case !done.differs && slices.ContainsFunc(done.Servers, func(one *pinned) bool { return one.Error != "" }):
		fmt.Fprintf(&out, "Nothing that could be listed differs from %s.\n", done.File)
	case !done.differs:
		fmt.Fprintf(&out, "Nothing differs from %s.\n", done.File)
	case done.Written:
		fmt.Fprintf(&out, "This is accepted, and in %s.\n", done.File)
	default:
		out.WriteString("Nothing was changed: --accept accepts this.\n")
	}
	return s.Wrap(out.String(), 2)
}

// write writes what differs of a server, if anything does.
func (one *pinned) write(out *strings.Builder, s cli.Screen) {
	if len(one.Changes) == 0 && one.Version == "" {
		return
	}
	fmt.Fprintf(out, "%s\n", s.Paint(heading, one.Server))
	for _, c := range one.Changes {
		c.write(out, s)
	}
	if one.Version != "" {
		fmt.Fprintf(out, "  version: %s, was %s\n", seen(one.Version), seen(one.was.Version))
	}
}
