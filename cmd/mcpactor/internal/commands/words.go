package commands

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
)

// words writes tools in words: what they do, what is known of their effects, their arguments and their result. It makes the
// texts of servers safe for a terminal.
func words(out io.Writer, s cli.Screen, tools []toolEntry) error {
	var text strings.Builder
	for i, tool := range tools {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "%s\n", strings.TrimSpace(s.Paint(heading, cli.Printable(tool.Name))+"  "+cli.Printable(tool.Title)))
		for line := range strings.Lines(tool.Description) {
			fmt.Fprintf(&text, "%s\n", strings.TrimRight("  "+cli.Printable(line), " "))
		}
		if effects := tool.effects(); effects != "" {
			fmt.Fprintf(&text, "  According to its server: %s.\n", effects)
		}
		describeFields(&text, "Arguments", tool.InputSchema)
		if tool.OutputSchema != nil {
			describeFields(&text, "Result", tool.OutputSchema)
		}
	}
	_, err := io.WriteString(out, s.Wrap(text.String(), 2))
	return err
}

// effects says what a tool says about its effects.
func (e *toolEntry) effects() string {
	a := e.Annotations
	if a == nil {
		return ""
	}
	var all []string
	switch {
	case a.ReadOnlyHint:
		all = append(all, "it only reads")
	case a.DestructiveHint != nil && !*a.DestructiveHint:
		all = append(all, "it only adds")
	case a.DestructiveHint != nil:
		all = append(all, "it may overwrite or delete")
	}
	if a.IdempotentHint && !a.ReadOnlyHint {
		all = append(all, "to repeat a call changes nothing more")
	}
	if a.OpenWorldHint != nil && *a.OpenWorldHint {
		all = append(all, "it reaches other systems")
	}
	return strings.Join(all, "; ")
}

// jsonSchema is the part of a JSON schema that is put in words.
type jsonSchema struct {
	Type        any                    `json:"type"`
	Description string                 `json:"description"`
	Format      string                 `json:"format"`
	Enum        []json.RawMessage      `json:"enum"`
	Const       json.RawMessage        `json:"const"`
	Default     json.RawMessage        `json:"default"`
	Minimum     json.RawMessage        `json:"minimum"`
	Maximum     json.RawMessage        `json:"maximum"`
	Items       *jsonSchema            `json:"items"`
	Properties  map[string]*jsonSchema `json:"properties"`
	Required    []string               `json:"required"`
	AnyOf       []*jsonSchema          `json:"anyOf"`
	OneOf       []*jsonSchema          `json:"oneOf"`
}

// maxNested bounds how deep the fields of objects are described.
const maxNested = 4

// describeFields writes the fields of an object under a heading. A schema that cannot be read is written as it is.
func describeFields(out *strings.Builder, heading string, schema any) {
	data, err := json.Marshal(schema)
	var s jsonSchema
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	switch {
	case err != nil:
		fmt.Fprintf(out, "  %s: %s\n", heading, cli.Printable(string(data)))
	case len(s.Properties) == 0:
		fmt.Fprintf(out, "  %s: none are described\n", heading)
	default:
		fmt.Fprintf(out, "  %s:\n", heading)
		s.fields(out, 2)
	}
}

// fields writes a line for each field, the required ones first.
func (s *jsonSchema) fields(out *strings.Builder, depth int) {
	names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		one, other := slices.Contains(s.Required, a), slices.Contains(s.Required, b)
		if one != other {
			if one {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	for _, name := range names {
		field := s.Properties[name]
		if field == nil {
			field = &jsonSchema{}
		}
		line := strings.Repeat("  ", depth) + cli.Printable(name) + ": " + field.kind()
		if slices.Contains(s.Required, name) {
			line += ", required"
		}
		if field.Default != nil {
			line += ", default " + cli.Printable(string(field.Default))
		}
		if about := cli.Printable(field.Description); about != "" {
			line += ". " + about
		}
		out.WriteString(line + "\n")
		inner := field
		if field.Items != nil {
			inner = field.Items
		}
		if depth < maxNested {
			inner.fields(out, depth+1)
		}
	}
}

// kind says what a value is.
func (s *jsonSchema) kind() string {
	switch {
	case s.Const != nil:
		return cli.Printable(string(s.Const))
	case len(s.Enum) > 0:
		return "one of " + joined(s.Enum)
	case len(s.AnyOf)+len(s.OneOf) > 0:
		var kinds []string
		for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
			if one == nil {
				continue
			}
			if kind := one.kind(); !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
		return strings.Join(kinds, " or ")
	}
	kinds := []string{}
	types, many := s.Type.([]any)
	if !many {
		types = []any{s.Type}
	}
	for _, one := range types {
		kinds = append(kinds, s.named(one))
	}
	kind := strings.Join(kinds, " or ")
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		kind += " from " + cli.Printable(string(s.Minimum)) + " to " + cli.Printable(string(s.Maximum))
	case s.Minimum != nil:
		kind += " from " + cli.Printable(string(s.Minimum))
	case s.Maximum != nil:
		kind += " up to " + cli.Printable(string(s.Maximum))
	}
	if s.Format != "" {
		kind += " (" + cli.Printable(s.Format) + ")"
	}
	return kind
}

// named returns a type in words.
func (s *jsonSchema) named(kind any) string {
	switch kind {
	case "string":
		return "text"
	case "integer":
		return "whole number"
	case "boolean":
		return "true or false"
	case "array":
		if s.Items != nil {
			return "list of " + s.Items.kind()
		}
		return "list"
	case "number", "object", "null":
		return kind.(string)
	}
	return anything
}

// anything is a value of which nothing is known.
const anything = "anything"

func joined(values []json.RawMessage) string {
	var all []string
	for _, value := range values {
		all = append(all, cli.Printable(string(value)))
	}
	return strings.Join(all, ", ")
}
