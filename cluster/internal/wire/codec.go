package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
)

// ErrUnknownType is the error for a type that has no name on the wire, and for a name that has no
// type.
var ErrUnknownType = errors.New("the type is not known")

// Refs converts between PIDs and texts that mean the same actor on each member.
type Refs interface {
	// Ref returns the text of a PID, which is not nil. The text must not be empty.
	Ref(*actor.PID) string
	// PID returns the PID of a text, which is not empty. The PID must not be nil.
	PID(ref string) *actor.PID
}

// format is how a type crosses.
type format struct {
	name   string
	encode func(v any, refs Refs) (body []byte, err error) // v is a pointer
	decode func(body []byte, refs Refs) (any, error)       // returns a pointer
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
	add(of, &format{name, func(v any, _ Refs) ([]byte, error) { return marshal(v) }, func(body []byte, _ Refs) (any, error) {
		v := reflect.New(of).Interface()
		return v, unmarshal(body, v)
	}})
}

func register[T any](name string, encode func(*T, Refs) ([]byte, error), decode func([]byte, Refs) (*T, error)) {
	add(reflect.TypeFor[T](), &format{
		name,
		func(v any, refs Refs) ([]byte, error) { return encode(v.(*T), refs) },
		func(body []byte, refs Refs) (any, error) { return decode(body, refs) },
	})
}

// add adds the format of a type.
func add(of reflect.Type, f *format) {
	if byName[f.name] != nil || byType[of] != nil {
		panic(fmt.Sprintf("wire: %q or %v is registered twice", f.name, of)) //nolint:forbidigo // a bug that the first run of a program finds
	}
	byName[f.name], byType[of] = f, f
}

// Encode returns the name of the type of a message, and the message as JSON. The message may be a
// pointer to a struct, or the struct. The error is [ErrUnknownType] or an [*Error]. refs may be nil
// for a message without PIDs.
func Encode(v any, refs Refs) (typ string, body []byte, err error) {
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
		return "", nil, &Error{Type: f.name, Problem: "is a nil pointer"}
	}
	body, err = clusterapi.Guard(func() ([]byte, error) { return f.encode(of.Interface(), refs) })
	if err != nil {
		return "", nil, named(f.name, err)
	}
	return f.name, body, nil
}

// Known reports whether the type of a message has a name on the wire, and the message is no nil pointer.
func Known(v any) bool {
	of := reflect.ValueOf(v)
	return of.Kind() == reflect.Pointer && !of.IsNil() && byType[of.Type().Elem()] != nil
}

// Decode returns a pointer to the message that Encode has encoded. It shares no memory with the
// body. The error is [ErrUnknownType] or an [*Error]. A body may be any bytes: Decode does not
// panic. What it returns must still be validated.
func Decode(typ string, body []byte, refs Refs) (any, error) {
	f := byName[typ]
	if f == nil {
		return nil, fmt.Errorf("%w: %.64q", ErrUnknownType, typ)
	}
	v, err := clusterapi.Guard(func() (any, error) { return f.decode(body, refs) })
	if err != nil {
		return nil, named(f.name, err)
	}
	return v, nil
}

// part is a part of a body that is decoded on its own. It shares the memory of the body. It is nil if the
// part is missing.
type part []byte

// UnmarshalJSON keeps a part as it is.
func (p *part) UnmarshalJSON(data []byte) error {
	*p = data
	return nil
}

// marshal encodes a value. The error is an [*Error] without a type.
func marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, unencoded(v, err)
	}
	return data, nil
}

// unmarshal decodes a value, with all digits of its numbers. The error is an [*Error] without a
// type. Data that is nil leaves the value as it is.
func unmarshal(data []byte, into any) error {
	if data == nil {
		return nil
	}
	if err := parse(data, into); err != nil {
		return err
	}
	return restoreDigits(data, into)
}

// parse decodes a value. The error is as that of unmarshal.
func parse(data []byte, into any) error {
	if clusterapi.ParseJSON(data, into) == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil { // which says what is wrong
		return undecoded(data, into, err)
	}
	return nil
}
