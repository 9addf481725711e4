package schemas

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Resolve prepares a schema, which is a value that marshals to one, for [Validate].
func Resolve(raw any) (*jsonschema.Resolved, error) {
	text, err := json.Marshal(raw)
	var schema jsonschema.Schema
	if err == nil {
		err = json.Unmarshal(text, &schema)
	}
	var resolved *jsonschema.Resolved
	if err == nil {
		resolved, err = schema.Resolve(nil)
	}
	if err == nil {
		err = Check(&schema)
	}
	if err != nil {
		return nil, err
	}
	return resolved, nil
}

// Misfit is an error whose text quotes nothing of the error behind it.
type Misfit struct {
	Text  string
	Cause error
}

func (e *Misfit) Error() string { return e.Text }
func (e *Misfit) Unwrap() error { return e.Cause }

// Validate returns why content does not fit a schema. where says in the error what the content is, and the text quotes no value.
func Validate(schema *jsonschema.Resolved, content []byte, where string) error {
	var instance any
	if err := json.Unmarshal(content, &instance); err != nil {
		return &Misfit{where + ": is not JSON", err}
	}
	if err := CheckValue(instance); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if err := schema.Validate(instance); err != nil {
		return &Misfit{where + violation(err.Error()), err}
	}
	return nil
}

var keyword = regexp.MustCompile(`^[A-Za-z]+`)

// violation says what is wrong with content, from the text of the validator. That text names the schemas on
// the way to the one that does not hold, then its keyword, then the value, which is not repeated here.
func violation(text string) string {
	path, last := "", ""
	for {
		rest, ok := strings.CutPrefix(text, "validating ")
		at, after, found := strings.Cut(rest, ": ")
		if !ok || !found {
			break
		}
		if !strings.HasPrefix(at, "/") { // the root, or a schema with an id
			at = ""
		}
		if under, ok := strings.CutPrefix(at, last); ok {
			path += fields(under)
		}
		last, text = at, after
	}
	name := keyword.FindString(text)
	why := "breaks " + name + " of the schema"
	switch i := strings.LastIndex(text, " has type "); {
	case name == "type" && i >= 0:
		why = "has type " + text[i+len(" has type "):]
	case name == "unexpected":
		why = "has properties that the schema does not allow"
	case name == "required":
		why = strings.TrimPrefix(text, "required: ")
	}
	return path + ": " + why
}

// fields renders a JSON pointer into a schema as a path into its instance.
func fields(pointer string) (path string) {
	segments := strings.Split(pointer, "/")
	for i := 0; i < len(segments); i++ {
		switch segments[i] {
		case "properties":
			if i++; i < len(segments) {
				path += "." + strings.NewReplacer("~1", "/", "~0", "~").Replace(segments[i])
			}
		case "items", "prefixItems", "additionalItems", "unevaluatedItems":
			path += "[]"
		case "additionalProperties", "patternProperties", "unevaluatedProperties":
			path += ".*"
		}
	}
	return path
}
