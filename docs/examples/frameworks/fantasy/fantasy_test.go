package fantasy

import (
	"context"
	"testing"

	"charm.land/fantasy"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/docs/examples/frameworks/internal/notes"
)

// scripted is a model that calls a tool, and then says what it was told.
type scripted struct{ fantasy.LanguageModel }

func (scripted) Generate(_ context.Context, call fantasy.Call) (*fantasy.Response, error) {
	last := call.Prompt[len(call.Prompt)-1]
	if told, is := fantasy.AsMessagePart[fantasy.ToolResultPart](last.Content[0]); is {
		text := told.Output.(fantasy.ToolResultOutputContentText).Text
		return &fantasy.Response{Content: fantasy.ResponseContent{fantasy.TextContent{Text: "told: " + text}}, FinishReason: fantasy.FinishReasonStop}, nil
	}
	use := fantasy.ToolCallContent{ToolCallID: "1", ToolName: call.Tools[0].GetName(), Input: `{"name": "Ada"}`}
	return &fantasy.Response{Content: fantasy.ResponseContent{use}, FinishReason: fantasy.FinishReasonToolCalls}, nil
}

func (scripted) Provider() string { return "test" }
func (scripted) Model() string    { return "scripted" }

func TestAgentUsesATool(t *testing.T) {
	all, err := Tools(t.Context(), notes.Tools(t, nil))
	require.NoError(t, err)
	result, err := fantasy.NewAgent(scripted{}, fantasy.WithTools(all...)).Generate(t.Context(), fantasy.AgentCall{Prompt: "What is to do?"})
	require.NoError(t, err)
	require.Equal(t, "told: Buy milk for Ada.", result.Response.Content.Text())
}
