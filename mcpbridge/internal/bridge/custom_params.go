package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// customParams are the parameters of a custom method. The SDK and sending add to its _meta.
type customParams struct {
	mcp.ParamsBase
	fields json.RawMessage // a JSON object, whose _meta stands in Meta if that has anything
}

// newCustomParams returns the parameters of an operation.
func newCustomParams(params any) (*customParams, error) {
	p := &customParams{fields: json.RawMessage("{}")}
	if params == nil {
		return p, nil
	}
	data, err := json.Marshal(params)
	var object map[string]json.RawMessage
	switch {
	case err != nil:
		return nil, err
	case json.Unmarshal(data, &object) != nil:
		return nil, errors.New("they are no JSON object")
	case object == nil: // null
		return p, nil
	}
	if meta, given := object["_meta"]; given {
		if json.Unmarshal(meta, &p.Meta) != nil {
			return nil, errors.New("_meta is no JSON object")
		}
		if len(p.Meta) > 0 {
			delete(object, "_meta")
			data, err = json.Marshal(object)
		}
	}
	p.fields = data
	return p, err
}

// MarshalJSON returns the parameters with their _meta.
func (p *customParams) MarshalJSON() ([]byte, error) {
	if len(p.Meta) == 0 {
		return p.fields, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(p.fields, &object); err != nil {
		return nil, err
	}
	meta, err := json.Marshal(map[string]any(p.Meta))
	if err != nil {
		return nil, err
	}
	object["_meta"] = meta
	return json.Marshal(object)
}

// GetProgressToken returns the progress token, or nil.
func (p *customParams) GetProgressToken() any { return p.Meta["progressToken"] }

// SetProgressToken sets the progress token.
func (p *customParams) SetProgressToken(token any) {
	meta := maps.Clone(map[string]any(p.Meta))
	if meta == nil {
		meta = map[string]any{}
	}
	meta["progressToken"] = token
	p.SetMeta(meta)
}

// customResult is the result of a custom method.
type customResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

// UnmarshalJSON keeps the result as it is.
func (r *customResult) UnmarshalJSON(data []byte) error {
	r.raw = bytes.Clone(data)
	return nil
}
