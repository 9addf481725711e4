package wire

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// The structs below have the fields of a message, with names in JSON. A message is converted to
// its struct, which the compiler or reflection allows as long as the fields are the same.
type (
	onlyHeader struct {
		messages.Header `json:"-"`
	}
	withURI struct {
		messages.Header `json:"-"`
		URI             string `json:"uri"`
	}
	readResource struct {
		messages.Header `json:"-"`
		Params          *mcp.ReadResourceParams `json:"params"`
	}
	getPrompt struct {
		messages.Header `json:"-"`
		Params          *mcp.GetPromptParams `json:"params"`
	}
	complete struct {
		messages.Header `json:"-"`
		Params          *mcp.CompleteParams `json:"params"`
	}
	setLogLevel struct {
		messages.Header `json:"-"`
		Level           string `json:"level"`
	}
	setRoots struct {
		messages.Header `json:"-"`
		Roots           []*mcp.Root `json:"roots"`
	}
	callTool struct {
		messages.Header `json:"-"`
		Params          *mcp.CallToolParams `json:"params"`
	}
	custom struct {
		messages.Header `json:"-"`
		Name            string `json:"name"`
		Params          any    `json:"params"`
	}

	cancel struct {
		Key messages.Key `json:"key"`
		ID  string       `json:"id,omitempty"`
	}
	restart struct {
		ID  string       `json:"id,omitempty"`
		Key messages.Key `json:"key"`
	}
	closeSession struct {
		ID  string       `json:"id,omitempty"`
		Key messages.Key `json:"key"`
		Now bool         `json:"now,omitempty"`
	}
	closeScope struct {
		ID    string `json:"id,omitempty"`
		Scope string `json:"scope"`
		Now   bool   `json:"now,omitempty"`
	}
	closeServer struct {
		ID     string `json:"id,omitempty"`
		Server string `json:"server"`
		Now    bool   `json:"now,omitempty"`
	}
	closeMatching struct {
		ID     string `json:"id,omitempty"`
		Server string `json:"server,omitempty"`
		Scopes string `json:"scopes"`
		Now    bool   `json:"now,omitempty"`
	}
	closeAll struct {
		ID  string `json:"id,omitempty"`
		Now bool   `json:"now,omitempty"`
	}
	cancelScope struct {
		ID    string `json:"id,omitempty"`
		Scope string `json:"scope"`
	}
	forget struct {
		ID     string `json:"id,omitempty"`
		Server string `json:"server"`
	}
	pin struct {
		ID      string       `json:"id,omitempty"`
		Key     messages.Key `json:"key"`
		Release bool         `json:"release,omitempty"`
	}
	inspect struct {
		ID     string         `json:"id,omitempty"`
		Server string         `json:"server,omitempty"`
		Scope  string         `json:"scope,omitempty"`
		State  messages.State `json:"state,omitempty"`
		Limit  int            `json:"limit,omitempty"`
	}

	elicit struct {
		messages.Origin `json:"-"`
		Params          *mcp.ElicitParams `json:"params"`
	}
	sample struct {
		messages.Origin `json:"-"`
		Params          *mcp.CreateMessageWithToolsParams `json:"params"`
	}
	onlyOrigin struct {
		messages.Origin `json:"-"`
	}
	withdrawn struct {
		messages.Origin `json:"-"`
		Reason          string `json:"reason"`
	}
)

// The structs below differ from their messages.
type (
	tail struct {
		ID         string       `json:"id,omitempty"`
		Key        messages.Key `json:"key"`
		Subscriber string       `json:"subscriber,omitempty"`
	}
	bind struct {
		ID      string `json:"id,omitempty"`
		Scope   string `json:"scope"`
		Owner   string `json:"owner,omitempty"`
		Handler string `json:"handler,omitempty"`
	}
	snapshot struct {
		ID string `json:"id,omitempty"`
		*messages.Snapshot
	}
)

// MarshalJSON encodes the parameters, and whether the arguments are a map.
func (m *callTool) MarshalJSON() ([]byte, error) {
	to := struct {
		Params *mcp.CallToolParams `json:"params"`
		Map    bool                `json:"argumentsAreMap,omitempty"`
	}{Params: m.Params}
	if m.Params != nil {
		to.Map = isMap(m.Params.Arguments)
	}
	data, err := marshal(to)
	return data, within("fields", err)
}

// UnmarshalJSON decodes what MarshalJSON has encoded.
func (m *callTool) UnmarshalJSON(data []byte) error {
	var from struct {
		Params *struct {
			mcp.CallToolParams
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
		Map bool `json:"argumentsAreMap"`
	}
	if err := unmarshal(data, &from); err != nil || from.Params == nil {
		return err
	}
	m.Params = &from.Params.CallToolParams
	var err error
	m.Params.Arguments, err = mapOrRaw(from.Params.Arguments, from.Map)
	return within("params.arguments", err)
}

// MarshalJSON encodes the parameters, and whether they are a map.
func (m *custom) MarshalJSON() ([]byte, error) {
	data, err := marshal(struct {
		Name   string `json:"name"`
		Params any    `json:"params,omitempty"`
		Map    bool   `json:"paramsAreMap,omitempty"`
	}{m.Name, m.Params, isMap(m.Params)})
	return data, within("fields", err)
}

// UnmarshalJSON decodes what MarshalJSON has encoded.
func (m *custom) UnmarshalJSON(data []byte) error {
	var from struct {
		Name   string          `json:"name"`
		Params json.RawMessage `json:"params"`
		Map    bool            `json:"paramsAreMap"`
	}
	err := unmarshal(data, &from)
	if err == nil {
		m.Name = from.Name
		m.Params, err = mapOrRaw(from.Params, from.Map)
		err = within("params", err)
	}
	return err
}

func isMap(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// mapOrRaw returns a value that is nil, a map[string]any, or a json.RawMessage: interceptors may
// look at it.
func mapOrRaw(data json.RawMessage, isMap bool) (any, error) {
	switch {
	case data == nil:
		return nil, nil
	case !isMap:
		return data, nil
	}
	var m map[string]any
	if allExact(data) {
		err := unmarshal(data, &m)
		return m, err
	}
	if err := decodeNumbers(data, &m); err != nil { // one may be too large for a float64
		return nil, undecoded(data, &m, err)
	}
	withDigits(m)
	return m, nil
}
