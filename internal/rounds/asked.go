package rounds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// ResultType is the resultType of a result that asks for input.
const ResultType = "input_required"

// Question is a question of a result.
type Question struct {
	Params mcp.InputRequest
	Raw    json.RawMessage // the parameters as they came, or nil
}

// Asked is a result that asks for input. Immutable.
type Asked struct {
	messages.Receipt
	Questions map[string]Question // by their keys
	State     json.RawMessage     // to be sent back as it came, or nil
	Raw       json.RawMessage     // that Decode decodes; read-only
}

// Decode decodes a result that asks for input.
func Decode(raw []byte) (*Asked, error) {
	var wire struct {
		Requests map[string]struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		} `json:"inputRequests"`
		State json.RawMessage `json:"requestState"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return nil, err
	}
	a := &Asked{Questions: map[string]Question{}, Raw: bytes.Clone(raw)}
	if len(wire.State) > 0 && string(wire.State) != "null" {
		a.State = wire.State
	}
	for key, one := range wire.Requests {
		params := one.Params
		if len(params) == 0 {
			params = json.RawMessage("{}") // roots/list may have none
		}
		text, err := json.Marshal(map[string]any{key: map[string]any{"method": one.Method, "params": params}})
		if err != nil {
			return nil, err
		}
		var typed mcp.InputRequestMap
		if err := json.Unmarshal(text, &typed); err != nil {
			return nil, fmt.Errorf("inputRequests: %w", err)
		}
		for _, its := range typed {
			a.Questions[key] = Question{its, one.Params}
		}
	}
	if len(a.Questions) == 0 && a.State == nil {
		return nil, errors.New("it has neither inputRequests nor a requestState")
	}
	return a, nil
}
