package batch

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/login"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/internal/nearest"
)

// Inputs has the values of the inputs of a file of VS Code.
type Inputs struct {
	Input map[string]string `mapsep:"none" placeholder:"ID=VALUE" help:"Value of $${input:ID} in a VS Code file."`
}

// interrupted is the exit status of a program that was interrupted.
const interrupted = 130

// maxAsked is how often the user is asked for one input.
const maxAsked = 3

// inputs supplies the inputs of a configuration file, and remembers them for a reload.
type inputs struct {
	values   map[string]string
	given    []string // the ids of those that the command line has
	asked    []string // the ids of those that servers need
	terminal *os.File // to ask on, or nil
	out      io.Writer
	logins   login.Logins
}

// newInputs returns the inputs of a program. It asks if stdin is a terminal.
func newInputs(given Inputs, p *cli.Program) *inputs {
	i := &inputs{values: map[string]string{}, given: slices.Sorted(maps.Keys(given.Input)), out: p.Err}
	maps.Copy(i.values, given.Input)
	if in, ok := p.In.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		i.terminal = in
	}
	return i
}

// load loads a configuration file.
func (i *inputs) load(path string) (*config.File, error) {
	i.asked = nil
	file, err := config.Loader{Input: i.value, LeaveOut: true}.Load(path)
	if err == nil {
		i.logins.Options = func(server string) login.Options {
			return login.Options{Off: file.OAuth[server].Off, Remedy: "run: mcpactor login --config " + path + " " + server}
		}
		i.logins.Attach(file.Supervisor.Servers)
	}
	return file, err
}

// first loads a configuration file for the first time. A value that was given for no input of the file is an error.
func (i *inputs) first(path string) (*config.File, error) {
	file, err := i.load(path)
	known := slices.Clone(i.asked)
	if err == nil {
		for _, in := range file.Inputs {
			known = append(known, in.ID)
		}
	}
	for _, id := range i.given {
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

// forGo is what package config says of an input that nobody has supplied.
var forGo = regexp.MustCompile(`"([^"\s]*)": Loader\.Input has to return it`)

// forUser returns a text of package config for users of this program.
func forUser(text string) string {
	return forGo.ReplaceAllString(text, `"$1": give --input $1=VALUE`)
}

// LeftOut says why servers of a file are left out, or why one of them is.
func LeftOut(file *config.File, server string) (lines []string) {
	for _, warning := range file.Warnings {
		if warning.Server != "" && (server == "" || server == warning.Server) {
			lines = append(lines, forUser(warning.String()))
		}
	}
	return lines
}

// value returns the value of an input.
func (i *inputs) value(in config.Input) (string, bool) {
	i.asked = append(i.asked, in.ID)
	if value, known := i.values[in.ID]; known {
		return value, true
	}
	if i.terminal == nil {
		return "", false
	}
	for range maxAsked {
		fmt.Fprint(i.out, promptFor(in))
		value, err := i.read(in.Password)
		if value == "" {
			value = in.Default
		}
		if err != nil || value == "" {
			return "", false
		}
		if len(in.Options) == 0 || slices.Contains(in.Options, value) {
			i.values[in.ID] = value
			return value, true
		}
	}
	return "", false
}

// promptFor asks for an input.
func promptFor(in config.Input) string {
	text := printable(in.ID)
	if about := printable(in.Description); about != "" {
		text = about + " (" + text + ")"
	}
	if len(in.Options) > 0 {
		text += ", one of " + printable(strings.Join(in.Options, ", "))
	}
	if in.Default != "" && !in.Password {
		text += ", default " + printable(in.Default)
	}
	return text + ": "
}

// read reads a line. It takes no byte after the line, which may be a request.
func (i *inputs) read(secret bool) (string, error) {
	if secret {
		defer fmt.Fprintln(i.out)
		defer i.restoreIfInterrupted()()
		line, err := term.ReadPassword(int(i.terminal.Fd()))
		return string(line), err
	}
	var line []byte
	for b := make([]byte, 1); ; {
		switch _, err := i.terminal.Read(b); {
		case err != nil:
			return "", err
		case b[0] == '\n':
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		line = append(line, b[0])
	}
}

// restoreIfInterrupted makes an interrupt leave the terminal as it is now, until stop is called.
func (i *inputs) restoreIfInterrupted() (stop func()) {
	fd := int(i.terminal.Fd())
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

// Load loads a configuration file for another command. It asks for inputs on a terminal, and says which servers are left out.
func Load(path string, given Inputs, p *cli.Program) (*config.File, error) {
	file, err := newInputs(given, p).first(path)
	if err == nil {
		for _, text := range LeftOut(file, "") {
			p.Errorf("%s", text)
		}
	}
	return file, err
}
