package wire

import (
	"encoding/json"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// smallSize bounds the texts of a message that is small, in bytes.
const smallSize = 4 << 10

// IsSmall reports whether a message is known to be encoded within some microseconds, without code of callers.
func IsSmall(v any) bool {
	left := smallSize
	if op, is := v.(messages.Operation); is && op.Head().Extra != nil {
		return false
	}
	switch v := v.(type) {
	case *messages.CallTool:
		return v.Params != nil && v.Params.Meta == nil && v.Params.InputResponses == nil && fits(v.Params.Arguments, &left)
	case *messages.ToolResult:
		return v.Verbatim == nil && v.Result != nil && v.Result.Meta == nil && v.Result.InputRequests == nil && fits(v.Result.StructuredContent, &left) && areSmallTexts(v.Result.Content, &left)
	case messages.Operation:
		return hasNoParams(reflect.TypeOf(v).Elem())
	case messages.Reply, messages.Request, messages.Answer:
		return false
	}
	return true
}

// hasNoParams reports whether a message has only strings and flags beside what it embeds.
func hasNoParams(of reflect.Type) bool {
	for i := range of.NumField() {
		field := of.Field(i)
		if kind := field.Type.Kind(); !field.Anonymous && kind != reflect.String && kind != reflect.Bool {
			return false
		}
	}
	return true
}

// areSmallTexts reports whether contents are texts with few bytes together.
func areSmallTexts(list []mcp.Content, left *int) bool {
	for _, content := range list {
		text, is := content.(*mcp.TextContent)
		if !is || text == nil || text.Meta != nil || !fits(text.Text, left) {
			return false
		}
	}
	return true
}

// fits reports whether a value is one of encoding/json, and has few bytes. It takes them from what is left.
func fits(v any, left *int) bool {
	*left -= 16
	switch v := v.(type) {
	case nil, bool, float64, int, int64:
	case string:
		*left -= len(v)
	case json.RawMessage:
		*left -= len(v)
	case []any:
		for i := 0; i < len(v) && *left >= 0; i++ {
			if !fits(v[i], left) {
				return false
			}
		}
	case map[string]any:
		for name, member := range v {
			if *left -= len(name); *left < 0 || !fits(member, left) {
				return false
			}
		}
	default:
		return false
	}
	return *left >= 0
}
