// Package commands has the commands that use servers for a moment: to call a tool, list the tools, try the servers, log in and log out.
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
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/target"
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
	Words []string `arg:"" optional:"" command:"" name:"tool" help:"The tool; then KEY=VALUE, KEY:=JSON, or one JSON object."`
	target.Flags
	Scope    string        `default:"default" help:"Value of $${scope} in the file."`
	JSON     bool          `name:"json" help:"Print the result as JSON."`
	Timeout  time.Duration `default:"1m" help:"How long the call may take."`
	Quiet    time.Duration `help:"End the call when its server is silent for this long."`
	LogLevel string        `default:"error" enum:"debug,info,warn,error" help:"Log to stderr: debug, info, warn or error."`

	server mcpbridge.Server
	tool   string // as the command line has it
}

// Help has the forms of the command, and explains the exit status.
func (*Call) Help() string {
	return `Write one of these:

  mcpactor call URL TOOL KEY=VALUE
  mcpactor call TOOL KEY=VALUE -- npx some-server
  mcpactor call --config FILE SERVER__TOOL KEY=VALUE

Exit status: 1 if it has not run, 3 if the tool fails, 4 if it may have run.`
}

// Run calls the tool, and prints the result.
func (cmd *Call) Run(p *cli.Program) error {
	file, words, err := load(&cmd.Flags, p, cmd.Words, cmd.Timeout)
	if err != nil {
		return err
	}
	meant := named{file.Supervisor.Servers, words}
	if cmd.Config != "" {
		meant, err = nameIn(file, cmd.Config, words)
	}
	switch {
	case err != nil:
		return err
	case len(meant.words) == 0:
		return cli.Usagef("give the name of a tool: mcpactor tools lists them")
	}
	arguments, err := argumentsFrom(meant.words[1:])
	if err != nil {
		return cli.Usagef("%w", err)
	}
	i, err := start(&cmd.Flags, file, p, cmd.LogLevel, cmd.Timeout)
	if err != nil {
		return err
	}
	for _, text := range inputs.LeftOut(i.File, "") {
		p.Errorf("%s", text)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, cmd.Timeout)
	defer cancel()
	var progress atomic.Pointer[messages.Progress]
	done := waiting(p, func() string { return "waiting for " + meant.servers[0].Name + progressIn(progress.Load()) })
	cmd.tool = meant.words[0]
	cmd.server = cmd.serverOf(ctx, i, meant.servers)
	name, isChecked, err := cmd.prepare(ctx, i, arguments)
	if err != nil {
		done()
		return errors.Join(err, i.Stop(closeLimit))
	}
	calling := supervisor.WithProgress(ctx, func(p *messages.Progress) { progress.Store(p) })
	header := messages.To(cmd.server.Name, cmd.Scope)
	header.Quiet, header.Verbatim = cmd.Quiet, true
	call := &messages.CallTool{Header: header, Params: &mcp.CallToolParams{Name: name, Arguments: arguments}}
	var reply *messages.ToolResult
	if err = i.Pins.Check(ctx, i.Running.Client(), call); err == nil {
		var got messages.Reply
		got, err = i.Running.Client().Do(calling, call)
		reply, _ = got.(*messages.ToolResult)
	}
	unknown := ""
	failure, failed := errors.AsType[*messages.Failure](err)
	if err == nil && reply.Result.IsError || failed && (failure.Code == messages.CodeInvalid || failure.Code == messages.CodeServerError) {
		unknown = cmd.unknown(ctx, i)
	}
	done()
	stopErr := i.Stop(closeLimit)
	if !isChecked && unknown == "" {
		p.Errorf("%s: only the types of the arguments were checked: the schema of the tool cannot be used", cmd.tool)
	}
	if failed {
		return cmd.fail(p, failure, unknown)
	}
	if unknown != "" {
		defer p.Errorf("%s", unknown)
	}
	if err := errors.Join(err, stopErr); err != nil {
		return err
	}
	if err := cmd.print(p.Out, reply); err != nil {
		return err
	}
	for _, remark := range reply.Remarks() {
		p.Errorf("%s: %s", cmd.server.Name, cli.Printable(remark))
	}
	if reply.Result.IsError {
		return cli.Exit(exitToolError)
	}
	return nil
}

// fail says why the call failed, and returns the exit status. unknown is what to say of a tool that the server has not listed. If the
// server has refused such a call, nothing has run.
func (cmd *Call) fail(p *cli.Program, failure *messages.Failure, unknown string) error {
	text, mayHaveRun := cmd.server.Name+": "+causeOf(cmd.server, failure, cmd.Timeout), failure.MayHaveRun
	switch {
	case unknown != "" && failure.Code == messages.CodeInvalid:
		text, mayHaveRun = unknown, false
	case unknown != "":
		text += "; " + unknown
	}
	p.Errorf("%s", text)
	if cmd.JSON {
		if err := json.NewEncoder(p.Out).Encode(map[string]any{"error": text, "code": failure.Code, "mayHaveRun": mayHaveRun}); err != nil {
			return err
		}
	}
	if mayHaveRun {
		return cli.Exit(exitMayHaveRun)
	}
	return cli.ErrFailed
}

// serverOf returns the server that has the tool, or the last one if none is known to have it.
func (cmd *Call) serverOf(ctx context.Context, i *inputs.Instance, servers []mcpbridge.Server) mcpbridge.Server {
	last := len(servers) - 1
	for _, srv := range servers[:last] {
		listed, err := i.Running.Client().ListTools(ctx, srv.Name, cmd.Scope)
		if err == nil && toolIn(listed.Result.Tools, srv.Name, cmd.tool) != nil {
			return srv
		}
	}
	return servers[last]
}

// prepare returns the name of the tool as the server has it, and makes the arguments what the tool wants. If the tools cannot be
// listed, the arguments stay texts, and the call says why. isChecked is false if the schema of the tool cannot be used.
func (cmd *Call) prepare(ctx context.Context, i *inputs.Instance, arguments map[string]any) (name string, isChecked bool, err error) {
	if !strings.Contains(cmd.tool, "__") && !slices.ContainsFunc(slices.Collect(maps.Values(arguments)), isText) {
		return cmd.tool, true, nil
	}
	listed, err := i.Running.Client().ListTools(ctx, cmd.server.Name, cmd.Scope)
	if err != nil {
		return cmd.tool, true, nil
	}
	tool := toolIn(listed.Result.Tools, cmd.server.Name, cmd.tool)
	if tool == nil {
		return cmd.tool, true, nil
	}
	set, err := i.List(ctx, toolset.Config{Scope: cmd.Scope, Servers: []toolset.Filter{{Name: cmd.server.Name}}, ListTimeout: cmd.Timeout})
	if err != nil {
		return tool.Name, true, nil
	}
	var parameters json.RawMessage
	shown := set.Tool(toolset.SafeName(cmd.server.Name, tool.Name))
	if shown != nil {
		parameters = shown.Parameters()
	} else if parameters, err = json.Marshal(tool.InputSchema); err != nil {
		return tool.Name, false, nil
	}
	isChecked, err = fit(tool.Name, parameters, shown == nil, arguments)
	return tool.Name, isChecked, err
}

// unknown says that the server has no such tool, and which may be meant. It returns "" if there is one.
func (cmd *Call) unknown(ctx context.Context, i *inputs.Instance) string {
	listed, err := i.Running.Client().ListTools(ctx, cmd.server.Name, cmd.Scope)
	if err != nil || len(listed.Result.Tools) == 0 || toolIn(listed.Result.Tools, cmd.server.Name, cmd.tool) != nil {
		return ""
	}
	var names []string
	for _, tool := range listed.Result.Tools {
		names = append(names, tool.Name, toolset.SafeName(cmd.server.Name, tool.Name))
	}
	if meant := nearest.Of(cmd.tool, names); meant != "" {
		return fmt.Sprintf("%s has no tool %q: did you mean %q?", cmd.server.Name, cmd.tool, cli.Printable(meant))
	}
	return fmt.Sprintf("%s has no tool %q: mcpactor tools lists those that there are", cmd.server.Name, cmd.tool)
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

// visibleOnTerminal drops the control characters of a text, with which a server could command a terminal, and those that change the
// order in which others are shown.
func visibleOnTerminal(r rune) rune {
	isOrder := r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
	if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || isOrder {
		return -1
	}
	return r
}

// load returns the configuration that a command line is about, and the words that are left: see [target.Flags.Load].
func load(f *target.Flags, p *cli.Program, words []string, limit time.Duration) (*config.File, []string, error) {
	if limit <= 0 {
		return nil, nil, cli.Usagef("--timeout: %v is not greater than 0", limit)
	}
	return f.Load(p, words)
}

// start starts a supervisor for a command that lasts a moment: no session is resumed or left open, and nobody waits for a
// server that is down. limit is how long the command waits for a server.
func start(f *target.Flags, file *config.File, p *cli.Program, level string, limit time.Duration) (*inputs.Instance, error) {
	file.Store, file.Supervisor.LeaveOpen, file.Supervisor.FailFast = "", false, true
	connectWithin(file, connectLimit(limit))
	return inputs.Start(f.Config, file, f.Pins, p.Err, level)
}
