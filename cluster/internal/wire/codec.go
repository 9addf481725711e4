package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// ErrUnknownType is the error for a type that has no name on the wire, and for a name that has no
// type.
var ErrUnknownType = errors.New("the type is not known")

// format is how a type crosses.
type format struct {
	name   string
	encode func(v any) (body []byte, err error) // v is a pointer
	decode func(body []byte) (any, error)       // returns a pointer
}

// The formats, which init functions fill, and nothing changes later.
var (
	byName = map[string]*format{}
	byType = map[reflect.Type]*format{}
)

// Register gives a name to a type that crosses as encoding/json encodes it. It panics if the name
// or the type is taken. It must only be called by init functions.
func Register[T any](name string) { plain(name, reflect.TypeFor[T]()) }

// plain is Register.
func plain(name string, of reflect.Type) {
	add(of, &format{name, func(v any) ([]byte, error) { return marshal(v) }, func(body []byte) (any, error) {
		v := reflect.New(of).Interface()
		return v, unmarshal(body, v)
	}})
}

// formed is plain for a type that crosses in a form of its fields. It is an error if a name in a command is not valid UTF-8.
func formed(name string, of reflect.Type) {
	whole, named := structForm(of), reflect.PointerTo(of).Implements(reflect.TypeFor[messages.Command]())
	add(of, &format{name, func(v any) ([]byte, error) {
		w := reflect.New(whole.wire)
		if err := whole.encode(reflect.ValueOf(v).Elem(), w.Elem()); err != nil {
			return nil, err
		}
		if named {
			if err := checkUTF8(w.Elem()); err != nil {
				return nil, err
			}
		}
		return marshal(w.Interface())
	}, func(body []byte) (any, error) {
		w, v := reflect.New(whole.wire), reflect.New(of)
		if err := unmarshal(body, w.Interface()); err != nil {
			return nil, err
		}
		return v.Interface(), whole.decode(w.Elem(), v.Elem())
	}})
}

// add adds the format of a type.
func add(of reflect.Type, f *format) {
	if byName[f.name] != nil || byType[of] != nil {
		panic(fmt.Sprintf("wire: %q or %v is registered twice", f.name, of)) //nolint:forbidigo // a bug that the first run of a program finds
	}
	byName[f.name], byType[of] = f, f
}

// Encode returns the name of the type of a message, and the message as JSON. The message may be a
// pointer to a struct, or the struct. The text of the error quotes no value.
func Encode(v any) (typ string, body []byte, err error) {
	of := reflect.ValueOf(v)
	if of.IsValid() && of.Kind() != reflect.Pointer {
		to := reflect.New(of.Type())
		to.Elem().Set(of)
		of = to
	}
	if !of.IsValid() || byType[of.Type().Elem()] == nil {
		return "", nil, fmt.Errorf("%w: %T", ErrUnknownType, v)
	}
	f := byType[of.Type().Elem()]
	if of.IsNil() {
		return "", nil, f.failed(problem("is a nil pointer"))
	}
	body, err = clusterapi.Guard(func() ([]byte, error) { return f.encode(of.Interface()) })
	if err != nil {
		return "", nil, f.failed(err)
	}
	return f.name, body, nil
}

// Known reports whether the type of a message has a name on the wire, and the message is no nil pointer.
func Known(v any) bool {
	of := reflect.ValueOf(v)
	return of.Kind() == reflect.Pointer && !of.IsNil() && byType[of.Type().Elem()] != nil
}

// Decode returns a pointer to the message that Encode has encoded. It shares no memory with the
// body. The text of the error quotes no value. A body may be any bytes: Decode does not
// panic. What it returns must still be validated.
func Decode(typ string, body []byte) (any, error) {
	f := byName[typ]
	if f == nil {
		return nil, fmt.Errorf("%w: %.64q", ErrUnknownType, typ)
	}
	v, err := clusterapi.Guard(func() (any, error) { return f.decode(body) })
	if err != nil {
		return nil, f.failed(err)
	}
	return v, nil
}

// problem says what is wrong with a message, or with one of its fields. It quotes no value.
type problem string

// Error returns the text.
func (p problem) Error() string { return string(p) }

// failed returns an error with the name of the type. An error that is no problem may quote values.
func (f *format) failed(err error) error {
	var what problem
	var panicked *clusterapi.Panic
	switch {
	case errors.As(err, &what):
	case errors.As(err, &panicked):
		what = "code that converts it panicked"
	default:
		what = "cannot be converted"
	}
	return fmt.Errorf("%s: %w", f.name, what)
}

// marshal encodes a value. The error is a problem.
func marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, unencoded(err)
	}
	return data, nil
}

// unencoded returns the problem of a value that encoding/json does not encode.
func unencoded(err error) error {
	what := problem("cannot be encoded as JSON")
	if unsupported := (*json.UnsupportedTypeError)(nil); errors.As(err, &unsupported) {
		what += problem(fmt.Sprintf(": the type %v is not supported", unsupported.Type))
	}
	return what
}

// unmarshal decodes a value, with all digits of its numbers. Such numbers are rare, and encoding/json is slower. The error is
// a problem.
func unmarshal(data []byte, into any) error {
	if allExact(data) {
		return parse(data, into)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(into) != nil {
		return undecoded(data, into)
	}
	convertNumbers(reflect.ValueOf(into).Elem())
	return nil
}

// parse decodes a value. The error is a problem.
func parse(data []byte, into any) error {
	if clusterapi.ParseJSON(data, into) == nil {
		return nil
	}
	if json.Unmarshal(data, into) != nil {
		return undecoded(data, into)
	}
	return nil
}

// undecoded returns the problem of JSON that does not fit the type of a value.
func undecoded(data []byte, into any) error {
	if !json.Valid(data) {
		return problem("is not JSON")
	}
	path, _, _ := clusterapi.FindMismatch(data, reflect.TypeOf(into))
	return problem(strings.TrimSpace(strings.TrimPrefix(path, ".") + " does not fit its type"))
}
