package wire

import (
	"encoding/json"
	"reflect"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// capabilities are the form in which the capabilities of a client cross: the SDK leaves RootsV2 out of theirs.
type capabilities struct {
	*mcp.ClientCapabilities
	Roots *mcp.RootCapabilities `json:"roots,omitempty"`
}

// fieldsOf returns a struct with the fields of a message but for those that it embeds. A PID crosses
// as a text.
func fieldsOf(of reflect.Type) reflect.Type {
	var fields []reflect.StructField
	for i := range of.NumField() {
		field := of.Field(i)
		if field.Anonymous {
			continue
		}
		switch field.Type {
		case reflect.TypeFor[*actor.PID]():
			field.Type = reflect.TypeFor[string]()
		case reflect.TypeFor[*mcp.ClientCapabilities]():
			field.Type = reflect.TypeFor[*capabilities]()
		}
		fields = append(fields, reflect.StructField{Name: field.Name, Type: field.Type, Tag: field.Tag})
	}
	return reflect.StructOf(fields)
}

// fieldsFrom returns a pointer to a struct with fields of a message. It is an error if a name in a command
// is not valid UTF-8.
func fieldsFrom(m any, fields reflect.Type, refs Refs) (any, error) {
	w, pids := reflect.New(fields), pids{refs: refs}
	for i := range fields.NumField() {
		field := fields.Field(i)
		from := reflect.ValueOf(m).Elem().FieldByName(field.Name)
		switch value := from.Interface().(type) {
		case *actor.PID:
			name, _ := jsonName(field)
			from = reflect.ValueOf(pids.ref(name, value))
		case *mcp.ClientCapabilities:
			var can *capabilities
			if value != nil {
				can = &capabilities{value, value.RootsV2}
			}
			from = reflect.ValueOf(can)
		}
		w.Elem().Field(i).Set(from)
	}
	if _, named := m.(messages.Command); named && pids.err == nil {
		return w.Interface(), checkUTF8(w.Elem())
	}
	return w.Interface(), pids.err
}

// decoded returns the capabilities as the SDK has them, or nil.
func (c *capabilities) decoded() *mcp.ClientCapabilities {
	if c == nil {
		return nil
	}
	can := new(mcp.ClientCapabilities)
	if c.ClientCapabilities != nil { // with roots alone, nothing of it was decoded
		can = c.ClientCapabilities
	}
	if can.RootsV2 = c.Roots; c.Roots != nil {
		can.Roots = *c.Roots //nolint:staticcheck // the SDK still reads the deprecated field, too
	}
	return can
}

// messageFrom returns a pointer to a message with these fields.
func messageFrom(w reflect.Value, of reflect.Type, refs Refs) (any, error) {
	m, pids := reflect.New(of), pids{refs: refs}
	for i := range w.NumField() {
		field, from := w.Type().Field(i), w.Field(i)
		to := m.Elem().FieldByName(field.Name)
		switch to.Interface().(type) {
		case *actor.PID:
			name, _ := jsonName(field)
			from = reflect.ValueOf(pids.pid(name, from.String()))
		case *mcp.ClientCapabilities:
			from = reflect.ValueOf(from.Interface().(*capabilities).decoded())
		}
		to.Set(from)
	}
	return m.Interface(), pids.err
}

// HasParams reports whether an operation that is [Known] has parameters of any size: a field that is neither a
// string nor a flag.
func HasParams(op messages.Operation) bool {
	of := reflect.TypeOf(op).Elem()
	for i := range of.NumField() {
		field := of.Field(i)
		if kind := field.Type.Kind(); !field.Anonymous && kind != reflect.String && kind != reflect.Bool {
			return true
		}
	}
	return false
}

// The structs below have the fields that a message crosses with, if these are not those of its type.
type (
	callTool struct {
		Params  *mcp.CallToolParams `json:"params"`
		Durable bool                `json:"durable,omitempty"`
	}
	custom struct {
		Name   string `json:"name"`
		Params any    `json:"params"`
	}
	snapshot struct {
		ID string `json:"id,omitempty"`
		*messages.Snapshot
	}
)

// MarshalJSON encodes the parameters, and whether the arguments are a map.
func (m *callTool) MarshalJSON() ([]byte, error) {
	to := struct {
		Params *mcp.CallToolParams `json:"params"`
		Map    bool                `json:"argumentsAreMap,omitempty"`

		Durable bool `json:"durable,omitempty"`
	}{Params: m.Params, Durable: m.Durable}
	if m.Params != nil {
		to.Map = isMap(m.Params.Arguments)
	}
	data, err := marshal(to)
	return data, within("fields", err)
}

// UnmarshalJSON decodes what MarshalJSON has encoded.
func (m *callTool) UnmarshalJSON(data []byte) error {
	var from struct {
		Params *struct {
			mcp.CallToolParams
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
		Map     bool `json:"argumentsAreMap"`
		Durable bool `json:"durable"`
	}
	if err := unmarshal(data, &from); err != nil || from.Params == nil {
		return err
	}
	m.Durable = from.Durable
	m.Params = &from.Params.CallToolParams
	var err error
	m.Params.Arguments, err = mapOrRaw(from.Params.Arguments, from.Map)
	return within("params.arguments", err)
}

// MarshalJSON encodes the parameters, and whether they are a map.
func (m *custom) MarshalJSON() ([]byte, error) {
	data, err := marshal(struct {
		Name   string `json:"name"`
		Params any    `json:"params,omitempty"`
		Map    bool   `json:"paramsAreMap,omitempty"`
	}{m.Name, m.Params, isMap(m.Params)})
	return data, within("fields", err)
}

// UnmarshalJSON decodes what MarshalJSON has encoded.
func (m *custom) UnmarshalJSON(data []byte) error {
	var from struct {
		Name   string          `json:"name"`
		Params json.RawMessage `json:"params"`
		Map    bool            `json:"paramsAreMap"`
	}
	err := unmarshal(data, &from)
	if err == nil {
		m.Name = from.Name
		m.Params, err = mapOrRaw(from.Params, from.Map)
		err = within("params", err)
	}
	return err
}

func isMap(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// mapOrRaw returns a value that is nil, a map[string]any, or a json.RawMessage: interceptors may
// look at it.
func mapOrRaw(data json.RawMessage, isMap bool) (any, error) {
	switch {
	case data == nil:
		return nil, nil
	case !isMap:
		return data, nil
	}
	var m map[string]any
	if allExact(data) {
		err := unmarshal(data, &m)
		return m, err
	}
	if err := decodeNumbers(data, &m); err != nil { // one may be too large for a float64
		return nil, undecoded(data, &m, err)
	}
	withDigits(m)
	return m, nil
}
