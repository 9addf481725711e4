package mcpbridge

import (
	"fmt"
	"strings"
	"testing"
)

func TestFoundProbe(t *testing.T) {
	ok := `{"jsonrpc":"2.0","id":3,"result":{"content":[]}}`
	for name, w := range map[string]exchanged{
		"ok":         {status: 200, kind: typeJSON, body: ok},
		"ok sse":     {status: 200, kind: typeSSE, body: "data: " + ok + "\n\n"},
		"deep":       {status: 200, kind: typeJSON, body: `{"jsonrpc":"2.0","id":3,"result":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`},
		"upper":      {status: 200, kind: typeJSON, body: `{"jsonrpc":"2.0","ID":3,"result":{"content":[]}}`},
		"method":     {status: 200, kind: typeJSON, body: `{"jsonrpc":"2.0","id":3,"method":"","result":{"content":[]}}`},
		"methodnull": {status: 200, kind: typeJSON, body: `{"jsonrpc":"2.0","id":3,"method":null,"result":{"content":[]}}`},
		"redirect":   {status: 302, kind: typeJSON, header: "Location: /x", body: ``},
		"redirect307": {status: 307, kind: typeJSON, header: "Location: /x", body: ``},
		"redirect308b": {status: 308, kind: typeJSON, header: "Location: http://[::1", body: ``},
		"id":         {status: 200, kind: typeJSON, header: "Mcp-Session-Id: other-one", body: ok},
		"204":        {status: 204},
		"202json":    {status: 202, kind: typeJSON, body: ok},
		"202":        {status: 202},
		"escaped":    {status: 400, kind: typeJSON, body: `{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"what \u006dade-up-session-4711"}}`},
		"closing":    {status: 200, kind: typeJSON, body: `{"jsonrpc":"2.0","id":3,"error":{"code":-32004,"message":"shutting down"}}`},
		"closingsse": {status: 200, kind: typeSSE, body: "data: " + `{"jsonrpc":"2.0","id":3,"error":{"code":-32004,"message":"shutting down"}}` + "\n\n"},
		"result5":    {status: 200, kind: typeJSON, body: `{"jsonrpc":"2.0","id":3,"result":5}`},
		"result5sse": {status: 200, kind: typeSSE, body: "data: " + `{"jsonrpc":"2.0","id":3,"result":5}` + "\n\n"},
		"resumed":    {status: 200, kind: typeSSE, body: "id: 1\nretry: 5\ndata:\n\n", again: 200, rest: "id: 2\ndata:\n\n"},
		"resumed forever":    {status: 200, kind: typeSSE, body: "id: 1\nretry: 5\ndata:\n\n", again: 200, rest: ""},
		"resumed 404":    {status: 200, kind: typeSSE, body: "id: 1\nretry: 5\ndata:\n\n", again: 404, rest: ""},
		"resumed 302":    {status: 200, kind: typeSSE, body: "id: 1\nretry: 5\ndata:\n\n", again: 302, rest: ""},
		"resumed 500":    {status: 200, kind: typeSSE, body: "id: 1\nretry: 5\ndata:\n\n", again: 500, rest: ""},
		"surrogate":  {status: 200, kind: typeJSON, body: `{"jsonrpc":"2.0","id":3,"result":{"content":[],"x":"\ud800"}}`},
		"dup":  {status: 200, kind: typeJSON, body: `{"jsonrpc":"2.0","id":4,"id":3,"result":{"content":[]}}`},
	} {
		t.Run(name, func(t *testing.T) { fmt.Println(name); w.check(t) })
	}
}
