package definition_test

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/definition"
)

// The digests are stored by users, so they are the same in all versions. Those of tools are in package toolset.
func TestDigestsOfPromptsAndInstructions(t *testing.T) {
	full := &mcp.Prompt{
		Name: "greet", Title: "Greet", Description: "Greets <somebody>.", Meta: mcp.Meta{"a": 1},
		Arguments: []*mcp.PromptArgument{{Name: "who", Title: "Who", Description: "The name.", Required: true}, nil, {Name: "how"}},
	}
	text := definition.OfPrompt(full)
	require.Equal(t, `{"arguments":[{"description":"The name.","name":"who","required":true,"title":"Who"},{"name":"how"}],`+
		`"description":"Greets <somebody>.","name":"greet","title":"Greet"}`, string(text))
	require.Equal(t, "sha256:c9ca5c9cb027c57926dc7eca9b4b3a7080992f1e12bc91aa718716c2821fb1c6", text.Digest())
	require.Equal(t, `{"name":"greet"}`, string(definition.OfPrompt(&mcp.Prompt{Name: "greet"})))
	require.Equal(t, definition.Of("Be kind."), definition.Of(json.RawMessage(`"Be \u006bind."`)))
	require.Equal(t, "sha256:8c294dd9b20a079e703dc38d191f91cb812cde51a894b85ad2e25791325c993e", definition.Of("Be kind.").Digest())
	for _, nothing := range []any{nil, "", json.RawMessage(nil), json.RawMessage("null"), func() {}} {
		require.Empty(t, definition.Of(nothing))
		require.Empty(t, definition.Of(nothing).Digest())
	}
}

func TestDigestCoversNumbersOfAnySize(t *testing.T) {
	of := func(number string) definition.Text {
		return definition.Of(json.RawMessage(`{"maximum":` + number + `}`))
	}
	require.NotEqual(t, of("1e400"), of("1e401"))
	require.NotEmpty(t, of("1e400"))
	require.Equal(t, of("1.0"), of("1"))
}
