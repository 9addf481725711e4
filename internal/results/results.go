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
	"github.com/mcpactor/mcpactor/messages"
)

// decoders has the methods whose results can be decoded here: those of the operations that have a
// result of the SDK. The results of other methods, such as ping, have a type that only the SDK can make.
var decoders = func() map[string]func([]byte) (mcp.Result, error) {
	all := map[string]func([]byte) (mcp.Result, error){}
	for op, reply := range messages.Operations() {
		field, _ := reflect.TypeOf(reply).Elem().FieldByName("Result")
		if field.Type != nil && field.Type.Implements(reflect.TypeFor[mcp.Result]()) {
			all[op.Method()] = func(raw []byte) (mcp.Result, error) { return decode(field.Type.Elem(), raw) }
		}
	}
	// These are decoded in place.
	all["prompts/get"], all["resources/read"], all["tools/call"] = decodePrompt, decodeRead, decodeCall
	return all
}()

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

// decode decodes a result of a type. If it has an UnmarshalJSON, that costs what it costs with the SDK.
func decode(of reflect.Type, raw []byte) (mcp.Result, error) {
	result := reflect.New(of).Interface().(mcp.Result)
	if err := Parse(raw, result); err != nil {
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
	if err := Parse(raw, &wire); err != nil {
		return nil, err
	}
	var usual bool
	if wire.callResult.Content, usual = contents(wire.Content); !usual {
		return decode(reflect.TypeFor[mcp.CallToolResult](), raw)
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
	if err := Parse(raw, &wire); err != nil {
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
	if err := Parse(raw, &wire); err != nil {
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
