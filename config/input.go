package config

import "slices"

// Input is an input of a file of VS Code, for which VS Code asks its user.
type Input struct {
	// ID is the name in ${input:ID}.
	ID string
	// Description says what the input is. It may be empty.
	Description string
	// Default is what VS Code proposes, or empty.
	Default string
	// Password is true if the value is secret: do not show it.
	Password bool
	// Options are the values to choose from, or none if any value is allowed.
	Options []string
}

const lacks = "needs the input %q: Loader.Input has to return it"

// input returns the value of an input. It asks once for each.
func (r *reader) input(n *node, id string) string {
	value, known := r.answers[id]
	if !known && r.loader.Input != nil {
		if value, known = r.loader.Input(r.inputOf(id)); known {
			r.answers[id] = value
		}
	}
	switch {
	case known:
	case r.current == nil:
		r.fail(n, lacks, id)
	default:
		r.lacks = append(r.lacks, r.errorAt(n, lacks, id))
	}
	return value
}

// inputOf returns what the file says of an input.
func (r *reader) inputOf(id string) Input {
	if i := slices.IndexFunc(r.file.Inputs, func(in Input) bool { return in.ID == id }); i >= 0 {
		return r.file.Inputs[i]
	}
	return Input{ID: id}
}

// readInputs reads what the file says of its inputs.
func (r *reader) readInputs() {
	if r.inputs == nil {
		return
	}
	for _, item := range r.inputs.items {
		in := Input{ID: textOf(item, "id"), Description: textOf(item, "description"), Default: textOf(item, "default")}
		if in.ID == "" {
			continue
		}
		password := item.field("password")
		in.Password = password != nil && password.text == "true"
		if options := item.field("options"); options != nil {
			for _, option := range options.items {
				if option.kind == isObject {
					in.Options = append(in.Options, textOf(option, "value"))
				} else {
					in.Options = append(in.Options, option.text)
				}
			}
		}
		r.file.Inputs = append(r.file.Inputs, in)
	}
}

// textOf returns a field of an object that is a string, or "".
func textOf(n *node, name string) string {
	if field := n.field(name); field != nil && field.kind == isText {
		return field.text
	}
	return ""
}
