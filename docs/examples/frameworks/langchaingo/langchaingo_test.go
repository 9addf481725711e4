package langchaingo

import (
	"context"
	"encoding/base64"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/llms"

	"github.com/mcpactor/mcpactor/docs/examples/frameworks/internal/notes"
	"github.com/mcpactor/mcpactor/toolset"
)

// scripted is a model that calls the tool that the user names, and then says what it was told.
type scripted struct{ llms.Model }

func (scripted) GenerateContent(_ context.Context, messages []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	choice := &llms.ContentChoice{}
	for _, message := range messages[1:] {
		switch part := message.Parts[0].(type) {
		case llms.ToolCallResponse:
			choice.Content += part.Content
		case llms.BinaryContent:
			choice.Content += base64.StdEncoding.EncodeToString(part.Data)
		case llms.TextContent:
			choice.Content += part.Text
		}
	}
	if len(messages) == 1 {
		name := messages[0].Parts[0].(llms.TextContent).Text
		choice.ToolCalls = []llms.ToolCall{{ID: "1", Type: "function", FunctionCall: &llms.FunctionCall{Name: name, Arguments: `{"name": "Ada"}`}}}
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}, nil
}

// loop runs the model until it calls no tool, or until a call waits. It returns all messages.
func loop(ctx context.Context, w *notes.World, messages []llms.MessageContent) (said string, all []llms.MessageContent, waits *toolset.Pending, err error) {
	tools, err := Tools(ctx, w.Session)
	if err != nil {
		return "", nil, nil, err
	}
	for {
		response, err := scripted{}.GenerateContent(ctx, messages, llms.WithTools(tools))
		if err != nil || len(response.Choices[0].ToolCalls) == 0 {
			return response.Choices[0].Content, messages, nil, err
		}
		for _, call := range response.Choices[0].ToolCalls {
			turn, pending, err := Call(ctx, w.Session, call)
			messages = append(messages, turn...)
			if err != nil || pending != nil {
				return "", messages, pending, err
			}
		}
	}
}

func TestTools(t *testing.T) {
	notes.Check(t, notes.Agent{Run: func(_ *testing.T, ctx context.Context, w *notes.World, tool string) (string, error) {
		said, _, _, err := loop(ctx, w, []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, tool)})
		return said, err
	}})
}

// TestCallThatWaitsIsAnswered tells the model the result as a message of the user.
func TestCallThatWaitsIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := notes.New(t)
		_, messages, waits, err := loop(t.Context(), w, []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "notes__buy")})
		require.NoError(t, err)
		require.NotNil(t, waits)
		require.Empty(t, w.Calls())
		answer := llms.TextParts(llms.ChatMessageTypeHuman, w.Approve(t, waits.ID, waits.Digest))
		said, _, _, err := loop(t.Context(), w, append(messages, answer))
		require.NoError(t, err)
		require.Contains(t, said, "The call waits for an approval")
		require.Contains(t, said, "buy: 1 in this session")
		require.Len(t, w.Calls("buy"), 1)
	})
}
