// Package mismatch finds the value in JSON that does not fit a Go type. The errors of encoding/json name it, but Go 1.27 does so
// in another way than Go before, and also by the keys of maps, which are data.
package mismatch

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Find returns the first value, by index and by name, in JSON that encoding/json does not decode into a type, and the type
// that it should have. The path to it has ".name" for a field of a struct, ".*" for a value of a map, and "[]" for an
// element. What decodes itself is not searched.
func Find(data []byte, of reflect.Type) (path string, value []byte, want reflect.Type) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	step, inner, innerOf := part(data, of)
	if inner == nil {
		return "", bytes.TrimSpace(data), of
	}
	path, value, want = Find(inner, innerOf)
	return step + path, value, want
}

var decoder = reflect.TypeFor[json.Unmarshaler]()

// part returns the first part of a value that does not fit its type, or nil.
func part(data []byte, of reflect.Type) (step string, value []byte, want reflect.Type) {
	if reflect.PointerTo(of).Implements(decoder) {
		return "", nil, nil
	}
	switch of.Kind() {
	case reflect.Slice, reflect.Array:
		var elements []json.RawMessage
		json.Unmarshal(data, &elements) //nolint:errcheck // then it is no array, and has no parts
		for _, element := range elements {
			if !fits(element, of.Elem()) {
				return "[]", element, of.Elem()
			}
		}
	case reflect.Map:
		members := membersOf(data)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if !fits(members[name], of.Elem()) {
				return ".*", members[name], of.Elem()
			}
		}
	case reflect.Struct:
		members := membersOf(data)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			alone, _ := json.Marshal(map[string]json.RawMessage{name: members[name]}) // it was JSON
			if field, its := fieldOf(of, name); its != nil && !fits(alone, of) {
				return "." + field, members[name], its
			}
		}
	}
	return "", nil, nil
}

// fits reports whether JSON can be decoded into a type.
func fits(data []byte, of reflect.Type) bool {
	return json.Unmarshal(data, reflect.New(of).Interface()) == nil
}

// membersOf returns the members of an object. What is no object has none.
func membersOf(data []byte) (members map[string]json.RawMessage) {
	json.Unmarshal(data, &members) //nolint:errcheck // as said
	return members
}

// fieldOf returns the name and the type of the field for a member of an object, or nil. The member may differ in case.
func fieldOf(of reflect.Type, member string) (name string, its reflect.Type) {
	for _, f := range reflect.VisibleFields(of) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" {
			key = f.Name
		}
		if key == member {
			return key, f.Type
		}
		if its == nil && strings.EqualFold(key, member) {
			name, its = key, f.Type
		}
	}
	return name, its
}
