package config

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// is reports whether a value is of a kind. If it is not, is adds an error.
func (r *reader) is(n *node, want kind) bool {
	if n.kind != want {
		r.fail(n, "is %s, want %s", n.kind, want)
	}
	return n.kind == want
}

// fields reads the fields of an object into targets, which are pointers by the names of the
// fields. It calls unknown for each field without a target. It skips a field that is null. A
// duplicate field is an error, because parsers differ in which one they take.
func (r *reader) fields(n *node, targets map[string]any, unknown func(*node)) {
	if !r.is(n, isObject) {
		return
	}
	seen := map[string]bool{}
	for _, field := range n.items {
		if seen[field.name] {
			r.fail(field, "is a duplicate")
			continue
		}
		seen[field.name] = true
		target, known := targets[field.name]
		switch {
		case !known:
			unknown(field)
		case field.kind != isNull:
			r.into(field, target)
		}
	}
}

// arguments are the arguments of a command. The argument after an option such as -c or -lc
// is a script, in which the shell replaces $NAME.
type arguments []string

var scriptOption = regexp.MustCompile(`^-[a-z]*c$`)

// variables are the environment variables of a server. In files of VS Code a value may be a number, or null, which removes a
// variable there, and has no effect here.
type variables map[string]string

// into reads a value into a pointer, and replaces the variables in strings.
func (r *reader) into(n *node, target any) {
	switch target := target.(type) {
	case **node:
		*target = n
	case *string:
		if r.is(n, isText) {
			*target = r.expand(n, n.text, r.dollars)
		}
	case *bool:
		if r.is(n, isBoolean) {
			*target = n.text == "true"
		}
	case *int:
		value, err := strconv.ParseInt(n.text, 0, strconv.IntSize)
		if n.kind != isNumber || err != nil {
			r.fail(n, "is %s, want a whole number", n.kind)
			return
		}
		*target = int(value)
	case *time.Duration:
		value, err := time.ParseDuration(n.text)
		if n.kind != isText || err != nil {
			r.fail(n, `want a duration such as "30s"`)
			return
		}
		*target = value
	case *[]string:
		if !r.is(n, isList) {
			return
		}
		*target = make([]string, len(n.items))
		for i, item := range n.items {
			r.into(item, &(*target)[i])
		}
	case *[]mcpbridge.Bound:
		if !r.is(n, isList) {
			return
		}
		*target = make([]mcpbridge.Bound, len(n.items))
		for i, item := range n.items {
			(*target)[i] = r.bound(item)
		}
	case *[]mcpbridge.Handle:
		*target = r.handles(n)
	case *arguments:
		if !r.is(n, isList) {
			return
		}
		for i, item := range n.items {
			dollars := r.dollars
			if i > 0 && scriptOption.MatchString(n.items[i-1].text) {
				dollars = keepDollars
			}
			if r.is(item, isText) {
				*target = append(*target, r.expand(item, item.text, dollars))
			}
		}
	case *variables:
		*target = make(variables, len(n.items))
		r.fields(n, nil, func(field *node) {
			switch {
			case r.vscode && field.kind == isNull:
				r.warn(field, "has no effect: a server inherits only the variables that programs need, and this may be one of them")
				return
			case r.vscode && field.kind == isNumber:
				if !isPlainNumber(field.text) {
					r.fail(field, "is a number that can be written in several ways: write it as a string")
				}
				(*target)[field.name] = field.text
				return
			}
			var value string
			r.into(field, &value)
			(*target)[field.name] = value
		})
	case *map[string]string:
		*target = make(map[string]string, len(n.items))
		r.fields(n, nil, func(field *node) {
			var value string
			r.into(field, &value)
			(*target)[field.name] = value
		})
	}
}

// isPlainNumber reports whether a number is written as JavaScript writes it, so that its text is certain.
func isPlainNumber(text string) bool {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false
	}
	written, err := json.Marshal(number)
	return err == nil && string(written) == text
}

// value returns a value as encoding/json decodes it, with its variables replaced. An integer
// that a float64 cannot represent is an int64.
func (r *reader) value(n *node, dollars dollarMode) any {
	switch n.kind {
	case isObject:
		object := make(map[string]any, len(n.items))
		r.fields(n, nil, func(field *node) { object[field.name] = r.value(field, dollars) })
		return object
	case isList:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = r.value(item, dollars)
		}
		return list
	case isText:
		return r.expand(n, n.text, dollars)
	case isBoolean:
		return n.text == "true"
	case isNumber:
		if whole, err := strconv.ParseInt(n.text, 0, 64); err == nil {
			if int64(float64(whole)) != whole {
				return whole
			}
			return float64(whole)
		}
		number, err := strconv.ParseFloat(n.text, 64)
		if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
			r.fail(n, "is not a finite number, as JSON requires")
		}
		return number
	}
	return nil
}
