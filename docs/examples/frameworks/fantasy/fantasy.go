// Package fantasy presents the tools of a session of the SDK to agents of Charm's fantasy. Of several images of a result, the model gets
// the last one.
package fantasy

import (
	"context"
	"encoding/json"

	"charm.land/fantasy"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway"
)

type tool struct {
	fantasy.AgentTool
	info fantasy.ToolInfo
}

func (t tool) Info() fantasy.ToolInfo { return t.info }

// Tool returns a tool of a session, for fantasy.WithTools. Only the end of the agent's context ends its run. A call that
// waits for an approval ends the turn: the metadata of its result is the [toolset.Pending]. Tell the model the result in the next turn.
func Tool(session *mcp.ClientSession, t *mcp.Tool) fantasy.AgentTool {
	run := func(ctx context.Context, _ map[string]any, call fantasy.ToolCall) (fantasy.ToolResponse, error) {
		params := &mcp.CallToolParams{Name: t.Name, Arguments: json.RawMessage(call.Input)}
		params.SetProgressToken(call.ID)
		result, err := session.CallTool(ctx, params)
		out := gateway.Outcome(result, err)
		response := fantasy.ToolResponse{Type: "text", Content: out.Text(), IsError: out.IsError}
		for _, part := range out.Parts {
			if image, is := part.Content.(*mcp.ImageContent); is {
				response.Type, response.Data, response.MediaType = "image", image.Data, image.MIMEType
			}
		}
		if pending := gateway.PendingOf(result); pending != nil {
			response = fantasy.WithResponseMetadata(response, pending)
			response.StopTurn = true
		}
		return response, ctx.Err()
	}
	var schema struct {
		Properties map[string]any
		Required   []string
	}
	text, _ := json.Marshal(t.InputSchema) // a schema that a session has listed
	_ = json.Unmarshal(text, &schema)
	info := fantasy.ToolInfo{Name: t.Name, Description: t.Description, Parameters: schema.Properties, Required: append([]string{}, schema.Required...)}
	return tool{fantasy.NewAgentTool(t.Name, t.Description, run), info}
}
