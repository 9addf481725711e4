package commands

import (
	"reflect"

	"github.com/mcpactor/mcpactor/messages"
)

// ContentOf returns a result as the server has sent it, or its field Result, or else all that it has in addition to its receipt.
func ContentOf(result messages.Result) any {
	if raw := result.GetReceipt().Verbatim; raw != nil {
		return raw
	}
	v := reflect.ValueOf(result).Elem()
	all := map[string]any{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Name == "Result" {
			return v.Field(i).Interface()
		}
		if !field.Anonymous {
			all[field.Tag.Get("json")] = v.Field(i).Interface()
		}
	}
	return all
}
