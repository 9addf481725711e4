// Package exact decodes JSON without changing a number. A number that a float64 holds becomes a float64, as with
// encoding/json, and any other one a [json.Number]. A float64 holds a number if it has the same decimal digits when it is
// encoded again: 0.1 and 1.0, but not 2^53+1 or 1e400.
package exact

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// Value decodes a JSON value.
func Value(raw []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return plain(value), err
}

// plain replaces the numbers in a value that a float64 holds.
func plain(value any) any {
	switch value := value.(type) {
	case json.Number:
		if number, held := Float64(string(value)); held {
			return number
		}
	case []any:
		for i, one := range value {
			value[i] = plain(one)
		}
	case map[string]any:
		for name, one := range value {
			value[name] = plain(one)
		}
	}
	return value
}

// Float64 returns a number as a float64, and whether that is the same number.
func Float64(text string) (number float64, same bool) {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, false
	}
	digits, exponent := decimal(text)
	again, its := decimal(strconv.FormatFloat(number, 'e', -1, 64))
	return number, digits == again && exponent == its
}

// decimal returns the digits of a number without zeros around them, and the power of ten of the last one.
func decimal(text string) (digits string, exponent int) {
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	exponent, _ = strconv.Atoi(power)
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	all := strings.TrimLeft(whole+fraction, "0")
	if digits = strings.TrimRight(all, "0"); digits == "" {
		return "", 0
	}
	return digits, exponent - len(fraction) + len(all) - len(digits)
}

// maxDigits is how many digits a float64 always holds.
const maxDigits = 15

// IsNeeded reports whether JSON may have a number that a float64 does not hold, but that a decoder accepts. It inspects
// only every 16th byte. Digits inside a string may make it return true.
func IsNeeded(raw []byte) bool {
	for at := maxDigits; at < len(raw); at += maxDigits + 1 { // a longer number has one of these bytes
		if !isDigit(raw[at]) {
			continue
		}
		first, last := at, at
		for first > 0 && isDigit(raw[first-1]) {
			first--
		}
		for last < len(raw)-1 && isDigit(raw[last+1]) {
			last++
		}
		if last-first >= maxDigits {
			return true
		}
	}
	return mayBeTiny(raw)
}

// isDigit also takes a point for a digit.
func isDigit(c byte) bool { return c >= '0' && c <= '9' || c == '.' }

// mayBeTiny reports whether there is a number with a negative exponent of three digits.
func mayBeTiny(raw []byte) bool {
	for {
		before, after, found := bytes.Cut(raw, []byte("-"))
		if !found {
			return false
		}
		if n := len(before); n > 1 && (before[n-1] == 'e' || before[n-1] == 'E') && len(after) > 2 && isDigit(after[0]) && isDigit(after[1]) && isDigit(after[2]) {
			return true
		}
		raw = after
	}
}

// Decodable returns JSON with 0 in place of each number that is too large for a float64, which a decoder refuses.
func Decodable(raw []byte) []byte {
	var decodable []byte
	done := 0
	for at := 0; at < len(raw); at++ {
		switch c := raw[at]; {
		case c == '"':
			for at++; at < len(raw) && raw[at] != '"'; at++ {
				if raw[at] == '\\' {
					at++
				}
			}
		case c == '-' || isDigit(c):
			end := len(raw) - len(bytes.TrimLeft(raw[at:], "0123456789.eE+-"))
			if _, err := strconv.ParseFloat(string(raw[at:end]), 64); err != nil {
				decodable, done = append(append(decodable, raw[done:at]...), '0'), end
			}
			at = end - 1
		}
	}
	return append(decodable, raw[done:]...)
}

// Restore replaces each value of type any, in a value that was decoded from raw, with what [Value] decodes there.
func Restore(value any, raw []byte) error {
	from, err := Value(raw)
	restore(reflect.ValueOf(value), from)
	return err
}

func restore(v reflect.Value, from any) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			restore(v.Elem(), from)
		}
	case reflect.Interface:
		switch {
		case v.Type().NumMethod() > 0:
			restore(v.Elem(), from)
		case from != nil && !v.IsNil():
			v.Set(reflect.ValueOf(from))
		}
	case reflect.Map:
		if object, is := from.(map[string]any); is && v.Type().Elem() == reflect.TypeFor[any]() && !v.IsNil() {
			v.Set(reflect.ValueOf(object).Convert(v.Type()))
		}
	case reflect.Slice:
		list, _ := from.([]any)
		for i := range min(v.Len(), len(list)) {
			restore(v.Index(i), list[i])
		}
	case reflect.Struct:
		object, _ := from.(map[string]any)
		for i := range v.NumField() {
			switch field := v.Type().Field(i); {
			case !field.IsExported():
			case field.Anonymous && field.Tag == "":
				restore(v.Field(i), from)
			default:
				restore(v.Field(i), object[nameOf(field)])
			}
		}
	}
}

// nameOf returns the name of a field in JSON. The contents of the SDK have no tags.
func nameOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case name != "":
		return name
	case field.Name == "Meta":
		return "_meta"
	}
	return strings.ToLower(field.Name[:1]) + field.Name[1:]
}
