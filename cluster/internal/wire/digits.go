package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// allExact reports whether a float64 has the value of each number in valid JSON.
func allExact(data []byte) bool {
	for i := 0; i < len(data); {
		switch c := data[i]; {
		case c == '"':
			i = afterString(data, i)
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(data) && strings.IndexByte("0123456789+-.eE", data[end]) >= 0 {
				end++
			}
			if !isExact(data[i:end]) {
				return false
			}
			i = end
		default:
			i++
		}
	}
	return true
}

// afterString returns the index behind the string that begins at i.
func afterString(data []byte, i int) int {
	for i++; ; {
		quote := bytes.IndexByte(data[i:], '"')
		if quote < 0 {
			return len(data)
		}
		backslashes := 0
		for backslashes < quote && data[i+quote-1-backslashes] == '\\' {
			backslashes++
		}
		i += quote + 1
		if backslashes%2 == 0 {
			return i
		}
	}
}

// isExact reports whether encoding/json writes a number as this text when it has read it as a
// float64. A number of at most 15 digits always keeps its value.
func isExact(number []byte) bool {
	if len(number) <= 15 && bytes.IndexByte(number, 'e') < 0 && bytes.IndexByte(number, 'E') < 0 {
		return true
	}
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		return false
	}
	text, err := json.Marshal(f)
	return err == nil && bytes.Equal(text, number)
}

// convertNumbers converts each json.Number in the values of type any of a decoded value, as exact does.
func convertNumbers(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		convertNumbers(v.Elem())
	case reflect.Interface:
		if number, is := v.Interface().(json.Number); is {
			v.Set(exact(number))
			return
		}
		convertNumbers(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				convertNumbers(v.Field(i))
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if number, is := entries.Value().Interface().(json.Number); is {
				v.SetMapIndex(entries.Key(), exact(number))
				continue
			}
			convertNumbers(entries.Value())
		}
	case reflect.Slice:
		for i := 0; i < v.Len() && v.Type().Elem().Kind() != reflect.Uint8; i++ {
			convertNumbers(v.Index(i))
		}
	}
}

// exact returns a number as a float64 if that is exact, or else as an int64, a uint64 or a json.Number.
func exact(number json.Number) reflect.Value {
	if isExact([]byte(number)) {
		f, _ := number.Float64()
		return reflect.ValueOf(f)
	}
	if i, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		return reflect.ValueOf(i)
	}
	if u, err := strconv.ParseUint(string(number), 10, 64); err == nil {
		return reflect.ValueOf(u)
	}
	return reflect.ValueOf(number)
}
