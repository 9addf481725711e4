// Package inputs loads the configuration file of a command, asks for the inputs that the file needs, and starts a supervisor
// for it.
package inputs

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/browser"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/internal/nearest"
	"github.com/mcpactor/mcpactor/pin"
)

// Flags has the values of the inputs of a file of VS Code, and names a lock file.
type Flags struct {
	Input map[string]string `mapsep:"none" placeholder:"ID=VALUE" help:"Value of $${input:ID} in a VS Code file."`
	Pin   string            `hidden:"" placeholder:"FILE" help:"Lock file, see mcpactor pin. Default: that beside the file."`
}

// interrupted is the exit status of a program that was interrupted.
const interrupted = 130

// maxAsked is how often the user is asked for one input.
const maxAsked = 3

// Loader loads a configuration file, supplies its inputs, and remembers them for a reload.
type Loader struct {
	// Pins is the lock file, or nil. Servers that are not those of the lock are left out.
	Pins *Pins
	// Accept is asked about each server in place of the lock.
	Accept func(server string, is pin.Identity) error

	lockPath string // as the command line has it
	values   map[string]string
	given    []string // the ids of those that the command line has
	asked    []string // the ids of those that servers need
	terminal *os.File // to ask on, or nil
	out      io.Writer
	logins   browser.Logins
}

// NewLoader returns a loader for a program. It asks if stdin is a terminal.
func NewLoader(given Flags, p *cli.Program) *Loader {
	l := &Loader{lockPath: given.Pin, values: map[string]string{}, given: slices.Sorted(maps.Keys(given.Input)), out: p.Err}
	maps.Copy(l.values, given.Input)
	if in, ok := p.In.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		l.terminal = in
	}
	return l
}

// Load loads a configuration file.
func (l *Loader) Load(path string) (*config.File, error) {
	l.asked = nil
	file, err := config.Loader{Input: l.value, LeaveOut: true, Accept: l.Accept}.Load(path)
	if err == nil {
		l.logins.Options = func(server string) browser.Options {
			return browser.Options{Off: file.OAuth[server].Off, Remedy: "run: mcpactor login --config " + path + " " + server}
		}
		l.logins.Attach(file.Supervisor.Servers)
	}
	return file, err
}

// First loads a configuration file for the first time, after its lock file. A value that was given for no input of the file is an error.
func (l *Loader) First(path string) (*config.File, error) {
	if l.Accept == nil {
		var err error
		if l.Pins, err = OpenPins(l.lockPath, path); err != nil {
			return nil, err
		}
		l.Accept = l.Pins.Identity
	}
	file, err := l.Load(path)
	known := slices.Clone(l.asked)
	if err == nil {
		for _, in := range file.Inputs {
			known = append(known, in.ID)
		}
	}
	for _, id := range l.given {
		meant := nearest.Of(id, known)
		switch {
		case slices.Contains(known, id):
		case meant != "":
			return nil, cli.Usagef("--input: no input of %s has the id %q: did you mean %q?", path, id, meant)
		case err == nil:
			return nil, cli.Usagef("--input: no input of %s has the id %q", path, id)
		}
	}
	if err != nil {
		return nil, configError(err)
	}
	return file, nil
}

// value returns the value of an input.
func (l *Loader) value(in config.Input) (string, bool) {
	l.asked = append(l.asked, in.ID)
	if value, known := l.values[in.ID]; known {
		return value, true
	}
	if l.terminal == nil {
		return "", false
	}
	for range maxAsked {
		fmt.Fprint(l.out, promptFor(in))
		value, err := l.read(in.Password)
		if value == "" {
			value = in.Default
		}
		if err != nil || value == "" {
			return "", false
		}
		if len(in.Options) == 0 || slices.Contains(in.Options, value) {
			l.values[in.ID] = value
			return value, true
		}
	}
	return "", false
}

// promptFor asks for an input.
func promptFor(in config.Input) string {
	text := cli.Printable(in.ID)
	if about := cli.Printable(in.Description); about != "" {
		text = about + " (" + text + ")"
	}
	if len(in.Options) > 0 {
		text += ", one of " + cli.Printable(strings.Join(in.Options, ", "))
	}
	if in.Default != "" && !in.Password {
		text += ", default " + cli.Printable(in.Default)
	}
	return text + ": "
}

// read reads a line. It takes no byte after the line, which may be a request.
func (l *Loader) read(secret bool) (string, error) {
	if secret {
		defer fmt.Fprintln(l.out)
		defer l.restoreIfInterrupted()()
		line, err := term.ReadPassword(int(l.terminal.Fd()))
		return string(line), err
	}
	var line []byte
	for b := make([]byte, 1); ; {
		switch _, err := l.terminal.Read(b); {
		case err != nil:
			return "", err
		case b[0] == '\n':
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		line = append(line, b[0])
	}
}

// restoreIfInterrupted makes an interrupt leave the terminal as it is now, until stop is called.
func (l *Loader) restoreIfInterrupted() (stop func()) {
	fd := int(l.terminal.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return func() {}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	go func() {
		if _, came := <-signals; came {
			term.Restore(fd, state) //nolint:errcheck // there is nothing else to do
			os.Exit(interrupted)
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}
