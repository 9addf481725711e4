package toolset

import (
	"encoding/json"

	"github.com/mcpactor/mcpactor/internal/definition"
)

// OpenAIChat returns the definitions of all tools for the field "tools" of OpenAI's
// Chat Completions API and of compatible APIs: one JSON object for each tool.
func (s *Set) OpenAIChat() []json.RawMessage {
	return s.define(func(t *Tool) any {
		return struct {
			Type     string   `json:"type"`
			Function function `json:"function"`
		}{"function", functionOf(t)}
	})
}

// OpenAIResponses returns the definitions of all tools for the field "tools" of
// OpenAI's Responses API: one JSON object for each tool. They set "strict" to false: it
// defaults to true, and most schemas of MCP servers do not meet its rules.
func (s *Set) OpenAIResponses() []json.RawMessage {
	return s.define(func(t *Tool) any {
		return struct {
			Type string `json:"type"`
			function
			Strict bool `json:"strict"`
		}{"function", functionOf(t), false}
	})
}

// Anthropic returns the definitions of all tools for the field "tools" of Anthropic's
// Messages API: one JSON object for each tool.
func (s *Set) Anthropic() []json.RawMessage {
	return s.define(func(t *Tool) any {
		return struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			InputSchema json.RawMessage `json:"input_schema"`
		}{t.Name, t.Description, t.parameters}
	})
}

// function describes a tool for both of OpenAI's APIs.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

func functionOf(t *Tool) function { return function{t.Name, t.Description, t.parameters} }

// define renders each tool. A Set without tools gives an empty list and not nil, which
// is null in JSON.
func (s *Set) define(render func(*Tool) any) []json.RawMessage {
	if s == nil {
		return nil
	}
	all := make([]json.RawMessage, len(s.Tools))
	for i, tool := range s.Tools {
		all[i] = definition.Encode(render(tool))
	}
	return all
}
