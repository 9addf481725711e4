package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/messages"
)

// outcome is what a call comes to.
type outcome struct {
	Result string // as JSON, or empty
	Failed bool
	Code   int64 // of a JSON-RPC error
}

// outcomeOf returns what a call came to.
func outcomeOf(t *testing.T, result *mcp.CallToolResult, err error) outcome {
	t.Helper()
	if err != nil {
		failed := outcome{Failed: true}
		var ours *mcpbridge.Error
		var theirs *jsonrpc.Error
		switch {
		case errors.As(err, &ours):
			failed.Code = ours.Code
		case errors.As(err, &theirs):
			failed.Code = theirs.Code
		}
		return failed
	}
	data, err := json.Marshal(result)
	require.NoError(t, err)
	return outcome{Result: string(data)}
}

// bareCall makes a call with a session of the SDK alone.
func bareCall(t *testing.T, s *script) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server := &mcp.StreamableClientTransport{Endpoint: "http://test/mcp", HTTPClient: &http.Client{Transport: s}}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, server, nil)
	require.NoError(t, err)
	defer cs.Close()
	result, err := cs.CallTool(ctx, toolCall().Params)
	return outcomeOf(t, result, err)
}

// ownCall makes the same call with a session of the bridge.
func ownCall(t *testing.T, s *script) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := s.attach(t)
	defer c.Close(context.Background())
	result, err := c.Do(ctx, toolCall())
	if err != nil {
		return outcomeOf(t, nil, err)
	}
	return outcomeOf(t, result.(*messages.ToolResult).Result, nil)
}

// Answers are read before the SDK reads them, and come to the same, but for those that the SDK takes for
// results although they are none, and for results that the SDK cannot decode.
func TestAnswerComesToWhatItComesToWithTheSDKAlone(t *testing.T) {
	const (
		initialized = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"` + protocolLegacy + `","capabilities":{}}}`
		result      = `{"content":[{"type":"text","text":"a"}]}`
		first       = `{"jsonrpc":"2.0","id":%s,"result":` + result + `}`
		second      = `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"b"}]}}`
		note        = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
		indented    = "{\n\"jsonrpc\": \"2.0\",\n\"id\": %s,\n"
	)
	answers := map[string]answering{}
	for name, members := range map[string]string{
		"result":                   `"result":` + result,
		"empty":                    `"result":{}`,
		"no result":                `"more":1`,
		"twice":                    `"result":5,"result":` + result,
		"with an error":            `"result":` + result + `,"error":{"code":-1,"message":"no"}`,
		"with no error":            `"result":` + result + `,"error":null`,
		"upper case":               `"Result":` + result,
		"content without resource": `"result":{"content":[{"type":"resource"}]}`,
		"half a character":         `"result":{"content":[{"type":"text","text":"\ud800 ` + "\xff" + `"}]}`,
		"structured":               `"result":{"_meta":{"a":1.5},"content":[],"structuredContent":{"n":1234567890.5},"isError":true}`,
		"error that is a text":     `"error":"no"`,
		"very deep":                `"result":` + strings.Repeat("[", 16<<20),
	} {
		body := `{"jsonrpc":"2.0","id":%s,` + members + `}`
		answers["JSON, "+name] = says(200, outbound.TypeJSON, body)
		answers["event, "+name] = says(200, outbound.TypeSSE, "data: "+body+"\n\n")
	}
	for _, code := range []int{0, -32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32005, -32006, -32020, -32022, -32042} {
		body := failure("%s", fmt.Sprint(code), "no")
		answers[fmt.Sprint("JSON, error ", code)] = says(200, outbound.TypeJSON, body)
		answers[fmt.Sprint("event, error ", code)] = says(200, outbound.TypeSSE, "data: "+body+"\n\n")
	}
	for name, events := range map[string]string{
		"twice":                  "data: " + first + "\n\ndata: " + second + "\n\n",
		"an error first":         "data: " + failure("%s", "-5", "no") + "\n\ndata: " + first + "\n\n",
		"an error later":         "data: " + first + "\n\ndata: " + failure("%s", "-5", "no") + "\n\n",
		"after a note":           "data: " + note + "\n\ndata: " + first + "\n\ndata: " + note + "\n\n",
		"after an indented note": "data: {\ndata: " + note[1:] + "\n\ndata: " + first + "\n\n",
		"indented":               "data: " + strings.ReplaceAll(indented+"\"result\":"+result+"}", "\n", "\ndata: ") + "\n\n",
		"indented error":         "data: " + strings.ReplaceAll(indented+"\"error\":{\"code\":-5,\"message\":\"no\"}}", "\n", "\ndata: ") + "\n\n",
		"another name":           "event: x\ndata: " + second + "\n\nevent: message\ndata: " + first + "\n\n",
		"after an id":            "id: 1\ndata:\n\nid: 2\ndata: " + first + "\n\n",
		"CR LF":                  "data: " + first + "\r\n\r\n",
		"no end":                 "data: " + first,
		"nothing":                "",
		"resumed":                "id: 1\nretry: 1\ndata:\n\n",
	} {
		answers["events, "+name] = says(200, outbound.TypeSSE, events)
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				s.answer(rpc.MethodInitialize, says(200, outbound.TypeJSON, initialized, outbound.HeaderSession+": "+testSession))
				s.answer(rpc.MethodDiscover, says(404, "", ""))
				s.answer("tools/call", answer)
				resumed := says(200, outbound.TypeSSE, "data: "+second+"\n\n")
				s.answer(http.MethodGet, func(req *http.Request) (*http.Response, error) {
					if req.Header.Get(outbound.HeaderEvent) == "" {
						return says(405, "", "")(req)
					}
					return resumed(req)
				})
				require.Equal(t, bareCall(t, s), ownCall(t, s))
			})
		})
	}
}
