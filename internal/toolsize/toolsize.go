// Package toolsize says how much of a model's context the definition of a tool takes.
package toolsize

import (
	"bytes"
	"encoding/json"
)

// bytesPerToken is how many bytes of a definition make a token. Models differ: the number of tokens is an estimate.
const bytesPerToken = 4

// Of returns the bytes of what a model gets of a tool: of its name, description and input schema, as compact JSON. A client does not send
// the title, the output schema, the annotations and the metadata on to its model. It returns 0 if the schema is no JSON.
func Of(name, description string, inputSchema any) int {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		InputSchema any    `json:"inputSchema,omitempty"`
	}{name, description, inputSchema})
	if err != nil {
		return 0
	}
	return out.Len() - len("\n")
}

// Tokens returns about how many tokens bytes of definitions are.
func Tokens(bytes int) int { return bytes / bytesPerToken }
