package wire

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// Parameters whose types lose something as JSON.

// value is the form of a value of any type.
type value struct {
	JSON json.RawMessage `json:"json,omitempty"`
	Map  bool            `json:"map,omitempty"` // it is a map[string]any
}

func encodeValue(v any) (to value, err error) {
	if v != nil {
		_, to.Map = v.(map[string]any)
		to.JSON, err = marshal(v)
	}
	return to, err
}

// decodeValue returns nil, a map[string]any, or a json.RawMessage: interceptors may look at it.
func decodeValue(from value) (any, error) {
	switch {
	case from.JSON == nil:
		return nil, nil
	case !from.Map:
		return from.JSON, nil
	}
	m := map[string]any{} // the decoder would make a large one
	err := unmarshal(from.JSON, &m)
	return m, err
}

// callToolParams are the form of the parameters of a call.
type callToolParams struct {
	mcp.CallToolParams
	Arguments value `json:"arguments,omitzero"`
}

func encodeCallTool(from *mcp.CallToolParams) (*callToolParams, error) {
	if from == nil {
		return nil, nil
	}
	arguments, err := encodeValue(from.Arguments)
	if err != nil {
		return nil, problem("arguments: " + err.Error())
	}
	return &callToolParams{*from, arguments}, nil
}

func decodeCallTool(from *callToolParams) (*mcp.CallToolParams, error) {
	if from == nil {
		return nil, nil
	}
	var err error
	if from.CallToolParams.Arguments, err = decodeValue(from.Arguments); err != nil {
		return nil, problem("arguments: " + err.Error())
	}
	return &from.CallToolParams, nil
}

// capabilities are the form of the capabilities of a client: the SDK leaves RootsV2 out of theirs.
type capabilities struct {
	*mcp.ClientCapabilities
	Roots *mcp.RootCapabilities `json:"roots,omitempty"`
}

func encodeCapabilities(from *mcp.ClientCapabilities) (*capabilities, error) {
	if from == nil {
		return nil, nil
	}
	return &capabilities{from, from.RootsV2}, nil
}

func decodeCapabilities(from *capabilities) (*mcp.ClientCapabilities, error) {
	if from == nil {
		return nil, nil
	}
	to := from.ClientCapabilities
	if to == nil { // with roots alone, nothing of it was decoded
		to = new(mcp.ClientCapabilities)
	}
	if to.RootsV2 = from.Roots; from.Roots != nil {
		to.Roots = *from.Roots //nolint:staticcheck // the SDK still reads the deprecated field, too
	}
	return to, nil
}

// introduction is the form of what a client says of itself: encoding/json would change the bytes of Initialize, by which scopes
// are told apart.
type introduction struct {
	messages.Introduction
	Initialize map[string][]byte `json:"initialize,omitempty"`
}

func encodeIntroduction(from *messages.Introduction) (*introduction, error) {
	if from == nil {
		return nil, nil
	}
	to := &introduction{Introduction: *from}
	if from.Initialize != nil {
		to.Initialize = map[string][]byte{}
	}
	for name, value := range from.Initialize {
		if !utf8.ValidString(name) { // JSON would change it to another name
			return nil, problem("initialize: is not valid UTF-8")
		}
		to.Initialize[name] = value
	}
	return to, nil
}

func decodeIntroduction(from *introduction) (*messages.Introduction, error) {
	if from == nil {
		return nil, nil
	}
	to := &from.Introduction
	if from.Initialize != nil {
		to.Initialize = map[string]json.RawMessage{}
	}
	for name, value := range from.Initialize {
		to.Initialize[name] = value
	}
	return to, nil
}
