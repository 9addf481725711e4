package wire

import (
	"bytes"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// A reply to a call of a tool crosses as two values of JSON, because the second may be large: encoding/json would check and
// copy what the SDK's method returns. A newline, which the first does not have, is between them.

func encodeToolResult(m *messages.ToolResult) ([]byte, error) {
	receipt, err := marshal(&m.Receipt)
	if err != nil || m.Result == nil {
		return receipt, err
	}
	result, err := m.Result.MarshalJSON()
	if err != nil {
		return nil, unencoded(err)
	}
	return slices.Concat(receipt, []byte("\n"), result), nil
}

// decodeToolResult has package results decode the result. The SDK's method decodes it twice, and allocates a buffer of 32 KiB
// and more for each.
func decodeToolResult(body []byte) (*messages.ToolResult, error) {
	receipt, result, has := bytes.Cut(body, []byte("\n"))
	m := new(messages.ToolResult)
	if err := parse(receipt, &m.Receipt); err != nil || !has {
		return m, err
	}
	decoded, err := clusterapi.DecodeResult("tools/call", result)
	if err == nil {
		m.Result = decoded.(*mcp.CallToolResult)
	}
	return m, err
}
