// Package commands has the commands that use the servers of a configuration file for a moment: to call a tool, list the tools,
// try the servers, log in and log out.
package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/internal/nearest"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// The exit statuses of a call.
const (
	exitToolError  = 3 // the tool itself reports an error
	exitMayHaveRun = 4 // the call failed, and may have run
)

// Call is the command that calls one tool.
type Call struct {
	Config    string        `required:"" placeholder:"FILE" help:"File with the servers, such as .mcp.json."`
	Inputs    inputs.Flags  `embed:""`
	Scope     string        `default:"default" help:"Value of $${scope} in the file."`
	JSON      bool          `name:"json" help:"Print the result as JSON."`
	Timeout   time.Duration `default:"1m" help:"How long the call may take."`
	Quiet     time.Duration `help:"End the call when its server is silent for this long."`
	LogLevel  string        `default:"error" enum:"debug,info,warn,error" help:"Log to stderr: debug, info, warn or error."`
	Server    string        `arg:"" help:"Name of the server."`
	Tool      string        `arg:"" help:"Name of the tool, as the server or mcpactor tools has it."`
	Arguments []string      `arg:"" optional:"" placeholder:"KEY=VALUE" help:"KEY=VALUE, of the type that the tool wants; KEY:=JSON; or one JSON object."`
}

// Help explains the exit status.
func (*Call) Help() string {
	return "The exit status is 1 if the call failed and has not run, 3 if the tool reports an error, and 4 if the call failed but may have run."
}

// Run calls the tool, and prints the result.
func (cmd *Call) Run(p *cli.Program) error {
	arguments, err := argumentsFrom(cmd.Arguments)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	i, err := open(cmd.Config, cmd.Inputs, p, cmd.LogLevel, cmd.Timeout)
	if err != nil {
		return err
	}
	srv, err := serverIn(i.File, cmd.Server)
	if err != nil {
		return errors.Join(err, i.Stop(closeLimit))
	}
	cmd.Server = srv.Name
	for _, text := range inputs.LeftOut(i.File, "") {
		p.Errorf("%s", text)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, cmd.Timeout)
	defer cancel()
	var progress atomic.Pointer[messages.Progress]
	done := waiting(p, func() string { return "waiting for " + cmd.Server + progressIn(progress.Load()) })
	name, isChecked, err := cmd.prepare(ctx, i, arguments)
	if err != nil {
		done()
		return errors.Join(err, i.Stop(closeLimit))
	}
	calling := supervisor.WithProgress(ctx, func(p *messages.Progress) { progress.Store(p) })
	header := messages.To(cmd.Server, cmd.Scope)
	header.Quiet, header.Verbatim = cmd.Quiet, true
	got, err := i.Running.Client().Do(calling, &messages.CallTool{Header: header, Params: &mcp.CallToolParams{Name: name, Arguments: arguments}})
	reply, _ := got.(*messages.ToolResult)
	unknown := ""
	failure, failed := errors.AsType[*messages.Failure](err)
	if err == nil && reply.Result.IsError || failed && (failure.Code == messages.CodeInvalid || failure.Code == messages.CodeServerError) {
		unknown = cmd.unknown(ctx, i)
	}
	done()
	stopErr := i.Stop(closeLimit)
	if !isChecked && unknown == "" {
		p.Errorf("%s: only the types of the arguments were checked: the schema of the tool cannot be used", cmd.Tool)
	}
	if unknown != "" {
		defer p.Errorf("%s", unknown)
	}
	if failed {
		p.Errorf("%s: %s", cmd.Server, causeOf(srv, failure, cmd.Timeout))
		if failure.MayHaveRun {
			return cli.Exit(exitMayHaveRun)
		}
		return cli.ErrFailed
	}
	if err := errors.Join(err, stopErr); err != nil {
		return err
	}
	if err := cmd.print(p.Out, reply); err != nil {
		return err
	}
	for _, remark := range reply.Remarks() {
		p.Errorf("%s: %s", cmd.Server, cli.Printable(remark))
	}
	if reply.Result.IsError {
		return cli.Exit(exitToolError)
	}
	return nil
}

// prepare returns the name of the tool as the server has it, and makes the arguments what the tool wants. If the tools cannot be
// listed, the arguments stay texts, and the call says why. isChecked is false if the schema of the tool cannot be used.
func (cmd *Call) prepare(ctx context.Context, i *inputs.Instance, arguments map[string]any) (name string, isChecked bool, err error) {
	if !strings.Contains(cmd.Tool, "__") && !slices.ContainsFunc(slices.Collect(maps.Values(arguments)), isText) {
		return cmd.Tool, true, nil
	}
	listed, err := i.Running.Client().ListTools(ctx, cmd.Server, cmd.Scope)
	if err != nil {
		return cmd.Tool, true, nil
	}
	tool := cmd.toolIn(listed.Result.Tools)
	if tool == nil {
		return cmd.Tool, true, nil
	}
	set, err := i.List(ctx, toolset.Config{Scope: cmd.Scope, Servers: []toolset.Filter{{Name: cmd.Server}}, ListTimeout: cmd.Timeout})
	if err != nil {
		return tool.Name, true, nil
	}
	var parameters json.RawMessage
	shown := set.Tool(toolset.SafeName(cmd.Server, tool.Name))
	if shown != nil {
		parameters = shown.Parameters()
	} else if parameters, err = json.Marshal(tool.InputSchema); err != nil {
		return tool.Name, false, nil
	}
	isChecked, err = fit(tool.Name, parameters, shown == nil, arguments)
	return tool.Name, isChecked, err
}

// toolIn returns the tool in a list, or nil. It may be named as the server names it, or else as the command tools does.
func (cmd *Call) toolIn(tools []*mcp.Tool) *mcp.Tool {
	at := slices.IndexFunc(tools, func(t *mcp.Tool) bool { return t.Name == cmd.Tool })
	if at < 0 {
		at = slices.IndexFunc(tools, func(t *mcp.Tool) bool { return toolset.SafeName(cmd.Server, t.Name) == cmd.Tool })
	}
	if at < 0 {
		return nil
	}
	return tools[at]
}

// unknown says that the server has no such tool, and which may be meant. It returns "" if there is one.
func (cmd *Call) unknown(ctx context.Context, i *inputs.Instance) string {
	listed, err := i.Running.Client().ListTools(ctx, cmd.Server, cmd.Scope)
	if err != nil || len(listed.Result.Tools) == 0 || cmd.toolIn(listed.Result.Tools) != nil {
		return ""
	}
	var names []string
	for _, tool := range listed.Result.Tools {
		names = append(names, tool.Name, toolset.SafeName(cmd.Server, tool.Name))
	}
	if meant := nearest.Of(cmd.Tool, names); meant != "" {
		return fmt.Sprintf("%s has no tool %q: did you mean %q?", cmd.Server, cmd.Tool, cli.Printable(meant))
	}
	return fmt.Sprintf("%s has no tool %q: mcpactor tools lists those that there are", cmd.Server, cmd.Tool)
}

// progressIn returns what a server says of its progress, as the rest of a line.
func progressIn(p *messages.Progress) string {
	if p == nil {
		return ""
	}
	text := fmt.Sprintf(": %v", p.Progress)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %v", p.Total)
	}
	return fmt.Sprintf("%.60s", strings.TrimSpace(text+" "+cli.Printable(p.Message)))
}

// print prints a result: as the server has sent it, or the texts, and other parts as JSON.
func (cmd *Call) print(out io.Writer, reply *messages.ToolResult) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if cmd.JSON {
		return encoder.Encode(ContentOf(reply))
	}
	if len(reply.Result.Content) == 0 && reply.Result.StructuredContent != nil {
		var sent struct{ StructuredContent json.RawMessage }
		if json.Unmarshal(reply.Verbatim, &sent) == nil && sent.StructuredContent != nil {
			return encoder.Encode(sent.StructuredContent)
		}
		return encoder.Encode(reply.Result.StructuredContent)
	}
	for _, part := range reply.Result.Content {
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
// server that is down. limit is how long the command waits for a server.
func open(path string, given inputs.Flags, p *cli.Program, level string, limit time.Duration) (*inputs.Instance, error) {
	if limit <= 0 {
		return nil, cli.Usagef("--timeout: %v is not greater than 0", limit)
	}
	file, err := inputs.NewLoader(given, p).First(path)
	if err != nil {
		return nil, err
	}
	file.Store, file.Supervisor.LeaveOpen, file.Supervisor.FailFast = "", false, true
	connectWithin(file, limit)
	return inputs.Start(path, file, p.Err, level)
}

// serverIn returns the server of a file with a name, which may be that in the file.
func serverIn(file *config.File, name string) (mcpbridge.Server, error) {
	var names []string
	for _, srv := range file.Supervisor.Servers {
		if srv.Name == name || srv.Name == file.Renamed[name] {
			return srv, nil
		}
		names = append(names, srv.Name)
	}
	if lacks := inputs.LeftOut(file, name); len(lacks) > 0 {
		return mcpbridge.Server{}, cli.Usagef("%s", lacks[0])
	}
	known := slices.Clone(names)
	for _, warning := range file.Warnings {
		known = append(known, warning.Server)
	}
	if meant := nearest.Of(name, known); meant != "" {
		return mcpbridge.Server{}, cli.Usagef("there is no server %q: did you mean %q?", name, meant)
	}
	return mcpbridge.Server{}, cli.Usagef("there is no server %q: the file has %s", name, strings.Join(names, ", "))
}
