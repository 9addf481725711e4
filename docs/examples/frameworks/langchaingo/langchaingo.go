// Package langchaingo presents the tools of a session of the SDK to models of langchaingo. An image becomes a message of the user
// after the call. Add the text of a choice that has tool calls to the messages yourself.
package langchaingo

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tmc/langchaingo/llms"

	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/toolset"
)

// Tools returns the current tools, for llms.WithTools. Call it before each request.
func Tools(ctx context.Context, session *mcp.ClientSession) (all []llms.Tool, err error) {
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		all = append(all, llms.Tool{Type: "function", Function: &llms.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: t.InputSchema}})
	}
	return all, nil
}

// Call runs a call of a model, and returns the messages for the next request and, if the call waits for an approval, what to answer. Each
// call is a turn of its own: langchaingo's Anthropic models read only the first part of a message. The error is that of ctx.
func Call(ctx context.Context, session *mcp.ClientSession, call llms.ToolCall) (turn []llms.MessageContent, pending *toolset.Pending, err error) {
	params := &mcp.CallToolParams{Name: call.FunctionCall.Name, Arguments: json.RawMessage(cmp.Or(call.FunctionCall.Arguments, "{}"))}
	params.SetProgressToken(call.ID)
	result, err := session.CallTool(ctx, params)
	out := gateway.Outcome(result, err)
	told := llms.ToolCallResponse{ToolCallID: call.ID, Name: call.FunctionCall.Name, Content: out.Text()}
	turn = []llms.MessageContent{{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{call}}, {Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{told}}}
	for _, part := range out.Parts {
		if image, is := part.Content.(*mcp.ImageContent); is {
			turn = append(turn, llms.MessageContent{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.BinaryPart(image.MIMEType, image.Data)}})
		}
	}
	return turn, gateway.PendingOf(result), ctx.Err()
}
