// Command demo shows mcpactor at work, and runs batches of MCP calls against
// real servers.
//
//	demo                          the show: agents, servers and faults
//	demo exec --config FILE       the batch runner: JSON lines in, JSON lines out
//	demo tools --config FILE      a table of the tools of all servers
//	demo bench                    what supervision costs, next to baselines
package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
)

// The exit statuses.
const (
	exitOK     = 0
	exitFailed = 1 // some answer, or some claim, was a failure
	exitUsage  = 2 // wrong flags, or a wrong configuration
)

// cli are the commands.
type cli struct {
	Show  showCmd  `cmd:"" default:"withargs" help:"Show agents at work on two servers while faults come in, and check that every guarantee holds. The default."`
	Exec  execCmd  `cmd:"" help:"Run tool calls: one JSON object per line on stdin, one answer per line on stdout."`
	Tools toolsCmd `cmd:"" help:"List the tools of all servers, with the safe names by which exec calls them."`
	Bench benchCmd `cmd:"" help:"Measure what supervision costs, next to the bare SDK and other designs."`
	Serve serveCmd `cmd:"" hidden:"" help:"Be the show's stdio server."`
}

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// run runs the command that args name, and returns its exit status.
func run(args []string, io streams) int {
	var commands cli
	status := -1
	parser, err := kong.New(&commands,
		kong.Name("demo"),
		kong.Description("MCP client sessions as supervised actors: a show, and a batch runner for real servers."),
		kong.Writers(io.out, io.err),
		kong.Help(help),
		kong.Exit(func(code int) { status = code }),
	)
	if err != nil {
		panic(err) // the tags above are wrong
	}
	command, err := parser.Parse(args)
	if status >= 0 { // --help
		return status
	}
	if err != nil {
		fmt.Fprintf(io.err, "demo: %v\nRun \"demo --help\" for the usage.\n", err)
		return exitUsage
	}
	err = command.Run(io)
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(io.err, "demo: %v\n", err)
		return exitUsage
	case !errors.Is(err, errFailed):
		fmt.Fprintf(io.err, "demo: %v\n", err)
	}
	return exitFailed
}

// help prints the help of a command, and without one that of all of them.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || ctx.Selected() != nil {
		return err
	}
	for _, command := range ctx.Model.Leaves(true) {
		fmt.Fprintln(ctx.Stdout)
		one, err := kong.Trace(ctx.Kong, strings.Fields(command.Path()))
		if err == nil {
			err = kong.DefaultHelpPrinter(options, one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errFailed says that what went wrong was told already.
var errFailed = errors.New("failed")

// usageError is a mistake in the flags or in the configuration.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// newSystem returns an actor system that logs where we do.
func newSystem(logger zerolog.Logger) *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(zerolog.NewSlogHandler(logger))
	}))
}

// newLogger logs for people.
func newLogger(w io.Writer, level string) zerolog.Logger {
	parsed, err := zerolog.ParseLevel(level)
	if err != nil {
		parsed = zerolog.WarnLevel // kong has checked it
	}
	out := zerolog.ConsoleWriter{Out: w, NoColor: true, TimeFormat: "15:04:05.000"}
	return zerolog.New(zerolog.SyncWriter(out)).Level(parsed).With().Timestamp().Logger()
}
