package config

import (
	"errors"
	"fmt"
	"slices"
)

// reader reads one file, once.
type reader struct {
	loader    Loader
	name      string // the path, for errors
	dir       string // the folder of the file; relative paths start there
	workspace string // the workspace folder, or empty

	file    *File
	errs    []*Error
	left    []leftOut         // the errors that cost a server
	lacks   []*Error          // the inputs that the current server lacks
	wrong   map[*node][]*node // the malformed values, by the entry that they are in, or nil
	entries []*node           // the nodes of file.Supervisor.Servers, in the same order
	names   map[string]*node  // the same nodes by the names of the servers
	current *node             // the server that is being read, or nil
	inputs  *node             // the inputs of VS Code, or nil
	answers map[string]string // the values of inputs, by their ids

	opencode bool       // {env:VAR} is supported
	vscode   bool       // numbers in env, and ~ in args
	dollars  dollarMode // how to treat $VAR
	allowed  *node      // the list of allowed servers of Gemini CLI, or nil
	excluded *node      // the list of excluded servers of Gemini CLI, or nil
}

func (r *reader) read(data []byte) (*File, error) {
	root, wrong, err := parse(data)
	if err != nil {
		var wrong *Error
		if errors.As(err, &wrong) {
			wrong.File = r.name
		}
		return nil, err
	}
	r.root(root, wrong)
	r.reportLeft()
	if len(r.errs) > 0 {
		all := make([]error, len(r.errs))
		for i, err := range r.errs {
			all[i] = err
		}
		return nil, errors.Join(all...)
	}
	slices.SortStableFunc(r.file.Warnings, func(a, b Warning) int { return a.Line - b.Line })
	return r.file, nil
}

// leftOut is an error that costs a server.
type leftOut struct {
	server string
	*Error
}

// reportLeft reports the servers that are left out: as errors if no server is left, else as warnings.
func (r *reader) reportLeft() {
	for _, left := range r.left {
		if len(r.file.Supervisor.Servers) == 0 {
			r.errs = append(r.errs, left.Error)
			continue
		}
		text := left.Err.Error() + "; the server is left out"
		r.file.Warnings = append(r.file.Warnings, Warning{File: left.File, Field: left.Field, Line: left.Line, Text: text, Server: left.server})
	}
}

// failMalformed adds the errors of the malformed values in an entry, or of those in none.
func (r *reader) failMalformed(entry *node) {
	for _, n := range r.wrong[entry] {
		r.fail(n, "%w", n.wrong)
	}
}

// fail adds the error of a value.
func (r *reader) fail(n *node, format string, args ...any) {
	r.errs = append(r.errs, r.errorAt(n, format, args...))
}

func (r *reader) errorAt(n *node, format string, args ...any) *Error {
	return &Error{File: r.name, Field: n.path(), Line: n.line, Err: fmt.Errorf(format, args...)}
}

// failField adds the error of a field that is missing.
func (r *reader) failField(n *node, field, format string, args ...any) {
	r.fail(&node{parent: n, name: field, line: n.line}, format, args...)
}

// warn adds the warning of a value.
func (r *reader) warn(n *node, format string, args ...any) {
	r.file.Warnings = append(r.file.Warnings, Warning{File: r.name, Field: n.path(), Line: n.line, Text: fmt.Sprintf(format, args...)})
}
