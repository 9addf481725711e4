package rank

import (
	"encoding/json"
	"strings"
)

// Tool is what is known of a tool of a server.
type Tool struct {
	Name, Server, Title, Description string
	// Schema is the JSON schema of the arguments. It may be missing.
	Schema json.RawMessage
}

// Document returns the document by which the tool is found.
func (t Tool) Document() Document {
	document := Document{{t.Name, 3}, {t.Server, 1}, {t.Description, 1}, {parameters(t.Schema), 0.2}}
	if t.Title != t.Name {
		document = append(document, Field{t.Title, 2})
	}
	return document
}

// parameters returns the names and descriptions of the properties that a schema has at its top level.
func parameters(schema json.RawMessage) string {
	var object struct{ Properties map[string]any }
	if json.Unmarshal(schema, &object) != nil {
		return ""
	}
	var b strings.Builder
	for name, property := range object.Properties {
		b.WriteString(name + "\n")
		if property, ok := property.(map[string]any); ok {
			description, _ := property["description"].(string)
			b.WriteString(description + "\n")
		}
	}
	return b.String()
}
