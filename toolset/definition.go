package toolset

import "encoding/json"

// OpenAIChat returns the definitions of all tools for the "tools" of OpenAI's Chat
// Completions API, and of those that are made like it: one JSON object each.
func (s *Set) OpenAIChat() []json.RawMessage {
	return s.define(func(t *Tool) any {
		return struct {
			Type     string   `json:"type"`
			Function function `json:"function"`
		}{"function", functionOf(t)}
	})
}

// OpenAIResponses returns the definitions of all tools for the "tools" of OpenAI's
// Responses API: one JSON object each. They say that "strict" is false: it is true by
// default there, and most schemas of MCP servers are not made for it.
func (s *Set) OpenAIResponses() []json.RawMessage {
	return s.define(func(t *Tool) any {
		return struct {
			Type string `json:"type"`
			function
			Strict bool `json:"strict"`
		}{"function", functionOf(t), false}
	})
}

// Anthropic returns the definitions of all tools for the "tools" of Anthropic's
// Messages API: one JSON object each.
func (s *Set) Anthropic() []json.RawMessage {
	return s.define(func(t *Tool) any {
		return struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			InputSchema json.RawMessage `json:"input_schema"`
		}{t.Name, t.Description, t.parameters}
	})
}

// function is what both of OpenAI's APIs call a function.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

func functionOf(t *Tool) function { return function{t.Name, t.Description, t.parameters} }

// define renders each tool. The result is never nil, which would be null as JSON.
func (s *Set) define(render func(*Tool) any) []json.RawMessage {
	if s == nil {
		return nil
	}
	all := make([]json.RawMessage, len(s.Tools))
	for i, tool := range s.Tools {
		all[i] = encode(render(tool))
	}
	return all
}
