package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// decode reads a JSON object into targets, pointers by field name. An unknown
// field is an error. Durations are strings such as "1m30s". Errors name the field.
func decode(data []byte, targets map[string]any) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return plainer(data, err)
	}
	if object == nil {
		return errors.New("is null, want an object")
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		target, known := targets[name]
		if !known {
			known := strings.Join(slices.Sorted(maps.Keys(targets)), ", ")
			return named(name, fmt.Errorf("is not a field; there are %s", known))
		}
		if err := decodeField(object[name], target); err != nil {
			return named(name, err)
		}
	}
	return nil
}

func decodeField(data json.RawMessage, target any) error {
	switch target := target.(type) {
	case *time.Duration:
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return errors.New(`want a duration such as "30s"`)
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf(`%q is no duration such as "30s"`, text)
		}
		*target = d
		return nil
	case *map[string]string:
		return decodeMap(data, target)
	}
	if err := json.Unmarshal(data, target); err != nil {
		return plainer(data, err)
	}
	return nil
}

// decodeMap names the entry that is no string.
func decodeMap(data json.RawMessage, target *map[string]string) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return plainer(data, err)
	}
	*target = make(map[string]string, len(raw))
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		var value string
		if err := decodeField(raw[name], &value); err != nil {
			return named(name, err)
		}
		(*target)[name] = value
	}
	return nil
}

// fieldError is an error about a field, which may be nested.
type fieldError struct {
	path string
	err  error
}

func (e *fieldError) Error() string { return e.path + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// named puts a name in front of the path of an error.
func named(name string, err error) error {
	var inner *fieldError
	if errors.As(err, &inner) {
		return &fieldError{name + "." + inner.path, inner.err}
	}
	return &fieldError{name, err}
}

// plainer says what encoding/json means in the words of the one who wrote it.
func plainer(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		want := map[string]string{"string": "a string", "int": "a whole number", "bool": "true or false", "slice": "a list", "map": "an object"}[kind.Type.Kind().String()]
		if want == "" {
			want = kind.Type.String()
		}
		return fmt.Errorf("is of type %s, want %s", strings.Fields(kind.Value)[0], want)
	case errors.As(err, &syntax):
		return fmt.Errorf("is no JSON at column %d: %w", min(int(syntax.Offset), len(data)), syntax)
	}
	return err
}
