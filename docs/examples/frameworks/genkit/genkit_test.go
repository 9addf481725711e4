package genkit

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/docs/examples/frameworks/internal/notes"
)

// scripted is a model that calls the tool that the prompt names, and then says what it was told.
func scripted(_ context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
	last := req.Messages[len(req.Messages)-1].Content[0]
	message := ai.NewModelMessage(ai.NewToolRequestPart(&ai.ToolRequest{Name: last.Text, Ref: "1", Input: map[string]any{"name": "Ada"}}))
	if last.IsToolResponse() {
		text, err := json.Marshal(last.ToolResponse.Output)
		if err != nil {
			return nil, err
		}
		for _, part := range last.ToolResponse.Content {
			text = append(text, part.Text...)
		}
		message = ai.NewModelTextMessage(string(text))
	}
	return &ai.ModelResponse{Request: req, Message: message, FinishReason: ai.FinishReasonStop}, nil
}

// Genkit waits for signals, which cannot begin in a bubble of testing/synctest.
var (
	g     = genkit.Init(context.Background())
	model = genkit.DefineModel(g, "test/scripted", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true}}, scripted)
)

func generate(t *testing.T, ctx context.Context, w *notes.World, more ...ai.GenerateOption) (*ai.ModelResponse, error) {
	all, err := Tools(t.Context(), w.Session)
	require.NoError(t, err)
	return genkit.Generate(ctx, g, append(more, ai.WithModel(model), ai.WithTools(all...))...)
}

func TestTools(t *testing.T) {
	notes.Check(t, notes.Agent{NoProgress: true, Run: func(t *testing.T, ctx context.Context, w *notes.World, tool string) (string, error) {
		response, err := generate(t, ctx, w, ai.WithPrompt(tool))
		if err != nil {
			return "", err
		}
		return response.Text(), nil
	}})
}

func TestCallThatWaitsIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := notes.New(t)
		response, err := generate(t, t.Context(), w, ai.WithPrompt("notes__buy"))
		require.NoError(t, err)
		require.Equal(t, ai.FinishReasonInterrupted, response.FinishReason)
		require.Empty(t, w.Calls())
		interrupt := response.Interrupts()[0]
		waiting, is := ai.InterruptAs[struct{ ID, Digest string }](interrupt)
		require.True(t, is)
		told := &ai.MultipartToolResponse{Output: w.Approve(t, waiting.ID, waiting.Digest)}
		answer := ai.NewResponseForToolRequest(interrupt, told)
		response, err = generate(t, t.Context(), w, ai.WithMessages(response.History()...), ai.WithToolResponses(answer))
		require.NoError(t, err)
		require.Contains(t, response.Text(), "buy: 1 in this session")
		require.Len(t, w.Calls("buy"), 1)
	})
}
