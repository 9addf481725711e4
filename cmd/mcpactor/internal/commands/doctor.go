package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/browser"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/handleguess"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/target"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/pin"
	"github.com/mcpactor/mcpactor/toolset"
)

// Doctor is the command that tries each server.
type Doctor struct {
	Words []string `arg:"" optional:"" command:"" name:"url" help:"The URL of a server that is not in a file."`
	target.Flags
	JSON     bool          `name:"json" help:"Print JSON."`
	Timeout  time.Duration `default:"30s" help:"How long to wait for a server."`
	LogLevel string        `default:"error" enum:"debug,info,warn,error" help:"Log to stderr: debug, info, warn or error."`
}

// Help has the forms of the command.
func (*Doctor) Help() string {
	return `Write one of these:

  mcpactor doctor URL
  mcpactor doctor -- npx some-server
  mcpactor doctor --config FILE`
}

// Run prints what was found out about each server. It fails if a server does not work.
func (cmd *Doctor) Run(p *cli.Program) error {
	file, rest, err := load(&cmd.Flags, p, cmd.Words, cmd.Timeout)
	switch {
	case err != nil:
		return err
	case len(rest) > 0 && cmd.Config != "":
		return cli.Usagef("%q is too much: doctor tries all servers of the file", rest[0])
	case len(rest) > 0:
		return cli.Usagef("%q is too much: give one URL, or one command after --", rest[0])
	}
	i, err := start(&cmd.Flags, file, p, cmd.LogLevel, cmd.Timeout)
	if err != nil {
		return err
	}
	i.Pins = nil // what differs is told, see pinWarnings
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	all := cmd.examineAll(ctx, p, i)
	stopErr := i.Stop(closeLimit)
	if cmd.JSON {
		err = json.NewEncoder(p.Out).Encode(map[string]any{"servers": all})
	} else {
		screen := cli.ScreenOf(p.Out)
		_, err = io.WriteString(p.Out, report(all, screen)+proposals(all, screen))
		if cmd.Config != "" && cmd.Pins == nil {
			p.Errorf("%s", inputs.PinHint(cmd.Config))
		}
	}
	switch err := errors.Join(err, stopErr); {
	case err != nil:
		return err
	case slices.ContainsFunc(all, func(d *diagnosis) bool { return !d.Works }):
		return cli.ErrFailed
	}
	return nil
}

// examineAll tries all servers at once. Those that are left out of the configuration come last.
func (cmd *Doctor) examineAll(ctx context.Context, p *cli.Program, i *inputs.Instance) []*diagnosis {
	found := make([]*diagnosis, len(i.Supervisor.Servers))
	var all sync.WaitGroup
	var left sync.Map // the servers that are still tried
	for n, srv := range i.Supervisor.Servers {
		left.Store(srv.Name, nil)
		all.Go(func() {
			found[n] = cmd.diagnose(ctx, i, srv, i.Tools[n])
			left.Delete(srv.Name)
		})
	}
	done := waiting(p, func() string {
		names := []string{}
		for name := range left.Range {
			names = append(names, name.(string))
		}
		slices.Sort(names)
		text := "waiting for " + strings.Join(names, ", ")
		if len(found) > 1 {
			text = fmt.Sprintf("%d of %d servers tried, %s", len(found)-len(names), len(found), text)
		}
		return text
	})
	all.Wait()
	done()
	return append(found, leftOutOf(i.File)...)
}

// leftOutOf returns the servers that have an error in the file.
func leftOutOf(file *config.File) (all []*diagnosis) {
	for _, warning := range file.Warnings {
		if n := len(all); n > 0 && all[n-1].Server == warning.Server {
			all[n-1].Error += "; " + inputs.ForUser(warning.String())
		} else if warning.Server != "" {
			all = append(all, &diagnosis{Server: warning.Server, Error: inputs.ForUser(warning.String())})
		}
	}
	return all
}

// diagnose returns what was found out about a server.
func (cmd *Doctor) diagnose(ctx context.Context, i *inputs.Instance, srv mcpbridge.Server, tools toolset.Filter) *diagnosis {
	e := examine(ctx, i, tools, cmd.Timeout)
	d := &diagnosis{Server: srv.Name, Elapsed: e.took.Round(10 * time.Millisecond).String(), Tools: len(e.tools)}
	if browser.Attached(&srv) {
		d.LoginWay, d.LoggedIn = browser.Kept(srv.URL)
	} else if grant := i.File.OAuth[srv.Name].Grant; grant != "" {
		d.LoginWay, d.LoggedIn = grant, e.err == nil
	}
	for name, renamed := range i.Renamed {
		if renamed == srv.Name {
			d.Warnings = append(d.Warnings, fmt.Sprintf("its name in the file is %q: a name has only the letters A to Z, digits, dots, dashes and underscores", name))
		}
	}
	for _, warning := range slices.Concat(srv.Warnings(), e.odd, misdeclared(srv.Handles, e.tools)) {
		d.Warnings = append(d.Warnings, cli.Printable(warning))
	}
	if e.err == nil {
		d.Works, d.Implementation, d.ProtocolVersion = true, e.info.ServerInfo, e.info.ProtocolVersion
		d.Handles = slices.DeleteFunc(handleguess.Of(e.tools, srv.Handles), func(guess handleguess.Guess) bool { return !tools.Wants(guess.Mint, false) })
		if lock := cmd.Pins.Lock(); lock != nil {
			d.Pinned = lock.Servers[srv.Name] != nil
			d.Warnings = append(d.Warnings, cmd.pinWarnings(ctx, i, srv, lock)...)
		}
		return d
	}
	d.Error, d.Next = explain(srv, e.err, cmd.Timeout)
	// What an authorization server offers is of use only if a login is the remedy.
	if failure, ok := errors.AsType[*messages.Failure](e.err); ok && failure.Code == messages.CodeUnauthorized && browser.Attached(&srv) && strings.HasPrefix(d.Next, "run: ") {
		d.needsLogin(ctx, srv.URL, i.File.OAuth[srv.Name].ClientID != "")
	}
	if e.took >= connectLimit(cmd.Timeout) {
		d.Next = strings.TrimPrefix(d.Next+", or give it more --timeout", ", or ")
	}
	return d
}

// needsLogin adds what the authorization server of a server offers. hasClient is true if the file names a client.
func (d *diagnosis) needsLogin(ctx context.Context, url string, hasClient bool) {
	ctx, cancel := context.WithTimeout(ctx, offersLimit)
	defer cancel()
	if d.LoginOffers = browser.Offers(ctx, url); d.LoginOffers == nil {
		return
	}
	d.Error += "; " + cli.Printable(d.LoginOffers.String())
	if !d.LoginOffers.Documents && !d.LoginOffers.Registration && !hasClient {
		d.Next += ", with --client-id and a client that you register there"
	}
}

// offersLimit bounds how long doctor asks what an authorization server offers.
const offersLimit = 10 * time.Second

// pinWarnings says in what a server differs from a lock.
func (cmd *Doctor) pinWarnings(ctx context.Context, i *inputs.Instance, srv mcpbridge.Server, lock *pin.Lock) (warnings []string) {
	ctx, cancel := context.WithTimeout(ctx, cmd.Timeout)
	defer cancel()
	now, err := definitionsOf(ctx, i.Running.Client(), srv.Name, "")
	if err != nil {
		return []string{"it could not be compared with the lock file: " + causeOf(srv, err, cmd.Timeout)}
	}
	was := lock.Servers[srv.Name]
	if was != nil {
		now.Identity = was.Identity // or it would have been left out
	}
	for _, c := range changesIn(lock, srv.Name, now) {
		warnings = append(warnings, c.String())
	}
	if len(warnings) > 0 {
		command := "mcpactor pin"
		if cmd.Config != "" {
			command += " --config " + cmd.Config
		}
		warnings = append(warnings, fmt.Sprintf("%s shows what differs from the lock file, and with --accept, accepts it", command))
	}
	if was != nil && was.Version != now.Version {
		warnings = append(warnings, fmt.Sprintf("version %s is new: it was pinned with version %s", seen(now.Version), seen(was.Version)))
	}
	return warnings
}

// examined is what a server has answered.
type examined struct {
	info  *mcp.InitializeResult
	tools []*mcp.Tool
	odd   []string
	took  time.Duration
	err   error
}

// examine opens a session of a server, and lists its tools if it has some.
func examine(ctx context.Context, i *inputs.Instance, server toolset.Filter, limit time.Duration) (e examined) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	defer func() { e.took = time.Since(began) }()
	opened, err := i.Running.Client().Open(ctx, server.Name, "")
	if err != nil {
		return examined{err: err}
	}
	e.info = opened.Server
	if e.info.Capabilities == nil || e.info.Capabilities.Tools == nil {
		return e
	}
	listed, err := i.Running.Client().ListTools(ctx, server.Name, "")
	if err != nil {
		return examined{err: err}
	}
	e.tools = listed.Result.Tools
	set, err := i.List(ctx, toolset.Config{Servers: []toolset.Filter{server}, ListTimeout: limit})
	if err != nil {
		return examined{err: err}
	}
	for _, left := range set.LeftOut {
		e.odd = append(e.odd, leftOut(left))
	}
	return e
}

// number says how many tools or other things there are.
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
