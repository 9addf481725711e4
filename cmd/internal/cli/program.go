// Package cli runs the command line programs of this module: it parses arguments, runs the
// command that they select, and turns its error into an exit status.
package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// The exit statuses.
const (
	ExitOK     = 0
	ExitFailed = 1 // the command ran, and something in it failed
	ExitUsage  = 2 // a flag or the configuration is invalid
)

// Program is a command line program: its name, and the streams that it reads and writes.
type Program struct {
	Name, Description string

	In       io.Reader
	Out, Err io.Writer

	// After has the words of the command line after "--" of a command whose argument has the tag command. It is nil if there is no "--".
	After []string
}

// Run parses args, runs the command that they select, and returns the exit status.
// commands is a pointer to a struct with kong's tags. The method Run of a command gets the
// program, and kong's context if it asks for it.
func (p *Program) Run(commands any, args []string) (status int) {
	status = -1
	parser, err := kong.New(commands,
		kong.Name(p.Name),
		kong.Description(p.Description),
		kong.Writers(p.Out, p.Err),
		kong.Help(help),
		kong.Exit(func(code int) { status = code }),
		kong.Bind(p),
	)
	if err != nil {
		panic(err) // the tags of commands are wrong
	}
	parser.Model.HelpFlag.Hidden = true // who reads the help has found it
	switch {
	case len(args) > 1 && args[0] == completeCommand:
		complete(p.Out, parser.Model.Node, args[1:])
		return ExitOK
	case len(args) > 0 && args[0] == "help":
		args = append(args[1:], "--help")
	case len(args) == 1 && args[0] == "--version":
		args = []string{"version"}
	}
	args, p.After = arrange(parser.Model.Node, args)
	command, err := parser.Parse(args)
	switch {
	case status >= 0: // --help
		return status
	case err != nil && len(args) == 0:
		parser.Stdout = p.Err
		parser.Parse([]string{"--help"}) //nolint:errcheck // it prints the help
		return ExitUsage
	case err != nil:
		p.Errorf("%v\nRun \"%s --help\" for the usage.", err, strings.TrimSpace(p.Name+" "+selected(err)))
		return ExitUsage
	}
	err = command.Run(command)
	var usage *UsageError
	var exit Exit
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage):
		p.Errorf("%v", err)
		return ExitUsage
	case errors.As(err, &exit):
		return int(exit)
	case !errors.Is(err, ErrFailed):
		p.Errorf("%v", err)
	}
	return ExitFailed
}

// selected returns the name of the command whose arguments are wrong, or nothing.
func selected(err error) string {
	if wrong, is := errors.AsType[*kong.ParseError](err); is && wrong.Context.Selected() != nil {
		return wrong.Context.Selected().Name
	}
	return ""
}

// Errorf writes a line to Err, after the name of the program.
func (p *Program) Errorf(format string, args ...any) {
	io.WriteString(p.Err, ScreenOf(p.Err).Wrap(fmt.Sprintf(p.Name+": "+format+"\n", args...), 2)) //nolint:errcheck // there is nowhere to say so
}

// help prints the help of the selected command, or of the only one. If none is selected it prints what each is for.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	commands := ctx.Model.Leaves(true)
	if ctx.Selected() != nil || len(commands) != 1 {
		options.Compact = ctx.Selected() == nil
		return kong.DefaultHelpPrinter(options, ctx)
	}
	one, err := kong.Trace(ctx.Kong, strings.Fields(commands[0].Path()))
	if err != nil {
		return err
	}
	return kong.DefaultHelpPrinter(options, one)
}

// ErrFailed is the error of a command that has reported its failure itself.
var ErrFailed = errors.New("failed")

// Exit is the error of a command that has reported its failure itself, and has an exit status of its own.
type Exit int

// Error names the status.
func (e Exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// UsageError is an invalid flag or an invalid configuration.
type UsageError struct{ Err error }

// Error returns the text of Err.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a [UsageError] with a text.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }
