// Package eino presents a toolset to agents of CloudWeGo's eino.
package eino

import (
	"context"
	"encoding/json"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"

	"github.com/mcpactor/mcpactor/toolset"
)

// Tools returns the current tools, for the ToolsNode of an agent, and the tool that reads long results.
func Tools(ctx context.Context, from *toolset.Toolset) ([]tool.BaseTool, error) {
	set, err := from.Tools(ctx)
	if err != nil {
		return nil, err
	}
	all := []tool.BaseTool{&one{from, set.Tool(toolset.ReadTool)}}
	for _, t := range set.Tools {
		if t.Name != toolset.ReadTool {
			all = append(all, &one{from, t})
		}
	}
	return all, nil
}

// one is a tool.
type one struct {
	from *toolset.Toolset
	tool *toolset.Tool
}

// Info returns the definition.
func (o *one) Info(context.Context) (*schema.ToolInfo, error) {
	var parameters jsonschema.Schema
	if err := json.Unmarshal(o.tool.Parameters(), &parameters); err != nil {
		return nil, err
	}
	return &schema.ToolInfo{Name: o.tool.Name, Desc: o.tool.Description, Extra: o.tool.Metadata, ParamsOneOf: schema.NewParamsOneOfByJSONSchema(&parameters)}, nil
}

// InvokableRun calls the tool. A failure is told to the model, and does not end the run.
func (o *one) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	return o.from.Outcome(o.from.Call(ctx, o.tool.Name, arguments)).Text(), nil
}
