package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
)

// Error says which message, and which of its fields, cannot be encoded or decoded. Its text quotes
// no value.
type Error struct {
	// Type is the name of the type on the wire.
	Type string
	// Field is the path of the field, such as "fields.params.arguments", or empty.
	Field string
	// Problem says what is wrong with it.
	Problem string
	// Cause is the error behind it, which may quote values, or nil.
	Cause error
}

// Error returns the type, the field and the problem.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Type + ": " + e.Problem
	}
	return e.Type + ": " + e.Field + ": " + e.Problem
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// named returns an error as an [*Error] with the name of a type.
func named(name string, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Problem: "cannot be converted", Cause: err}
		if p := (*clusterapi.Panic)(nil); errors.As(err, &p) {
			e.Problem = "code that converts it panicked"
		}
	}
	e.Type = name
	return e
}

// within puts the field that contains it before the field of an error.
func within(field string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		e.Field = join(field, e.Field)
	}
	return err
}

func join(path, field string) string {
	if path == "" || field == "" {
		return path + field
	}
	if field[0] == '[' {
		return path + field
	}
	return path + "." + field
}

// unencoded returns the error of a value that encoding/json does not encode.
func unencoded(v any, err error) error {
	var inner *Error
	if errors.As(err, &inner) { // a type of this package has named the field
		return inner
	}
	e := &Error{Field: faulty(reflect.ValueOf(v), maxPath), Problem: "cannot be encoded as JSON", Cause: err}
	var unsupported *json.UnsupportedTypeError
	if errors.As(err, &unsupported) {
		e.Problem += fmt.Sprintf(": the type %v is not supported", unsupported.Type)
	}
	return e
}

// maxName bounds a name of a caller in a path, in bytes.
const maxName = 64

// maxPath bounds the depth of the path to what cannot be encoded: a value may contain itself.
const maxPath = 8

// faulty returns the path of what cannot be encoded in a value, with at most depth segments.
func faulty(v reflect.Value, depth int) string {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || marshals(v.Type()) || depth == 0 {
		return ""
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(v.Type()) {
			name, ok := jsonName(field)
			if !ok || field.Anonymous && name == "" {
				continue
			}
			if value, err := v.FieldByIndexErr(field.Index); err == nil && !encodes(value) {
				return join(name, faulty(value, depth-1))
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if !encodes(entries.Value()) {
				return join(fmt.Sprintf("%.*s", maxName, entries.Key()), faulty(entries.Value(), depth-1))
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !encodes(v.Index(i)) {
				return join(fmt.Sprintf("[%d]", i), faulty(v.Index(i), depth-1))
			}
		}
	}
	return ""
}

// encodes reports whether a value can be encoded as JSON.
func encodes(v reflect.Value) bool {
	_, err := clusterapi.Guard(func() ([]byte, error) { return json.Marshal(v.Interface()) })
	return err == nil
}

func marshals(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]())
}

func unmarshals(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// embedded matches the names of embedded structs, which encoding/json puts into paths. All names in
// JSON begin with a small letter.
var embedded = regexp.MustCompile(`\b[A-Z]\w*\.`)

// undecoded returns the error of JSON that does not fit a type.
func undecoded(data []byte, into any, err error) error {
	var inner *Error
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &inner):
		return inner
	case errors.As(err, &syntax) && !json.Valid(data):
		return &Error{Problem: "is not JSON", Cause: err}
	case errors.As(err, &wrong):
		kind, _, _ := strings.Cut(wrong.Value, " ")
		of := wrong.Type.String()
		if wrong.Type.Kind() == reflect.Struct && wrong.Type.Name() == "" {
			of = "struct" // its fields say nothing
		}
		return &Error{Field: embedded.ReplaceAllString(wrong.Field, ""), Problem: fmt.Sprintf("is a JSON %s, and does not fit the Go type %s", kind, of), Cause: err}
	}
	return &Error{Field: misfit(data, reflect.TypeOf(into).Elem()), Problem: "does not fit", Cause: err}
}

// misfit returns the path of what does not fit a type.
func misfit(data []byte, t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var members map[string]json.RawMessage
	if t.Kind() != reflect.Struct || unmarshals(t) || json.Unmarshal(data, &members) != nil {
		return ""
	}
	for _, field := range reflect.VisibleFields(t) {
		name, ok := jsonName(field)
		member, given := members[name]
		if !ok || !given {
			continue
		}
		if json.Unmarshal(member, reflect.New(field.Type).Interface()) != nil {
			return join(name, misfit(member, field.Type))
		}
	}
	return ""
}

// jsonName returns the name of a field in JSON. It is empty for an embedded struct whose fields are
// those of the struct around it. ok is false for a field that is not encoded.
func jsonName(field reflect.StructField) (name string, ok bool) {
	tag := field.Tag.Get("json")
	name, _, _ = strings.Cut(tag, ",")
	if tag == "-" || !field.IsExported() && !field.Anonymous {
		return "", false
	}
	if name == "" && !field.Anonymous {
		name = field.Name
	}
	return name, true
}
