package view

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/finder"
	"github.com/mcpactor/mcpactor/internal/shown"
)

// Config is how lists are made. The zero value lists what servers have.
type Config struct {
	// Mode says how the list follows what servers have.
	Mode shown.Mode
	// Find is the number of tools beyond which a client is shown a part, and finds the others. 0 means no number.
	Find int
	// FindCalls offers a tool that calls others.
	FindCalls bool
}

// CallName is the name of the tool that calls others.
const CallName = "call_tool"

// The tools of the gateway itself.
var (
	finds = ownTool(finder.Name, finder.Title, finder.Description, finder.Schema, true)
	calls = ownTool(CallName, "Call a tool", "Calls a tool that "+finder.Name+" has found, if it only reads. Call it by its own name if you can.",
		`{"type":"object","properties":{"name":{"type":"string","description":"the name of the tool"},`+
			`"arguments":{"type":"object","description":"its arguments"}},"required":["name"]}`, false)
)

func ownTool(name, title, description, schema string, readsOnly bool) Tool {
	raw, _ := mcpserver.Encode(&mcp.Tool{ // it can be encoded
		Name: name, Title: title, Description: description, InputSchema: json.RawMessage(schema), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readsOnly},
	})
	return Tool{Name: name, ID: name, Raw: raw, Digest: mcpserver.Digest(raw), ReadsOnly: readsOnly}
}

// own returns the tools of the gateway itself.
func (cfg Config) own() []Tool {
	if cfg.FindCalls {
		return []Tool{finds, calls}
	}
	return []Tool{finds}
}
