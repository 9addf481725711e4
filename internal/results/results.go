// Package results decodes the results of requests in place, as the SDK decodes them.
//
// The SDK decodes a result with a stream decoder, and a result with contents more than once. Each
// time it copies the result to a buffer, which has 32 KB at least. This package calls the
// same JSON library with the same flags, but without a stream. The results are those of the SDK,
// and so are the cases that are errors: FuzzDecode compares them.
package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/exact"
	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/operations"
)

// decoder decodes the results of one method.
type decoder struct {
	decode func([]byte) (mcp.Result, error)
	wire   reflect.Type // the form of a result on the wire
}

// decoders has the methods whose results can be decoded here: those of the handshake, and of the operations that have a
// result of the SDK. The results of other methods, such as ping, have a type that only the SDK can make.
var decoders = func() map[string]*decoder {
	all := map[string]*decoder{
		"initialize":      decoderOf(reflect.TypeFor[mcp.InitializeResult]()),
		"server/discover": decoderOf(reflect.TypeFor[mcp.DiscoverResult]()),
	}
	for op, reply := range operations.All() {
		field, _ := reflect.TypeOf(reply).Elem().FieldByName("Result")
		if field.Type != nil && field.Type.Implements(reflect.TypeFor[mcp.Result]()) {
			all[op.Method()] = decoderOf(field.Type.Elem())
		}
	}
	// These are decoded in place.
	all["prompts/get"] = &decoder{decodePrompt, reflect.TypeFor[promptWire]()}
	all["resources/read"] = &decoder{decodeRead, reflect.TypeFor[readWire]()}
	all["tools/call"] = &decoder{decodeCall, reflect.TypeFor[callWire]()}
	return all
}()

// decoderOf returns the decoder of a result that the SDK decodes by its fields, or by its UnmarshalJSON.
func decoderOf(of reflect.Type) *decoder {
	return &decoder{func(raw []byte) (mcp.Result, error) { return decode(of, raw) }, of}
}

// Knows reports whether results of this method can be decoded here.
func Knows(method string) bool { return decoders[method] != nil }

// The cursors of pages that have none of their own to ask for the next with.
const (
	// EmptyCursor stands for an empty text, which is a cursor.
	EmptyCursor = "\x00empty"
	// OddCursor stands for what is no text.
	OddCursor = "\x00odd"
)

// Decode returns the result of a request with this method. raw is the JSON of the result. It is not kept and not changed.
// Decode may be called by several goroutines.
//
// A result that the SDK can decode is decoded to the same value, with three exceptions: a number that a float64 does not hold is
// a [json.Number] where any value is allowed; there is no null among the things of a list; and NextCursor may be [EmptyCursor] or
// [OddCursor]. A result that the SDK cannot decode is mended: odd names what was left out or replaced.
//
// It is an error if the method is not one that [Knows] knows, if raw is no result at all, or if a member cannot be read that
// decides what becomes of the call, or that is the list that was asked for. It is that of the SDK, or a [guard.Panic] where the SDK panics.
func Decode(method string, raw []byte) (result mcp.Result, odd []string, err error) {
	of := decoders[method]
	if of == nil {
		return nil, nil, fmt.Errorf("results of %q are not decoded here", method)
	}
	result, err = guard.Call(func() (mcp.Result, error) { return of.decode(raw) })
	isOdd := err != nil || hasNull(result)
	if isOdd {
		mended, names := mend(raw, of.wire)
		again, failed := guard.Call(func() (mcp.Result, error) { return of.decode(exact.Decodable(mended)) })
		if failed != nil {
			return nil, nil, err
		}
		result, raw, odd = again, mended, names
	}
	if isOdd || !isPlain(result) && exact.IsNeeded(raw) {
		exact.Restore(result, raw) //nolint:errcheck // it was decoded before
	}
	markEmptyCursor(result, raw)
	return result, odd, nil
}

// Elements returns the things in a list that is the result of a request with this method, as JSON: each as it came, unless [Decode]
// mends it, and without those that Decode leaves out. items is the member that has them. ok is false if it cannot be read.
func Elements(method, items string, list json.RawMessage) (things []json.RawMessage, ok bool) {
	if list == nil || string(list) == "null" {
		return nil, true
	}
	m := mender{left: maxMended}
	return m.elements(items, list, fieldsOfJSON(decoders[method].wire)[items].Elem())
}

// isPlain reports whether a result has nothing but texts and data, as most have, and so no number.
func isPlain(result mcp.Result) bool {
	r, is := result.(*mcp.CallToolResult)
	if !is || r.StructuredContent != nil || r.Meta != nil || r.InputRequests != nil {
		return false
	}
	for _, one := range r.Content {
		switch c := one.(type) {
		case *mcp.TextContent:
			is = c.Meta == nil
		case *mcp.ImageContent:
			is = c.Meta == nil
		default:
			is = false
		}
		if !is {
			return false
		}
	}
	return true
}

// markEmptyCursor sets EmptyCursor in a page that names an empty text as its cursor.
func markEmptyCursor(result mcp.Result, raw []byte) {
	if !bytes.Contains(raw, []byte(`"nextCursor"`)) {
		return
	}
	next := reflect.ValueOf(result).Elem().FieldByName("NextCursor")
	var page struct {
		NextCursor *string `json:"nextCursor"`
	}
	if next.IsValid() && Parse(raw, &page) == nil && page.NextCursor != nil && *page.NextCursor == "" {
		next.SetString(EmptyCursor)
	}
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

	callWire struct {
		callResult
		Content    []*content `json:"content"`
		ResultType string     `json:"resultType"`
	}
	promptWire struct {
		promptResult
		Messages   []*message `json:"messages"`
		ResultType string     `json:"resultType"`
	}
	readWire struct {
		readResult
		ResultType string `json:"resultType"`
	}
)

func decodeCall(raw []byte) (mcp.Result, error) {
	var wire callWire
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
	var wire promptWire
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
	var wire readWire
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
