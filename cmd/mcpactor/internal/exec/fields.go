package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// decodeFields decodes the fields of a JSON object into targets, which are pointers by the
// names of the fields. An unknown field is an error. A duration is a string such as
// "1m30s". Errors name the field.
func decodeFields(data []byte, targets map[string]any) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return readable(data, err)
	}
	if object == nil {
		return errors.New("is null, want an object")
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		target, known := targets[name]
		if !known {
			known := strings.Join(slices.Sorted(maps.Keys(targets)), ", ")
			return fieldErr(name, fmt.Errorf("is not a field; the fields are %s", known))
		}
		if err := decodeField(object[name], target); err != nil {
			return fieldErr(name, err)
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
			return fmt.Errorf(`%q is not a duration such as "30s"`, text)
		}
		*target = d
		return nil
	case *map[string]string:
		return decodeStrings(data, target)
	case *any: // it may be any JSON, with all digits
		*target = data
		return nil
	}
	if err := json.Unmarshal(data, target); err != nil {
		return readable(data, err)
	}
	return nil
}

// decodeStrings decodes an object of strings. Its errors name the entry.
func decodeStrings(data json.RawMessage, target *map[string]string) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return readable(data, err)
	}
	*target = make(map[string]string, len(raw))
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		var value string
		if err := decodeField(raw[name], &value); err != nil {
			return fieldErr(name, err)
		}
		(*target)[name] = value
	}
	return nil
}

// fieldError is the error of one field. The path of a nested field has dots.
type fieldError struct {
	path string
	err  error
}

func (e *fieldError) Error() string { return e.path + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// fieldErr returns the error of a field, or of a field inside it.
func fieldErr(name string, err error) error {
	var inner *fieldError
	if errors.As(err, &inner) {
		return &fieldError{name + "." + inner.path, inner.err}
	}
	return &fieldError{name, err}
}

// readable translates an error of encoding/json for the author of the data.
func readable(data []byte, err error) error {
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
		return fmt.Errorf("is not valid JSON at column %d: %w", min(int(syntax.Offset), len(data)), syntax)
	}
	return err
}
