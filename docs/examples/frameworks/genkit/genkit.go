// Package genkit presents a toolset to Firebase Genkit.
package genkit

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/firebase/genkit/go/ai"

	"github.com/mcpactor/mcpactor/toolset"
)

// Waiting is the metadata of an interrupt: a call that is pending. Whoever resumes the run gets its
// result from [toolset.Toolset.Answer], and gives it to the tool's Respond.
type Waiting struct {
	ID     string `json:"id"`
	Digest string `json:"digest"` // of what is shown to the person who answers
}

// Tools returns the current tools, for ai.WithTools, and the tool that reads long results.
func Tools(ctx context.Context, from *toolset.Toolset) (all []ai.ToolRef, err error) {
	set, err := from.Tools(ctx)
	if err != nil {
		return nil, err
	}
	tools := set.Tools
	if len(tools) > 0 && !has(tools, toolset.ReadTool) {
		tools = append([]*toolset.Tool{set.Tool(toolset.ReadTool)}, tools...)
	}
	for _, t := range tools {
		var schema map[string]any
		if err := json.Unmarshal(t.Parameters(), &schema); err != nil {
			return nil, err
		}
		call := func(ctx *ai.ToolContext, input any) (string, error) {
			result, err := from.Call(ctx, t.Name, input)
			if pending, waits := errors.AsType[*toolset.Pending](err); waits {
				return "", ai.InterruptWith(ctx, Waiting{pending.ID, pending.Digest})
			}
			return from.Outcome(result, err).Text(), nil
		}
		all = append(all, ai.NewTool(t.Name, t.Description, call, ai.WithInputSchema(schema)))
	}
	return all, nil
}

func has(tools []*toolset.Tool, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}
