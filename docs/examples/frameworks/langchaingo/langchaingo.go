// Package langchaingo presents a toolset to models of langchaingo.
package langchaingo

import (
	"context"

	"github.com/tmc/langchaingo/llms"

	"github.com/mcpactor/mcpactor/toolset"
)

// Tools returns the current tools, for llms.WithTools. Call it before each request.
func Tools(ctx context.Context, from *toolset.Toolset) ([]llms.Tool, error) {
	set, err := from.Tools(ctx)
	if err != nil {
		return nil, err
	}
	var all []llms.Tool
	for _, t := range set.Tools {
		all = append(all, llms.Tool{Type: "function", Function: &llms.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: t.Parameters()}})
	}
	return all, nil
}

// Run runs the calls of a choice, and returns the messages for the next request.
func Run(ctx context.Context, from *toolset.Toolset, choice *llms.ContentChoice) []llms.MessageContent {
	asked := llms.MessageContent{Role: llms.ChatMessageTypeAI}
	answers := []llms.MessageContent{}
	for _, call := range choice.ToolCalls {
		asked.Parts = append(asked.Parts, call)
		text := from.Outcome(from.Call(ctx, call.FunctionCall.Name, call.FunctionCall.Arguments)).Text()
		answers = append(answers, llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
			llms.ToolCallResponse{ToolCallID: call.ID, Name: call.FunctionCall.Name, Content: text},
		}})
	}
	return append([]llms.MessageContent{asked}, answers...)
}
