// Package definition identifies what a server says about a tool, about a prompt, or for all that it has. Digests are stored by users, so
// they are the same in all versions.
package definition

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/exact"
)

// Text is the canonical JSON of what a digest covers: with sorted members and without white space. It is "" for nothing.
type Text string

// Digest returns "sha256:" and the SHA-256 of the text, or "" for nothing.
func (t Text) Digest() string {
	if t == "" {
		return ""
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(t)))
}

// ToolFields are the fields of a tool that its digest covers, apart from the name, as MCP names them.
var ToolFields = [...]string{"title", "description", "inputSchema", "outputSchema", "annotations"}

// OfTool returns the definition of a tool, and its fields in the order of [ToolFields].
func OfTool(tool *mcp.Tool) (whole Text, fields [len(ToolFields)]Text) {
	members := map[string]json.RawMessage{"name": Encode(tool.Name)}
	for i, value := range [...]any{tool.Title, tool.Description, tool.InputSchema, tool.OutputSchema, annotationsOf(tool.Annotations)} {
		if fields[i] = Of(value); fields[i] != "" {
			members[ToolFields[i]] = json.RawMessage(fields[i])
		}
	}
	return Text(Encode(members)), fields
}

// OfPrompt returns the definition of a prompt: its name, title, description and arguments.
func OfPrompt(prompt *mcp.Prompt) Text {
	type argument struct {
		Name        string `json:"name"`
		Title       string `json:"title,omitempty"`
		Description string `json:"description,omitempty"`
		Required    bool   `json:"required,omitempty"`
	}
	given := struct {
		argument
		Arguments []argument `json:"arguments,omitempty"`
	}{argument: argument{Name: prompt.Name, Title: prompt.Title, Description: prompt.Description}}
	for _, one := range prompt.Arguments {
		if one != nil {
			given.Arguments = append(given.Arguments, argument{one.Name, one.Title, one.Description, one.Required})
		}
	}
	return Of(given)
}

// Of returns a value as canonical JSON, or "" for nothing: null, a text without characters, and what JSON cannot express.
func Of(value any) Text {
	text, err := json.Marshal(value)
	var decoded any
	if err == nil && json.Unmarshal(text, &decoded) != nil { // it has a number that a float64 does not hold
		decoded, err = exact.Value(text)
	}
	if err != nil || decoded == nil || decoded == "" {
		return ""
	}
	return Text(Encode(decoded))
}

// annotationsOf returns the annotations that are given, or nil. The SDK writes them in a form that depends
// on its version.
func annotationsOf(a *mcp.ToolAnnotations) any {
	if a == nil {
		return nil
	}
	given := map[string]any{}
	for name, hint := range map[string]bool{"readOnlyHint": a.ReadOnlyHint, "idempotentHint": a.IdempotentHint} {
		if hint {
			given[name] = true
		}
	}
	for name, hint := range map[string]*bool{"destructiveHint": a.DestructiveHint, "openWorldHint": a.OpenWorldHint} {
		if hint != nil {
			given[name] = *hint
		}
	}
	if a.Title != "" {
		given["title"] = a.Title
	}
	if len(given) == 0 {
		return nil
	}
	return given
}

// Encode returns a value as JSON without escapes for HTML, or null if JSON cannot express it.
func Encode(value any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}
