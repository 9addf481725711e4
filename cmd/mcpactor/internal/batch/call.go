package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/internal/nearest"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// The exit statuses of a call.
const (
	exitToolError  = 3 // the tool itself reports an error
	exitMayHaveRun = 4 // the call failed, and may have run
)

// Call is the command that calls one tool.
type Call struct {
	Config    string        `required:"" placeholder:"FILE" help:"Configuration file, as for exec."`
	Inputs    Inputs        `embed:""`
	Scope     string        `default:"default" help:"Scope of the session. Default: default."`
	JSON      bool          `name:"json" help:"Print the result as JSON."`
	Timeout   time.Duration `default:"1m" help:"How long the call may take. Default: 1m."`
	Quiet     time.Duration `help:"End the call when nothing was heard of it for so long. Default: only after --timeout."`
	LogLevel  string        `default:"error" enum:"debug,info,warn,error" help:"Lowest level that is logged to stderr: debug, info, warn or error. Default: error."`
	Server    string        `arg:"" help:"Name of the server."`
	Tool      string        `arg:"" help:"Name of the tool, as the server has it."`
	Arguments []string      `arg:"" optional:"" placeholder:"KEY=VALUE" help:"Arguments: KEY=VALUE, where the tool says the type, KEY:=JSON, or one JSON object."`
}

// Help explains the exit status.
func (*Call) Help() string {
	return "The exit status is 3 if the tool reports an error, 4 if the call failed and may have run, and 1 if it failed and has not run."
}

// Run calls the tool, and prints the result.
func (cmd *Call) Run(p *cli.Program) error {
	arguments, err := argumentsFrom(cmd.Arguments)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	i, err := open(cmd.Config, cmd.Inputs, p, cmd.LogLevel, cmd.Server)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, cmd.Timeout)
	defer cancel()
	done := waiting(p, func() string { return "waiting for " + cmd.Server })
	if mayBeJSON(arguments) {
		cmd.fit(ctx, i, arguments)
	}
	reply, err := i.sup.Client().CallTool(supervisor.WithQuiet(ctx, cmd.Quiet), cmd.Server, cmd.Scope, &mcp.CallToolParams{Name: cmd.Tool, Arguments: arguments})
	done()
	stopErr := i.stop(closeLimit)
	if failure, failed := errors.AsType[*messages.Failure](err); failed {
		p.Errorf("%s", printable(failure.Error()))
		if failure.MayHaveRun {
			return cli.Exit(exitMayHaveRun)
		}
		return cli.ErrFailed
	}
	if err := errors.Join(err, stopErr); err != nil {
		return err
	}
	if err := cmd.print(p.Out, reply.Result); err != nil {
		return err
	}
	if reply.Result.IsError {
		return cli.Exit(exitToolError)
	}
	return nil
}

// print prints a result: the texts, and other parts as JSON.
func (cmd *Call) print(out io.Writer, result *mcp.CallToolResult) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if cmd.JSON {
		return encoder.Encode(result)
	}
	for _, part := range result.Content {
		var err error
		if text, ok := part.(*mcp.TextContent); ok {
			_, err = fmt.Fprintln(out, strings.Map(visibleOnTerminal, text.Text))
		} else {
			err = encoder.Encode(part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// visibleOnTerminal drops the control characters of a text, with which a server could command a terminal.
func visibleOnTerminal(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
		return -1
	}
	return r
}

// open starts a supervisor for a command that lasts a moment: no session is resumed or left open, and nobody waits for a
// server that is down. only is the name of the server that is used, or empty.
func open(path string, given Inputs, p *cli.Program, level, only string) (*instance, error) {
	file, err := newInputs(given, p).first(path)
	if err != nil {
		return nil, err
	}
	file.Store, file.Supervisor.LeaveOpen, file.Supervisor.FailFast = "", false, true
	if only != "" {
		if _, err := serverIn(file, only); err != nil {
			return nil, err
		}
	}
	return start(path, file, p.Err, level)
}

// serverIn returns the server of a file with a name.
func serverIn(file *config.File, name string) (mcpbridge.Server, error) {
	var names []string
	for _, srv := range file.Supervisor.Servers {
		if srv.Name == name {
			return srv, nil
		}
		names = append(names, srv.Name)
	}
	if meant := nearest.Of(name, names); meant != "" {
		return mcpbridge.Server{}, cli.Usagef("there is no server %q: did you mean %q?", name, meant)
	}
	return mcpbridge.Server{}, cli.Usagef("there is no server %q: the file has %s", name, strings.Join(names, ", "))
}
