package wire

import (
	"bytes"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// encodeToolResult encodes the reply to a call of a tool. encoding/json would check and copy what the SDK's
// method returns, which may be large.
func encodeToolResult(m *messages.ToolResult, _ Refs) ([]byte, error) {
	if m.Result == nil {
		return marshal(m)
	}
	result, err := m.Result.MarshalJSON()
	if err != nil {
		return marshal(m) // encoding/json encodes it again, and its error names the field
	}
	receipt, err := marshal(&m.Receipt)
	if err != nil {
		return nil, err
	}
	return slices.Concat(receipt[:len(receipt)-1], []byte(`,"result":`), result, []byte("}")), nil
}

// decodeToolResult decodes the reply to a call of a tool. The SDK's method decodes a result twice,
// and allocates a buffer of 32 KiB and more for each: package results decodes it once.
func decodeToolResult(body []byte, _ Refs) (*messages.ToolResult, error) {
	var wire struct {
		messages.Receipt
		Result part `json:"result"`
	}
	if err := parse(body, &wire); err != nil {
		return nil, err
	}
	reply := &messages.ToolResult{Receipt: wire.Receipt}
	if wire.Result == nil || bytes.Equal(wire.Result, []byte("null")) {
		return reply, nil
	}
	result, err := clusterapi.DecodeResult("tools/call", wire.Result)
	if err != nil {
		if panicked := (*clusterapi.Panic)(nil); errors.As(err, &panicked) {
			return nil, err
		}
		return nil, within("result", undecoded(wire.Result, new(mcp.CallToolResult), err))
	}
	reply.Result = result.(*mcp.CallToolResult)
	return reply, within("result", restoreDigits(wire.Result, reply.Result))
}
