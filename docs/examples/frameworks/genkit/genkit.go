// Package genkit presents the tools of a session of the SDK to Firebase Genkit. Progress is left out: Genkit does not tell a tool which
// call it runs for. Genkit itself ends a run whose model gives arguments that are not as the schema says.
package genkit

import (
	"context"
	"encoding/base64"

	"github.com/firebase/genkit/go/ai"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway"
)

// Tools returns the current tools, for ai.WithTools. Only the end of its context ends a run. A call that waits for an approval
// interrupts it: give the answer to toolset.Toolset.Answer, and what the model is told of it, as the output of an ai.MultipartToolResponse,
// to ai.NewResponseForToolRequest for ai.WithToolResponses.
func Tools(ctx context.Context, session *mcp.ClientSession) (all []ai.ToolRef, err error) {
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		schema, _ := t.InputSchema.(map[string]any)
		call := func(ctx *ai.ToolContext, input any) (*ai.MultipartToolResponse, error) {
			result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: t.Name, Arguments: input})
			if pending := gateway.PendingOf(result); pending != nil {
				return nil, ctx.Interrupt(&ai.InterruptOptions{Metadata: map[string]any{"id": pending.ID, "digest": pending.Digest}})
			}
			out := gateway.Outcome(result, err)
			response := &ai.MultipartToolResponse{Output: out.Text()}
			for _, part := range out.Parts {
				if image, is := part.Content.(*mcp.ImageContent); is {
					data := "data:" + image.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(image.Data)
					response.Content = append(response.Content, ai.NewMediaPart(image.MIMEType, data))
				}
			}
			return response, ctx.Err()
		}
		all = append(all, ai.NewMultipartTool(t.Name, t.Description, call, ai.WithInputSchema(schema)))
	}
	return all, nil
}
