package wire

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/bridge/results"
	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/messages"
)

// decodeToolResult decodes the reply to a call of a tool. The SDK's method decodes a result twice,
// and allocates a buffer of 32 KiB and more for each: package results decodes it once.
func decodeToolResult(body []byte, _ Refs) (*messages.ToolResult, error) {
	var wire struct {
		messages.Receipt
		Result part `json:"result"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return nil, undecoded(body, &wire, err)
	}
	reply := &messages.ToolResult{Receipt: wire.Receipt}
	if wire.Result == nil || bytes.Equal(wire.Result, []byte("null")) {
		return reply, nil
	}
	result, err := results.Decode("tools/call", wire.Result)
	if panicked := (*guard.Panic)(nil); errors.As(err, &panicked) {
		return nil, err
	}
	if err != nil {
		return nil, within("result", undecoded(wire.Result, new(mcp.CallToolResult), err))
	}
	reply.Result = result.(*mcp.CallToolResult)
	return reply, within("result", restoreDigits(wire.Result, reply.Result))
}
