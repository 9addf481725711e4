// Package eino presents the tools of a session of the SDK to agents of CloudWeGo's eino. To interrupt a run, eino needs a runner with a
// store of checkpoints.
package eino

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway"
)

// Tool is a tool of a session, for the tools of an agent. Only the end of the agent's context ends its run. A call that waits for
// an approval interrupts the run, with the [toolset.Pending] as JSON: resume it with the text of what toolset.Toolset.Answer gives.
type Tool struct {
	Session *mcp.ClientSession
	Tool    *mcp.Tool
}

// Info returns the definition of the tool.
func (t *Tool) Info(context.Context) (*schema.ToolInfo, error) {
	var parameters jsonschema.Schema
	text, _ := json.Marshal(t.Tool.InputSchema) // a schema that a session has listed
	err := json.Unmarshal(text, &parameters)
	return &schema.ToolInfo{Name: t.Tool.Name, Desc: t.Tool.Description, ParamsOneOf: schema.NewParamsOneOfByJSONSchema(&parameters)}, err
}

// InvokableRun calls the tool.
func (t *Tool) InvokableRun(ctx context.Context, argument *schema.ToolArgument, _ ...tool.Option) (*schema.ToolResult, error) {
	if waits, _, pending := tool.GetInterruptState[string](ctx); waits {
		if _, answered, text := tool.GetResumeContext[string](ctx); answered {
			return &schema.ToolResult{Parts: []schema.ToolOutputPart{{Type: schema.ToolPartTypeText, Text: text}}}, nil
		}
		return nil, tool.StatefulInterrupt(ctx, pending, pending) // the answer is to another call
	}
	params := &mcp.CallToolParams{Name: t.Tool.Name, Arguments: json.RawMessage(cmp.Or(argument.Text, "{}"))}
	params.SetProgressToken(compose.GetToolCallID(ctx))
	result, err := t.Session.CallTool(ctx, params)
	if pending := gateway.PendingOf(result); pending != nil {
		text, _ := json.Marshal(pending)
		return nil, tool.StatefulInterrupt(ctx, string(text), string(text))
	}
	told := &schema.ToolResult{}
	for _, part := range gateway.Outcome(result, err).Parts {
		one := schema.ToolOutputPart{Type: schema.ToolPartTypeText, Text: part.Text}
		if image, is := part.Content.(*mcp.ImageContent); is {
			data := base64.StdEncoding.EncodeToString(image.Data)
			one.Type, one.Image = schema.ToolPartTypeImage, &schema.ToolOutputImage{MessagePartCommon: schema.MessagePartCommon{Base64Data: &data, MIMEType: image.MIMEType}}
		}
		told.Parts = append(told.Parts, one)
	}
	return told, ctx.Err()
}
