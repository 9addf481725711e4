package config

import (
	"errors"
	"fmt"
	"slices"
)

// reader reads one file, once.
type reader struct {
	loader         Loader
	name           string // of the file, in errors
	dir, workspace string

	file    *File
	errs    []error
	entries []*node          // of the servers in file
	names   map[string]*node // of the same, by their names

	opencode bool    // whether {env:VAR} is replaced
	dollars  dollars // what is made of $VAR
	only     *node   // of Gemini CLI: the servers that are allowed, or nil
	without  *node   // of Gemini CLI: the servers that are excluded, or nil
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

// fail reports what is wrong with a value.
func (r *reader) fail(n *node, format string, args ...any) {
	r.errs = append(r.errs, &Error{File: r.name, Field: n.path(), Line: n.line, Err: fmt.Errorf(format, args...)})
}

// failField reports what is wrong with a field that is not there.
func (r *reader) failField(n *node, field, format string, args ...any) {
	r.fail(&node{parent: n, name: field, line: n.line}, format, args...)
}

// warn reports a value that has no effect.
func (r *reader) warn(n *node, format string, args ...any) {
	r.file.Warnings = append(r.file.Warnings, Warning{Field: n.path(), Line: n.line, Text: fmt.Sprintf(format, args...)})
}
