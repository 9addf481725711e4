package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/internal/operations"
	"github.com/mcpactor/mcpactor/messages"
)

var (
	// operationTypes has the types of the operations by their op. A call of a tool has none.
	operationTypes = map[string]reflect.Type{}
	// ops are the values of op.
	ops []string
	// parameterOps has the fields that only some operations take, with these operations.
	parameterOps = map[string][]string{"scopes": {"close_matching"}}
)

func init() {
	hump := regexp.MustCompile(`([a-z])([A-Z])`)
	for op := range operations.All() {
		of := reflect.TypeOf(op).Elem()
		name := strings.ToLower(hump.ReplaceAllString(of.Name(), "${1}_$2"))
		if name == "call_tool" {
			continue
		}
		operationTypes[name] = of
		ops = append(ops, name)
		for _, p := range parametersOf(name, reflect.New(of).Elem()) {
			parameterOps[p.name] = append(parameterOps[p.name], name)
		}
	}
	ops = append(ops, "tools",
		"close_session", "close_scope", "close_server", "close_matching", "close_all", "release_handles", "list_handles", "restart", "forget", "inspect", "cancel")
}

// parameter is a field of an operation that a request has under its name in JSON.
type parameter struct {
	name     string
	optional bool
	value    reflect.Value
}

// withheld are parameters of the SDK that requests do not have: the bridge sets the first two.
var withheld = []string{"inputResponses", "requestState", "context"}

// parametersOf returns the fields of an operation, or of the parameters in it, which it makes. Since a request has
// a field name of its own, the name in an operation is called after the last word of its op.
func parametersOf(op string, v reflect.Value) (all []parameter) {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous, slices.Contains(withheld, name):
			continue
		case name == "params" && value.Kind() == reflect.Pointer:
			value.Set(reflect.New(value.Type().Elem()))
			all = append(all, parametersOf(op, value.Elem())...)
			continue
		case name == "name" && op == "custom":
			name = "method"
		case name == "name":
			name = op[strings.LastIndexByte(op, '_')+1:]
		}
		all = append(all, parameter{name, strings.HasPrefix(options, "omit"), value})
	}
	return all
}

// newOperation returns an operation with what a request has given.
func newOperation(h messages.Header, op string, given map[string]json.RawMessage) (messages.Operation, error) {
	if operationTypes[op] == nil {
		return nil, fieldErr("op", fmt.Errorf("%q is unknown; the operations are %s", op, strings.Join(ops, ", ")))
	}
	v := reflect.New(operationTypes[op])
	for _, p := range parametersOf(op, v.Elem()) {
		if data := given[p.name]; data != nil {
			if err := decodeField(data, p.value.Addr().Interface()); err != nil {
				return nil, fieldErr(p.name, err)
			}
		}
		if p.optional || !p.value.IsZero() {
			continue
		}
		switch p.value.Kind() {
		case reflect.Slice:
			return nil, fieldErr(p.name, errors.New("are missing: give an empty list to set none"))
		case reflect.String, reflect.Pointer, reflect.Map, reflect.Interface:
			return nil, fieldErr(p.name, errors.New("is missing"))
		}
	}
	operation := v.Interface().(messages.Operation)
	*operation.Head() = h
	return operation, nil
}
