package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// File is what a configuration file says.
type File struct {
	// Supervisor has the servers that are not disabled, in the order of their names, and
	// the settings of the object supervisor. It is ready for [supervisor.Start].
	Supervisor supervisor.Config
	// Tools say which tools of these servers are wanted: one for each of
	// Supervisor.Servers, in the same order.
	Tools []toolset.Server
	// Store is the path of the file that remembers sessions, for resume.Open. Empty is
	// none.
	Store string
	// Warnings are the fields that have no effect: those of other clients.
	Warnings []Warning
}

// Warning is a field of a file that has no effect.
type Warning struct {
	Field string // such as "mcpServers.files.timeout"
	Line  int
	Text  string
}

// String returns the warning as one line.
func (w Warning) String() string { return fmt.Sprintf("line %d: %s: %s", w.Line, w.Field, w.Text) }

// Error is what is wrong with a file. [Load] joins them, if there are several, as
// [errors.Join] does. None has the value of an environment variable or of a header.
type Error struct {
	File  string // empty if there is none
	Field string // such as "mcpServers.files.args[1]"; empty for the file as a whole
	Line  int    // 0 if it is not known
	Err   error
}

// Error returns file, line, field and what is wrong, as one line.
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

// Loader reads configuration files. Its zero value is useful.
type Loader struct {
	// LookupEnv finds environment variables. Defaults to [os.LookupEnv].
	LookupEnv func(name string) (value string, ok bool)
	// Variable answers what is no environment variable, by what stands between the
	// braces: "input:api-key" for the inputs of VS Code, "workspaceFolder",
	// "LIBRECHAT_USER_ID". It is asked first. What nobody answers is an error. Defaults
	// to nil: only "userHome" and "pathSeparator" are known, and "workspaceFolder" of a file
	// in a folder .vscode or .cursor.
	Variable func(name string) (value string, ok bool)
}

// Load reads a file with the zero [Loader].
func Load(path string) (*File, error) { return Loader{}.Load(path) }

// Load reads a file. Relative paths in it are relative to its folder.
func (l Loader) Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := l.reader(path)
	if folder, err := filepath.Abs(filepath.Dir(path)); err == nil {
		r.dir = folder
		if base := filepath.Base(folder); base == ".vscode" || base == ".cursor" {
			r.workspace = filepath.Dir(folder)
		}
	}
	return r.read(data)
}

// Parse reads the content of a file. Relative paths in it are relative to the working
// directory.
func (l Loader) Parse(data []byte) (*File, error) { return l.reader("").read(data) }

func (l Loader) reader(name string) *reader {
	if l.LookupEnv == nil {
		l.LookupEnv = os.LookupEnv
	}
	return &reader{loader: l, name: name, file: &File{}, names: map[string]*node{}}
}
