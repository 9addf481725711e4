package taskserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// methods are the methods of tasks.
var methods = []string{"tasks/get", "tasks/update", "tasks/cancel"}

// misrouted returns the answer to a request about a task whose id is not in the header Mcp-Name, or nil. The SDK knows only
// the requests of the protocol itself.
func misrouted(r *http.Request) []byte {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req struct {
		ID     any    `json:"id"`
		Method string `json:"method"`
		Params params `json:"params"`
	}
	if err != nil || json.Unmarshal(body, &req) != nil || !slices.Contains(methods, req.Method) {
		return nil
	}
	name := r.Header.Get("Mcp-Name")
	if encoded, is := strings.CutPrefix(name, "=?base64?"); is {
		decoded, _ := base64.StdEncoding.DecodeString(strings.TrimSuffix(encoded, "?="))
		name = string(decoded)
	}
	if name == req.Params.ID {
		return nil
	}
	answer, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": req.ID, "error": map[string]any{
		"code": mcp.CodeHeaderMismatch, "message": req.Method + ": Mcp-Name is not the id of the task",
	}})
	return answer
}

// questions returns questions by their keys, as the protocol has them.
func questions(asks map[string]string) map[string]any {
	inputs := map[string]any{}
	for key, question := range asks {
		inputs[key] = map[string]any{"method": "elicitation/create", "params": map[string]any{
			"message": question, "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}},
		}}
	}
	return inputs
}

// declared reports whether a request declares tasks.
func declared(meta mcp.Meta) bool {
	data, _ := json.Marshal(meta["io.modelcontextprotocol/clientCapabilities"])
	var can mcp.ClientCapabilities
	_ = json.Unmarshal(data, &can)
	_, is := can.Extensions["io.modelcontextprotocol/tasks"]
	return is
}

// missing is the error for a client that has not declared tasks.
func missing() error {
	return &jsonrpc.Error{Code: -32021, Message: "missing required client capability", Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`)}
}

// params are the parameters of the methods of tasks.
type params struct {
	mcp.ParamsBase
	ID      string                    `json:"taskId"`
	Answers map[string]map[string]any `json:"inputResponses"`
}

// result is a result of any form.
type result struct {
	mcp.ResultBase
	fields map[string]any
}

// MarshalJSON returns the fields.
func (r *result) MarshalJSON() ([]byte, error) { return json.Marshal(r.fields) }

// resultOf returns a result.
func resultOf(fields map[string]any) *result { return &result{fields: fields} }

// Always is the middleware of a server that answers each call with a task, whether or not its client has declared tasks.
func Always(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if _, is := req.(*mcp.CallToolRequest); !is {
			return next(ctx, method, req)
		}
		return resultOf(map[string]any{"resultType": "task", "taskId": "1", "status": "working", "createdAt": time.Now(), "lastUpdatedAt": time.Now(), "ttlMs": nil}), nil
	}
}
