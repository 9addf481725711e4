package fantasy

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"charm.land/fantasy"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/docs/examples/frameworks/internal/notes"
	"github.com/mcpactor/mcpactor/toolset"
)

// scripted is a model that calls the tool that the prompt names, and then says what it was told.
type scripted struct{ fantasy.LanguageModel }

func (scripted) Generate(_ context.Context, call fantasy.Call) (*fantasy.Response, error) {
	last := call.Prompt[len(call.Prompt)-1].Content[0]
	said := func(text string) *fantasy.Response {
		return &fantasy.Response{Content: fantasy.ResponseContent{fantasy.TextContent{Text: text}}, FinishReason: fantasy.FinishReasonStop}
	}
	if told, is := fantasy.AsMessagePart[fantasy.ToolResultPart](last); is {
		switch output := told.Output.(type) {
		case fantasy.ToolResultOutputContentMedia:
			return said(output.Text + output.Data), nil
		case fantasy.ToolResultOutputContentError:
			return said(output.Error.Error()), nil
		}
		return said(told.Output.(fantasy.ToolResultOutputContentText).Text), nil
	}
	asked, _ := fantasy.AsMessagePart[fantasy.TextPart](last)
	if len(call.Prompt) > 1 {
		return said(asked.Text), nil
	}
	use := fantasy.ToolCallContent{ToolCallID: "1", ToolName: asked.Text, Input: `{"name": "Ada"}`}
	return &fantasy.Response{Content: fantasy.ResponseContent{use}, FinishReason: fantasy.FinishReasonToolCalls}, nil
}

func (scripted) Provider() string { return "test" }
func (scripted) Model() string    { return "scripted" }

func run(t *testing.T, ctx context.Context, w *notes.World, call fantasy.AgentCall) (*fantasy.AgentResult, error) {
	var all []fantasy.AgentTool
	for one, err := range w.Session.Tools(t.Context(), nil) {
		require.NoError(t, err)
		all = append(all, Tool(w.Session, one))
	}
	return fantasy.NewAgent(scripted{}, fantasy.WithTools(all...)).Generate(ctx, call)
}

func TestTools(t *testing.T) {
	notes.Check(t, notes.Agent{Run: func(t *testing.T, ctx context.Context, w *notes.World, tool string) (string, error) {
		result, err := run(t, ctx, w, fantasy.AgentCall{Prompt: tool})
		if err != nil {
			return "", err
		}
		return result.Response.Content.Text(), nil
	}})
}

// TestCallThatWaitsIsAnswered tells the model the result in the next turn.
func TestCallThatWaitsIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := notes.New(t)
		result, err := run(t, t.Context(), w, fantasy.AgentCall{Prompt: "notes__buy"})
		require.NoError(t, err)
		require.Len(t, result.Steps, 1)
		require.Empty(t, w.Calls())
		var waits toolset.Pending
		require.NoError(t, json.Unmarshal([]byte(result.Steps[0].Content.ToolResults()[0].ClientMetadata), &waits))
		call := fantasy.AgentCall{Prompt: w.Approve(t, waits.ID, waits.Digest), Messages: append([]fantasy.Message{fantasy.NewUserMessage("notes__buy")}, result.Steps[0].Messages...)}
		result, err = run(t, t.Context(), w, call)
		require.NoError(t, err)
		require.Equal(t, "buy: 1 in this session", result.Response.Content.Text())
		require.Len(t, w.Calls("buy"), 1)
	})
}
