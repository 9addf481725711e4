// Package results decodes the results of requests in place, as the SDK decodes them.
//
// The SDK decodes a result with a stream decoder, and a result with contents more than once. Each
// time it copies the result to a buffer, which has 32 KB at least. This package calls the
// same JSON library with the same flags, but without a stream. The results are those of the SDK,
// and so are the cases that are errors: FuzzDecode compares them.
package results

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/guard"
)

// decoders has the methods whose results can be decoded here. The results of other methods, such
// as ping, have a type that only the SDK can make.
var decoders = map[string]func([]byte) (mcp.Result, error){
	"completion/complete":      decode[mcp.CompleteResult],
	"prompts/get":              decodePrompt,
	"prompts/list":             decode[mcp.ListPromptsResult],
	"resources/list":           decode[mcp.ListResourcesResult],
	"resources/read":           decodeRead,
	"resources/templates/list": decode[mcp.ListResourceTemplatesResult],
	"tools/call":               decodeCall,
	"tools/list":               decode[mcp.ListToolsResult],
}

// Knows reports whether results of this method can be decoded here.
func Knows(method string) bool { return decoders[method] != nil }

// Decode returns the result of a request with this method, as the SDK decodes it. raw is the JSON
// of the result. It is not kept and not changed. Decode may be called by several goroutines.
//
// It is an error if the method is not one that [Knows] knows. Where the SDK has an error, Decode
// has one, and it is a [json.UnmarshalTypeError] if the SDK's is one. Where the SDK
// panics, the error is a [guard.Panic].
func Decode(method string, raw []byte) (mcp.Result, error) {
	decoder := decoders[method]
	if decoder == nil {
		return nil, fmt.Errorf("results of %q are not decoded here", method)
	}
	return guard.Call(func() (mcp.Result, error) { return decoder(raw) })
}

// decode decodes a result. If its type has an UnmarshalJSON, that costs what it costs with the SDK.
func decode[T any, P interface {
	*T
	mcp.Result
}](raw []byte) (mcp.Result, error) {
	result := P(new(T))
	if err := parse(raw, result); err != nil {
		return nil, err
	}
	return result, nil
}

// The types below have the fields of a type of the SDK, also those that are not exported, but not
// its methods. The structs that embed them are those of the UnmarshalJSON methods of the SDK.
type (
	callResult   mcp.CallToolResult
	promptResult mcp.GetPromptResult
	readResult   mcp.ReadResourceResult
)

func decodeCall(raw []byte) (mcp.Result, error) {
	var wire struct {
		callResult
		Content    []*content `json:"content"`
		ResultType string     `json:"resultType"`
	}
	if err := parse(raw, &wire); err != nil {
		return nil, err
	}
	var usual bool
	if wire.callResult.Content, usual = contents(wire.Content); !usual {
		return decode[mcp.CallToolResult](raw)
	}
	result := mcp.CallToolResult(wire.callResult)
	return finished(&result, wire.ResultType, completeCall)
}

func decodePrompt(raw []byte) (mcp.Result, error) {
	var wire struct {
		promptResult
		Messages   []*message `json:"messages"`
		ResultType string     `json:"resultType"`
	}
	if err := parse(raw, &wire); err != nil {
		return nil, err
	}
	result := mcp.GetPromptResult(wire.promptResult)
	if wire.Messages != nil {
		result.Messages = make([]*mcp.PromptMessage, len(wire.Messages))
	}
	for i, msg := range wire.Messages {
		result.Messages[i] = (*mcp.PromptMessage)(msg)
	}
	return finished(&result, wire.ResultType, completePrompt)
}

func decodeRead(raw []byte) (mcp.Result, error) {
	var wire struct {
		readResult
		ResultType string `json:"resultType"`
	}
	if err := parse(raw, &wire); err != nil {
		return nil, err
	}
	result := mcp.ReadResourceResult(wire.readResult)
	return finished(&result, wire.ResultType, completeRead)
}

// The results that have nothing but the usual resultType.
var (
	completeCall   = sync.OnceValues(func() (mcp.CallToolResult, error) { return typed[mcp.CallToolResult]("complete") })
	completePrompt = sync.OnceValues(func() (mcp.GetPromptResult, error) { return typed[mcp.GetPromptResult]("complete") })
	completeRead   = sync.OnceValues(func() (mcp.ReadResourceResult, error) { return typed[mcp.ReadResourceResult]("complete") })
)

// finished returns the result with a resultType. The field is not exported, so that only the SDK can
// set it: the exported fields are copied to a result of this type that the SDK has decoded.
func finished[T any, P interface {
	*T
	mcp.Result
}](result P, resultType string, complete func() (T, error)) (mcp.Result, error) {
	if resultType == "" {
		return result, nil
	}
	if resultType != "complete" {
		complete = func() (T, error) { return typed[T](resultType) }
	}
	with, err := complete()
	if err != nil {
		return nil, err
	}
	from, to := reflect.ValueOf(result).Elem(), reflect.ValueOf(&with).Elem()
	for i := range to.NumField() {
		if to.Field(i).CanSet() {
			to.Field(i).Set(from.Field(i))
		}
	}
	return P(&with), nil
}

// typed returns a result that has nothing but this resultType.
func typed[T any](resultType string) (result T, err error) {
	raw, err := json.Marshal(map[string]string{"resultType": resultType})
	if err != nil {
		return result, err
	}
	return result, json.Unmarshal(raw, &result)
}
