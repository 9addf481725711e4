// Package fantasy presents a toolset to agents of Charm's fantasy.
package fantasy

import (
	"context"
	"encoding/json"

	"charm.land/fantasy"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/toolset"
)

// Tools returns the current tools, for fantasy.WithTools.
func Tools(ctx context.Context, from *toolset.Toolset) ([]fantasy.AgentTool, error) {
	set, err := from.Tools(ctx)
	if err != nil {
		return nil, err
	}
	var all []fantasy.AgentTool
	for _, t := range set.Tools {
		all = append(all, &one{from: from, tool: t})
	}
	return all, nil
}

// one is a tool.
type one struct {
	from    *toolset.Toolset
	tool    *toolset.Tool
	options fantasy.ProviderOptions
}

// Info returns the definition.
func (o *one) Info() fantasy.ToolInfo {
	var schema struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
	}
	_ = json.Unmarshal(o.tool.Parameters(), &schema) // the parameters are always a schema
	return fantasy.ToolInfo{Name: o.tool.Name, Description: o.tool.Description, Parameters: schema.Properties, Required: append([]string{}, schema.Required...)}
}

// Run calls the tool. An image is passed on if the result has one.
func (o *one) Run(ctx context.Context, call fantasy.ToolCall) (fantasy.ToolResponse, error) {
	out := o.from.Outcome(o.from.Call(ctx, o.tool.Name, call.Input))
	for _, part := range out.Parts {
		if image, is := part.Content.(*mcp.ImageContent); is {
			response := fantasy.NewImageResponse(image.Data, image.MIMEType)
			response.Content = out.Text()
			return response, nil
		}
	}
	response := fantasy.NewTextResponse(out.Text())
	response.IsError = out.IsError
	return response, nil
}

// ProviderOptions returns what SetProviderOptions has set.
func (o *one) ProviderOptions() fantasy.ProviderOptions { return o.options }

// SetProviderOptions sets options of a provider.
func (o *one) SetProviderOptions(options fantasy.ProviderOptions) { o.options = options }
