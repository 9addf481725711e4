package toolset

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func digestOf(tool *mcp.Tool) string { return newTool(Filter{Name: "s"}, tool, nil).Digest }

// The digests are stored by users, so they are the same in all versions.
func TestDigestsOfDefinitions(t *testing.T) {
	no := false
	full := &mcp.Tool{
		Name: "read", Title: "Read", Description: "Reads <a> file.",
		InputSchema:  map[string]any{"type": "object", "properties": map[string]any{"b": map[string]any{"maximum": 1e21}, "a": true}},
		OutputSchema: json.RawMessage(`{"type" : "object"}`),
		Annotations:  &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
	}
	require.Equal(t, "sha256:3118854c2db063cdcee559a6a8d02554c2d4ae934072d50e0d812683d37b4744", digestOf(full))
	require.Equal(t, "sha256:6a7296be2d50ccb2ca26b9ea6ec1692b395c27c07fdfe9a1a705c0e1c04a3b99", digestOf(&mcp.Tool{Name: "read"}))
}

func TestDigestDependsOnTheDefinitionOnly(t *testing.T) {
	base := func() *mcp.Tool {
		return &mcp.Tool{
			Name: "read", Title: "Read", Description: "Reads.", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":true,"b":{"minimum":1.0}}}`),
			OutputSchema: map[string]any{"type": "object"}, Annotations: &mcp.ToolAnnotations{IdempotentHint: true},
		}
	}
	yes := true
	for name, change := range map[string]func(*mcp.Tool){
		"name":              func(tool *mcp.Tool) { tool.Name = "Read" },
		"title":             func(tool *mcp.Tool) { tool.Title = "" },
		"description":       func(tool *mcp.Tool) { tool.Description += " " },
		"hidden characters": func(tool *mcp.Tool) { tool.Description = "Re\u200bads." },
		"input schema":      func(tool *mcp.Tool) { tool.InputSchema = json.RawMessage(`{"type":"object"}`) },
		"order of a list":   func(tool *mcp.Tool) { tool.InputSchema = json.RawMessage(`{"required":["b","a"]}`) },
		"no output schema":  func(tool *mcp.Tool) { tool.OutputSchema = nil },
		"annotations":       func(tool *mcp.Tool) { tool.Annotations.ReadOnlyHint = true },
		"pointer":           func(tool *mcp.Tool) { tool.Annotations.DestructiveHint = &yes },
		"no annotations":    func(tool *mcp.Tool) { tool.Annotations = nil },
	} {
		changed := base()
		change(changed)
		require.NotEqual(t, digestOf(base()), digestOf(changed), name)
	}
	for name, change := range map[string]func(*mcp.Tool){
		"order of members": func(tool *mcp.Tool) {
			tool.InputSchema = json.RawMessage(` {"properties": {"b":{"minimum":1},"a":true}, "type":"object"}`)
		},
		"decoded": func(tool *mcp.Tool) {
			var schema any
			require.NoError(t, json.Unmarshal(tool.InputSchema.(json.RawMessage), &schema))
			tool.InputSchema = schema
		},
		"meta":  func(tool *mcp.Tool) { tool.Meta = mcp.Meta{"a": 1} },
		"icons": func(tool *mcp.Tool) { tool.Icons = []mcp.Icon{{}} },
	} {
		changed := base()
		change(changed)
		require.Equal(t, digestOf(base()), digestOf(changed), name)
	}
	other := newTool(Filter{Name: "other", Scope: "x", DisplayName: "X", Metadata: map[string]any{"a": 1}}, base(), nil)
	require.Equal(t, digestOf(base()), other.Digest)
	require.Equal(t, digestOf(&mcp.Tool{Name: "a"}), digestOf(&mcp.Tool{Name: "a", Annotations: &mcp.ToolAnnotations{}}))
	require.NotEqual(t, digestOf(&mcp.Tool{}), digestOf(&mcp.Tool{Description: "x"}))
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", digestOf(&mcp.Tool{Name: "a", InputSchema: func() {}}))
}
