package wire

import (
	"cmp"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// form is the type in which values of another type cross, and how they are converted. The values are addressable.
type form struct {
	wire   reflect.Type
	encode func(from, to reflect.Value) error // to is of the type wire
	decode func(from, to reflect.Value) error // from is
}

// formOf returns the form of the type of a field.
func formOf(t reflect.Type) form {
	switch t {
	case reflect.TypeFor[messages.Header](), reflect.TypeFor[messages.Origin]():
		return structForm(t)
	case reflect.TypeFor[*actor.PID]():
		return converted(encodePID, decodePID)
	case reflect.TypeFor[time.Time]():
		return converted(encodeDeadline, decodeDeadline)
	case reflect.TypeFor[messages.Attributes]():
		return converted(encodeAttributes, decodeAttributes)
	case reflect.TypeFor[*mcp.CallToolParams]():
		return converted(encodeCallTool, decodeCallTool)
	case reflect.TypeFor[*mcp.ClientCapabilities]():
		return converted(encodeCapabilities, decodeCapabilities)
	case reflect.TypeFor[*messages.Introduction]():
		return converted(encodeIntroduction, decodeIntroduction)
	case reflect.TypeFor[any]():
		return converted(encodeValue, decodeValue)
	}
	set := func(from, to reflect.Value) error {
		to.Set(from)
		return nil
	}
	return form{t, set, set}
}

// isForGateways reports whether the fields of an embedded struct cross as those of the struct around it.
func isForGateways(t reflect.Type) bool {
	return t == reflect.TypeFor[messages.PassOn]() || t == reflect.TypeFor[messages.AsSent]()
}

// structForm returns the form of a struct: a struct with the forms of its exported fields.
func structForm(of reflect.Type) form {
	var fields []reflect.StructField
	var forms []form
	var at [][]int
	for _, field := range reflect.VisibleFields(of) {
		if isForGateways(field.Type) || len(field.Index) > 1 && !isForGateways(of.Field(field.Index[0]).Type) || !field.IsExported() {
			continue
		}
		f := formOf(field.Type)
		if field.Tag == "" {
			field.Tag = `json:",omitzero"`
		}
		fields = append(fields, reflect.StructField{Name: field.Name, Type: f.wire, Tag: field.Tag})
		forms, at = append(forms, f), append(at, field.Index)
	}
	return form{
		wire: reflect.StructOf(fields),
		encode: func(from, to reflect.Value) error {
			for i, f := range forms {
				if err := f.encode(from.FieldByIndex(at[i]), to.Field(i)); err != nil {
					return within(fields[i], err)
				}
			}
			return nil
		},
		decode: func(from, to reflect.Value) error {
			for i, f := range forms {
				if err := f.decode(from.Field(i), to.FieldByIndex(at[i])); err != nil {
					return within(fields[i], err)
				}
			}
			return nil
		},
	}
}

// converted returns the form that two functions convert to and from.
func converted[M, W any](encode func(M) (W, error), decode func(W) (M, error)) form {
	return form{
		wire: reflect.TypeFor[W](),
		encode: func(from, to reflect.Value) (err error) {
			*to.Addr().Interface().(*W), err = encode(*from.Addr().Interface().(*M))
			return err
		},
		decode: func(from, to reflect.Value) (err error) {
			*to.Addr().Interface().(*M), err = decode(*from.Addr().Interface().(*W))
			return err
		},
	}
}

// Ref returns the reference as which a PID crosses.
func Ref(pid *actor.PID) string { return pid.Address + "/" + pid.Id }

// PID returns the PID of a reference.
func PID(ref string) *actor.PID {
	address, id, _ := strings.Cut(ref, "/")
	return actor.NewPID(address, id)
}

func encodePID(pid *actor.PID) (string, error) {
	if pid == nil {
		return "", nil
	}
	return Ref(pid), nil
}

func decodePID(ref string) (*actor.PID, error) {
	if ref == "" {
		return nil, nil
	}
	return PID(ref), nil
}

// encodeDeadline returns the time until a deadline, which is negative if it has passed, or 0 if there is none.
func encodeDeadline(deadline time.Time) (time.Duration, error) {
	if deadline.IsZero() {
		return 0, nil
	}
	return cmp.Or(time.Until(deadline), -1), nil
}

// decodeDeadline returns a deadline by the monotonic clock of this machine: no step of a wall clock moves it.
func decodeDeadline(left time.Duration) (time.Time, error) {
	if left == 0 {
		return time.Time{}, nil
	}
	return time.Now().Add(left), nil
}

func encodeAttributes(from messages.Attributes) (map[string]string, error) {
	if from.Len() == 0 {
		return nil, nil
	}
	to := map[string]string{}
	for key, value := range from.All() {
		to[key] = value
	}
	return to, nil
}

func decodeAttributes(from map[string]string) (messages.Attributes, error) {
	return messages.NewAttributes(from), nil
}

// checkUTF8 returns an error if a name in a command is not valid UTF-8. JSON would change it to
// another name, which may be valid. It does not check the parameters, which are sent to a server as
// JSON in any case.
func checkUTF8(v reflect.Value) error {
	const invalid = problem("is not valid UTF-8")
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return invalid
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := checkUTF8(v.Field(i)); err != nil {
				return within(v.Type().Field(i), err)
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if checkUTF8(entries.Key()) != nil || checkUTF8(entries.Value()) != nil {
				return invalid
			}
		}
	}
	return nil
}

// within puts a field before the problem with it.
func within(field reflect.StructField, err error) error {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return problem(cmp.Or(name, field.Name) + ": " + err.Error())
}
