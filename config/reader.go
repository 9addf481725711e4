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
	errs    []error
	entries []*node           // the nodes of file.Supervisor.Servers, in the same order
	names   map[string]*node  // the same nodes by the names of the servers
	current *node             // the server that is being read, or nil
	inputs  *node             // the inputs of VS Code, or nil
	answers map[string]string // the values of inputs, by their ids
	lacking []lack            // the inputs that servers lack, which are left out

	opencode bool       // {env:VAR} is supported
	dollars  dollarMode // how to treat $VAR
	allowed  *node      // the list of allowed servers of Gemini CLI, or nil
	excluded *node      // the list of excluded servers of Gemini CLI, or nil
}

func (r *reader) read(data []byte) (*File, error) {
	root, err := parse(data)
	if err != nil {
		var wrong *Error
		if errors.As(err, &wrong) {
			wrong.File = r.name
		}
		return nil, err
	}
	r.root(root)
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	slices.SortStableFunc(r.file.Warnings, func(a, b Warning) int { return a.Line - b.Line })
	return r.file, nil
}

// fail adds the error of a value.
func (r *reader) fail(n *node, format string, args ...any) {
	r.errs = append(r.errs, &Error{File: r.name, Field: n.path(), Line: n.line, Err: fmt.Errorf(format, args...)})
}

// failField adds the error of a field that is missing.
func (r *reader) failField(n *node, field, format string, args ...any) {
	r.fail(&node{parent: n, name: field, line: n.line}, format, args...)
}

// warn adds the warning of a value.
func (r *reader) warn(n *node, format string, args ...any) {
	r.file.Warnings = append(r.file.Warnings, Warning{Field: n.path(), Line: n.line, Text: fmt.Sprintf(format, args...)})
}
