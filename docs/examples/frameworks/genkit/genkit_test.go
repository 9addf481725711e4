package genkit

import (
	"context"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/docs/examples/frameworks/internal/notes"
	"github.com/mcpactor/mcpactor/toolset"
)

// scripted is a model that calls a tool, and then says what it was told.
func scripted(_ context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
	last := req.Messages[len(req.Messages)-1].Content[0]
	message := ai.NewModelMessage(ai.NewToolRequestPart(&ai.ToolRequest{Name: "notes__read", Ref: "1", Input: map[string]any{"name": "Ada"}}))
	if last.IsToolResponse() {
		message = ai.NewModelTextMessage("told: " + last.ToolResponse.Output.(string))
	}
	return &ai.ModelResponse{Request: req, Message: message, FinishReason: ai.FinishReasonStop}, nil
}

func generate(t *testing.T, tools *toolset.Toolset) *ai.ModelResponse {
	g := genkit.Init(t.Context())
	m := genkit.DefineModel(g, "test/scripted", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true}}, scripted)
	all, err := Tools(t.Context(), tools)
	require.NoError(t, err)
	response, err := genkit.Generate(t.Context(), g, ai.WithModel(m), ai.WithTools(all...), ai.WithPrompt("What is to do?"))
	require.NoError(t, err)
	return response
}

func TestModelUsesATool(t *testing.T) {
	require.Equal(t, "told: Buy milk for Ada.", generate(t, notes.Tools(t, nil)).Text())
}

func TestRunIsInterruptedUntilThePersonHasAnswered(t *testing.T) {
	tools := notes.Tools(t, &toolset.Policy{Decide: func(toolset.Proposal) toolset.Decision {
		return toolset.Decision{Verdict: toolset.Defer}
	}})
	response := generate(t, tools)
	require.Equal(t, ai.FinishReasonInterrupted, response.FinishReason)
	waiting, is := ai.InterruptAs[Waiting](response.Interrupts()[0])
	require.True(t, is)
	result, err := tools.Answer(t.Context(), waiting.ID, waiting.Digest, toolset.Decision{Verdict: toolset.Allow})
	require.Equal(t, "Buy milk for Ada.", tools.Outcome(result, err).Text())
}
