package toolset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// Set is the tools of a toolset at one moment. It is read-only.
type Set struct {
	// Tools are sorted by name. Names are unique.
	Tools []*Tool
	// Missing are the servers whose tools could not be listed, in the order of the
	// configuration. Tools still has the tools that such a server had before, unless
	// the supervisor no longer knows the server.
	Missing []Missing

	scope string
	names map[string]*Tool
}

// Missing is a server whose tools could not be listed.
type Missing struct {
	// Server is the name of the server.
	Server string
	// Err is the cause, of type [*messages.Failure]. Its code is
	// [messages.CodeDeadline] if the list is still being fetched.
	Err error
}

func newSet(scope string, tools []*Tool, missing []Missing) *Set {
	distinct(tools)
	slices.SortFunc(tools, func(a, b *Tool) int { return cmp.Compare(a.Name, b.Name) })
	s := &Set{Tools: tools, Missing: missing, scope: scope, names: make(map[string]*Tool, len(tools))}
	for _, tool := range tools {
		s.names[tool.Name] = tool
	}
	return s
}

// Tool returns the tool of a safe name, or nil.
func (s *Set) Tool(name string) *Tool {
	if s == nil {
		return nil
	}
	return s.names[name]
}

// Call returns the message that calls the tool of a safe name. Send it to the
// supervisor; ID, Deadline and Replay may be set before. The arguments are a map or a
// struct that marshals to a JSON object, or the JSON text that a model has written: a
// [json.RawMessage], a []byte or a string. nil, null and an empty text stand for {}.
// The message has a copy of the arguments.
//
// The error is a [*messages.Failure] of code [messages.CodeInvalid]: there is no such tool,
// or the arguments are not a JSON object.
func (s *Set) Call(name string, arguments any) (*messages.CallTool, error) {
	tool := s.Tool(name)
	if tool == nil {
		return nil, s.unknown(name)
	}
	raw, err := argumentsOf(arguments)
	call := &messages.CallTool{Header: messages.To(tool.Server, s.scope), Params: &mcp.CallToolParams{Name: tool.Original, Arguments: raw}}
	if err != nil {
		f := messages.NewFailure(call, messages.CodeInvalid, "arguments: are not a JSON object")
		f.Cause = err
		return nil, f
	}
	return call, nil
}

// unknown returns the failure for a name that no tool has.
func (s *Set) unknown(name string) *messages.Failure {
	detail := fmt.Sprintf("no tool has the name %.100q", name)
	if s != nil && len(s.Missing) > 0 {
		servers := make([]string, len(s.Missing))
		for i, missing := range s.Missing {
			servers[i] = missing.Server
		}
		detail += "; not listed: " + strings.Join(servers, ", ")
	}
	return &messages.Failure{Op: "tools/call", Code: messages.CodeInvalid, Detail: detail}
}
