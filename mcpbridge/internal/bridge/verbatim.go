package bridge

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// What a program passes on for others must not lose what the SDK does not know: the parameters of an operation can have
// further fields ([messages.Header.Extra]), and its result can be kept as it came ([messages.Header.Verbatim]).

// extraOf returns the further fields of a request with this method that is sent for an operation, which may be nil.
func extraOf(op messages.Operation, method string) map[string]json.RawMessage {
	if op == nil || op.Method() != method {
		return nil
	}
	return op.Head().Extra
}

// uncachedURI stands for the URI of a resource that is read past the cache of the SDK. The cache has no results as they came, and
// does not know further parameters, such as the answers of a later round.
const uncachedURI = "\x00uncached"

// isUncached reports whether an operation reads a resource past the cache, which the SDK has for protocol 2026-07-28.
func isUncached(op messages.Operation, isModern bool) bool {
	read, is := op.(*messages.ReadResource)
	return is && isModern && (read.Verbatim || len(read.Extra) > 0)
}

// ofOperation returns the parameters of an operation that reads a resource past the cache.
func ofOperation(params *mcp.ReadResourceParams, op messages.Operation) *mcp.ReadResourceParams {
	its := *params
	its.URI = op.(*messages.ReadResource).Params.URI
	return &its
}

// isVerbatim reports whether the result of a request with this method is kept as it came.
func isVerbatim(op messages.Operation, method string) bool {
	return op != nil && op.Head().Verbatim && op.Method() == method
}

// isAsIs reports whether the caller itself follows what a request with this method is answered, see [messages.PassOn].
func isAsIs(op messages.Operation, method string) bool {
	return isVerbatim(op, method) && op.Head().AsIs
}

// decoded returns a result of a request with this method, and notes in its exchange what is odd about it. With verbatim, the
// exchange keeps it as it came.
func decoded(ex *wire.Exchange, method string, raw json.RawMessage, verbatim bool) (mcp.Result, error) {
	result, odd, err := results.Decode(method, raw)
	if verbatim && err == nil {
		ex.Keep(raw)
	}
	ex.NoteOdd(odd)
	return result, err
}

// withoutRoots returns the parameters of initialize without the capability of roots, which encodes even if there is none.
func withoutRoots(params json.RawMessage) (json.RawMessage, error) {
	var object, can map[string]json.RawMessage
	if err := json.Unmarshal(params, &object); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(object["capabilities"], &can); err != nil {
		return nil, err
	}
	delete(can, "roots")
	var err error
	if object["capabilities"], err = json.Marshal(can); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// withMembers returns a JSON value with further members, at any depth, if it is an object. What it has stays as it is.
func withMembers(value json.RawMessage, further map[string]json.RawMessage) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if json.Unmarshal(value, &object) != nil || object == nil {
		return value, nil
	}
	for name, added := range further {
		if own, has := object[name]; has {
			var more map[string]json.RawMessage
			if json.Unmarshal(added, &more) != nil {
				continue
			}
			var err error
			if added, err = withMembers(own, more); err != nil {
				return nil, err
			}
		}
		object[name] = added
	}
	return json.Marshal(object)
}

// rawResult is the answer to a question as it is.
type rawResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

// MarshalJSON returns the answer.
func (r *rawResult) MarshalJSON() ([]byte, error) { return r.raw, nil }

// withFields returns parameters with further fields.
func withFields(params mcp.Params, extra map[string]json.RawMessage) (mcp.Params, error) {
	data, err := rpc.EncodeParams(params)
	if err != nil {
		return nil, err
	}
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	for name, value := range extra {
		if _, own := object[name]; !own {
			object[name] = value
		}
	}
	data, err = json.Marshal(object)
	return &customParams{fields: data}, err
}

// withParams is a request with other parameters. With nil, the SDK encodes none.
type withParams struct {
	mcp.Request
	params mcp.Params
}

// GetParams returns the other parameters.
func (r withParams) GetParams() mcp.Params { return r.params }

// verbatim returns the result of an operation as it came. raw are the results of its requests: of a list, the pages.
func verbatim(op messages.Operation, raw []json.RawMessage) json.RawMessage {
	items := map[string]string{
		"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
	}[op.Method()]
	switch {
	case len(raw) == 0:
		return nil
	case items == "" || len(raw) == 1:
		return raw[len(raw)-1] // the last round, if the server has asked for input
	}
	object, all := map[string]json.RawMessage{}, []json.RawMessage{}
	for _, page := range raw {
		var list []json.RawMessage
		object[items] = nil // that of the page before
		if json.Unmarshal(page, &object) != nil || object[items] != nil && json.Unmarshal(object[items], &list) != nil {
			return nil
		}
		all = append(all, list...)
	}
	delete(object, "nextCursor")
	object[items], _ = json.Marshal(all) // it was JSON
	joined, _ := json.Marshal(object)
	return joined
}
