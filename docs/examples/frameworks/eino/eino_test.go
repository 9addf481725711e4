package eino

import (
	"context"
	"testing"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/docs/examples/frameworks/internal/notes"
)

// scripted is a model that calls a tool, and then says what it was told.
type scripted struct{ tools []*schema.ToolInfo }

func (s *scripted) Generate(_ context.Context, input []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	if last := input[len(input)-1]; last.Role == schema.Tool {
		return schema.AssistantMessage("told: "+last.Content, nil), nil
	}
	call := schema.ToolCall{ID: "1", Function: schema.FunctionCall{Name: s.tools[1].Name, Arguments: `{"name": "Ada"}`}}
	return schema.AssistantMessage("", []schema.ToolCall{call}), nil
}

func (s *scripted) Stream(ctx context.Context, input []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	message, err := s.Generate(ctx, input, opts...)
	return schema.StreamReaderFromArray([]*schema.Message{message}), err
}

func (s *scripted) WithTools(tools []*schema.ToolInfo) (model.ToolCallingChatModel, error) {
	return &scripted{tools}, nil
}

func TestAgentUsesATool(t *testing.T) {
	all, err := Tools(t.Context(), notes.Tools(t, nil))
	require.NoError(t, err)
	agent, err := react.NewAgent(t.Context(), &react.AgentConfig{ToolCallingModel: &scripted{}, ToolsConfig: compose.ToolsNodeConfig{Tools: all}})
	require.NoError(t, err)
	answer, err := agent.Generate(t.Context(), []*schema.Message{schema.UserMessage("What is to do?")})
	require.NoError(t, err)
	require.Equal(t, "told: Buy milk for Ada.", answer.Content)
}
