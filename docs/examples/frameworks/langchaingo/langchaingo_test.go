package langchaingo

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/llms"

	"github.com/mcpactor/mcpactor/docs/examples/frameworks/internal/notes"
)

// scripted is a model that calls its first tool, and then says what it was told.
type scripted struct{ llms.Model }

func (scripted) GenerateContent(_ context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	var with llms.CallOptions
	for _, option := range options {
		option(&with)
	}
	choice := &llms.ContentChoice{}
	if told, is := messages[len(messages)-1].Parts[0].(llms.ToolCallResponse); is {
		choice.Content = "told: " + told.Content
	} else {
		choice.ToolCalls = []llms.ToolCall{{ID: "1", Type: "function", FunctionCall: &llms.FunctionCall{Name: with.Tools[0].Function.Name, Arguments: `{"name": "Ada"}`}}}
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}, nil
}

func TestModelUsesATool(t *testing.T) {
	from := notes.Tools(t, nil)
	messages := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "What is to do?")}
	for {
		all, err := Tools(t.Context(), from)
		require.NoError(t, err)
		response, err := scripted{}.GenerateContent(t.Context(), messages, llms.WithTools(all))
		require.NoError(t, err)
		choice := response.Choices[0]
		if len(choice.ToolCalls) == 0 {
			require.Equal(t, "told: Buy milk for Ada.", choice.Content)
			return
		}
		messages = append(messages, Run(t.Context(), from, choice)...)
	}
}
