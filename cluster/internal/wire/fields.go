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

// form is the struct in which the fields of a message cross, but for those that it embeds.
type form struct {
	wire   reflect.Type
	encode func(m any, refs Refs) (any, error)           // returns a pointer to such a struct
	decode func(w reflect.Value, refs Refs) (any, error) // returns a pointer to a message
}

// formOf returns the form of a type of messages.
func formOf(of reflect.Type) form {
	switch of {
	case reflect.TypeFor[messages.CallTool]():
		return form{reflect.TypeFor[callTool](), encodeCallTool, decodeCallTool}
	case reflect.TypeFor[messages.Custom]():
		return form{reflect.TypeFor[custom](), encodeCustom, decodeCustom}
	}
	var fields []reflect.StructField
	var at []int
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
		at = append(at, i)
	}
	wire := reflect.StructOf(fields)
	return form{
		wire,
		func(m any, refs Refs) (any, error) { return fieldsFrom(m, wire, at, refs) },
		func(w reflect.Value, refs Refs) (any, error) { return messageFrom(w, of, at, refs) },
	}
}

// fieldsFrom returns a pointer to a struct with fields of a message, which are at these indices. A PID crosses as a text. It is an
// error if a name in a command is not valid UTF-8.
func fieldsFrom(m any, wire reflect.Type, at []int, refs Refs) (any, error) {
	w, pids := reflect.New(wire), pids{refs: refs}
	for i, index := range at {
		from := reflect.ValueOf(m).Elem().Field(index)
		switch from.Type() {
		case reflect.TypeFor[*actor.PID]():
			name, _ := jsonName(wire.Field(i))
			from = reflect.ValueOf(pids.ref(name, from.Interface().(*actor.PID)))
		case reflect.TypeFor[*mcp.ClientCapabilities]():
			var can *capabilities
			if value := from.Interface().(*mcp.ClientCapabilities); value != nil {
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
func messageFrom(w reflect.Value, of reflect.Type, at []int, refs Refs) (any, error) {
	m, pids := reflect.New(of), pids{refs: refs}
	for i, index := range at {
		from, to := w.Field(i), m.Elem().Field(index)
		switch to.Type() {
		case reflect.TypeFor[*actor.PID]():
			name, _ := jsonName(w.Type().Field(i))
			from = reflect.ValueOf(pids.pid(name, from.String()))
		case reflect.TypeFor[*mcp.ClientCapabilities]():
			from = reflect.ValueOf(from.Interface().(*capabilities).decoded())
		}
		to.Set(from)
	}
	return m.Interface(), pids.err
}

// The structs below have the fields that a message crosses with, if these are not those of its type.
type (
	callTool struct {
		Params  *callToolParams `json:"params"`
		Map     bool            `json:"argumentsAreMap,omitempty"`
		Durable bool            `json:"durable,omitempty"`
	}
	callToolParams struct {
		mcp.CallToolParams
		Arguments json.RawMessage `json:"arguments,omitempty"`
	}
	custom struct {
		Name   string          `json:"name"`
		Params json.RawMessage `json:"params,omitempty"`
		Map    bool            `json:"paramsAreMap,omitempty"`
	}
	snapshot struct {
		ID string `json:"id,omitempty"`
		*messages.Snapshot
	}
)

func encodeCallTool(m any, _ Refs) (any, error) {
	call := m.(*messages.CallTool)
	if call.Params == nil {
		return &callTool{Durable: call.Durable}, nil
	}
	arguments, isMap, err := rawOf(call.Params.Arguments)
	w := new(struct { // one allocation for both
		callTool
		params callToolParams
	})
	w.params = callToolParams{*call.Params, arguments}
	w.callTool = callTool{&w.params, isMap, call.Durable}
	return &w.callTool, within("params.arguments", err)
}

func decodeCallTool(w reflect.Value, _ Refs) (any, error) {
	from := w.Addr().Interface().(*callTool)
	m := &messages.CallTool{Durable: from.Durable}
	if from.Params == nil {
		return m, nil
	}
	var err error
	m.Params = &from.Params.CallToolParams
	m.Params.Arguments, err = mapOrRaw(from.Params.Arguments, from.Map)
	return m, within("params.arguments", err)
}

func encodeCustom(m any, _ Refs) (any, error) {
	of := m.(*messages.Custom)
	params, isMap, err := rawOf(of.Params)
	return &custom{of.Name, params, isMap}, within("params", err)
}

func decodeCustom(w reflect.Value, _ Refs) (any, error) {
	from := w.Addr().Interface().(*custom)
	params, err := mapOrRaw(from.Params, from.Map)
	return &messages.Custom{Name: from.Name, Params: params}, within("params", err)
}

// rawOf encodes a value of any type, and says whether it is a map.
func rawOf(v any) (raw json.RawMessage, isMap bool, err error) {
	if v == nil {
		return nil, false, nil
	}
	_, isMap = v.(map[string]any)
	raw, err = marshal(v)
	return raw, isMap, err
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
	m := map[string]any{} // the decoder would make a large one
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
