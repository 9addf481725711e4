package config

import (
	"fmt"
	"strings"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// handle returns the fields of one kind of handles by their names in a file. It has each field of [mcpbridge.Handle], which a test
// checks.
func handle(h *mcpbridge.Handle) map[string]any {
	return map[string]any{
		"mint": &h.Mint, "path": &h.Path, "pattern": &h.Pattern, "release": &h.Release, "argument": &h.Argument, "list": &h.List,
		"listed": &h.Listed, "gone": &h.Gone, "full": &h.Full, "max": &h.Max, "idle": &h.Idle, "own": &h.Own, "unique": &h.Unique, "bound": &h.Bound,
	}
}

// handles reads the kinds of handles of a server. The error of a value names its field and line.
func (r *reader) handles(n *node) []mcpbridge.Handle {
	if !r.is(n, isList) {
		return nil
	}
	before := len(r.errs)
	all := make([]mcpbridge.Handle, len(n.items))
	for i, item := range n.items {
		read := len(r.errs)
		r.strict(item, handle(&all[i]))
		if err := all[i].Validate(); err != nil && len(r.errs) == read {
			r.failIn(item, err)
		}
	}
	srv := mcpbridge.Server{Name: "any", Command: "any", Handles: all}
	if err := srv.Validate(); err != nil && len(r.errs) == before { // it is about two kinds
		var i int
		index, wrong, _ := strings.Cut(err.Error(), ".")
		_, _ = fmt.Sscanf(index, "handles[%d]", &i)
		r.failIn(n.items[i], fmt.Errorf("%s", wrong))
	}
	return all
}

// failIn adds an error that begins with the name of the field that is wrong.
func (r *reader) failIn(n *node, err error) {
	name, text, _ := strings.Cut(err.Error(), ": ")
	if field := n.field(name); field != nil {
		r.fail(field, "%s", text)
		return
	}
	r.failField(n, name, "%s", text)
}
