package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/pin"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// File is the content of a configuration file.
type File struct {
	// Supervisor has the enabled servers, in the order of their names, and the settings of
	// the object supervisor. It is ready for [supervisor.Start].
	Supervisor supervisor.Config
	// Tools has the tool filters and metadata of each of Supervisor.Servers, in the same
	// order.
	Tools []toolset.Filter
	// Clients says which tools clients of mcpactor serve get, in the order of the file: see [File.Client].
	Clients []Client
	// Shared has the names of the servers with share: their scope is [SharedScope].
	Shared []string
	// OAuth says how to log in, by the names of the servers of which the file says something.
	OAuth map[string]OAuth
	// Store is the path of the file that remembers sessions, for resume.Open. It is empty if
	// the file has no store.
	Store string
	// Inputs has what the file says of its inputs, whether or not a server needs them.
	Inputs []Input
	// Warnings has the fields that have no effect, the servers that get another name, and why servers are left out.
	Warnings []Warning
	// Renamed has the names of the servers that get another name, by those in the file. It is nil if there are none.
	Renamed map[string]string
}

// SharedScope is the scope of a server whose entry has share.
const SharedScope = "shared"

// Client returns the entry of clients for the name that a client gives itself: that with just this name, or else the first pattern in the
// order of the file that matches it, or else one that permits all tools.
func (f *File) Client(name string) Client {
	i := slices.IndexFunc(f.Clients, func(c Client) bool { return c.Name == name })
	if i < 0 {
		i = slices.IndexFunc(f.Clients, func(c Client) bool { return matches(c.Name, name) })
	}
	if i < 0 {
		return Client{}
	}
	return f.Clients[i]
}

// Warning is a note about a field of a file, such as that the field has no effect.
type Warning struct {
	File  string // the path; empty for [Loader.Parse]
	Field string // such as "mcpServers.files.timeout"
	Line  int
	Text  string
	// Server is the name of the server that is left out for this reason. It is empty if this is no reason to leave a server
	// out, also for a field of a server that another warning leaves out.
	Server string
}

// String returns the warning as one line.
func (w Warning) String() string {
	return (&Error{w.File, w.Field, w.Line, errors.New(w.Text)}).Error()
}

// Error is an error in a file. If there are several, [Load] joins them as [errors.Join]
// does. An error never has the value of an environment variable or of a header.
type Error struct {
	File  string // the path; empty for [Loader.Parse]
	Field string // such as "mcpServers.files.args[1]"; empty for the file as a whole
	Line  int    // 0 if the line is unknown
	Err   error
}

// Error returns the file, the line, the field and the text of Err as one line.
func (e *Error) Error() string {
	var text strings.Builder
	switch {
	case e.File != "" && e.Line > 0:
		fmt.Fprintf(&text, "%s:%d: ", e.File, e.Line)
	case e.File != "":
		fmt.Fprintf(&text, "%s: ", e.File)
	case e.Line > 0:
		fmt.Fprintf(&text, "line %d: ", e.Line)
	}
	if e.Field != "" {
		text.WriteString(e.Field + ": ")
	}
	return text.String() + e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Loader reads configuration files. The zero value is ready to use.
type Loader struct {
	// LeaveOut leaves out a server whose entry has an error, with a warning for each error. An error elsewhere is an error of
	// the file: an unknown field beside the servers, or two servers with one name. So is a file without a usable server.
	// Defaults to false, which makes each error one of the file.
	LeaveOut bool
	// LookupEnv returns environment variables. Defaults to [os.LookupEnv].
	LookupEnv func(name string) (value string, ok bool)
	// Variable returns the values of variables that LookupEnv does not know, by the text
	// between the braces: "workspaceFolder", "LIBRECHAT_USER_ID". For ${NAME} it takes precedence over LookupEnv. Load itself knows
	// "userHome", "pathSeparator" and, for a file in a folder .vscode or .cursor,
	// "workspaceFolder". A variable without a value is an error. Defaults to nil, which
	// returns no value.
	Variable func(name string) (value string, ok bool)
	// Input returns the value of ${input:id} in a file of VS Code. It is called once for each
	// input that an enabled server needs, and that Variable does not return for the name
	// "input:id". A server whose input has no value is left out, as with LeaveOut. Defaults to nil, which returns no value.
	Input func(Input) (value string, ok bool)
	// Accept is called for each enabled server whose entry has no error, with what the entry says of how the server is reached: its variables
	// are not replaced. An error is one of the entry. Defaults to nil, which accepts all servers.
	Accept func(server string, is pin.Identity) error
}

// Load reads a file with the zero [Loader].
func Load(path string) (*File, error) { return Loader{}.Load(path) }

// Load reads a file. Relative paths in it are relative to its folder.
func (l Loader) Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(path) == ".toml" {
		return nil, &Error{File: path, Err: errors.New("is TOML: write its servers into a file in JSON or YAML")}
	}
	return l.reader(path).read(data)
}

// Parse reads the content of a file. Relative paths in it are relative to the working
// directory.
func (l Loader) Parse(data []byte) (*File, error) { return l.reader("").read(data) }

// reader returns a reader of the file at a path, which is empty if there is no file.
func (l Loader) reader(path string) *reader {
	if l.LookupEnv == nil {
		l.LookupEnv = os.LookupEnv
	}
	r := &reader{loader: l, name: path, file: &File{OAuth: map[string]OAuth{}}, names: map[string]*node{}, wrong: map[*node][]*node{}, answers: map[string]string{}}
	folder, err := filepath.Abs(filepath.Dir(path))
	if path == "" || err != nil {
		return r
	}
	r.dir = folder
	switch filepath.Base(folder) {
	case ".vscode", ".cursor":
		r.workspace = filepath.Dir(folder)
	case ".gemini":
		r.dollars = expandDollars
	}
	return r
}
