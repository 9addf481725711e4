package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// The server gets the same JSON, and the caller the same result, whether the call has crossed or not.
func TestArgumentsReachTheServerUnchanged(t *testing.T) {
	var arguments, meta []byte
	server := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		arguments = r.Params.Arguments
		meta, _ = json.Marshal(r.Params.Meta)
		return &mcp.CallToolResult{StructuredContent: r.Params.Arguments, Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	sup, err := supervisor.Start(actor.NewActorSystem(), supervisor.Config{Servers: []supervisor.Server{{Name: "echo", InMemory: server}}})
	require.NoError(t, err)
	defer func() { require.NoError(t, sup.Stop(context.Background())) }()

	type typed struct {
		N     int64  `json:"n"`
		Empty string `json:"empty"`
	}
	for _, args := range []any{
		nil,
		map[string]any{"n": int64(1)<<62 + 1, "u": uint64(1<<64 - 1), "list": []any{1, 2.5, nil, "<&>"}},
		map[string]any{"n": json.Number("12345678901234567890123"), "f": json.Number("1.50000000000000000000")},
		map[string]any{"raw": json.RawMessage(`{"a":12345678901234567890123,"b":1}`)},
		map[string]any{},
		typed{N: 1<<62 + 1},
		&typed{N: -1 << 63},
		json.RawMessage(`{"z":1.0,"a":12345678901234567890123,"e":1E5}`),
	} {
		call := &messages.CallTool{Header: messages.To("echo", "a"), Params: &mcp.CallToolParams{
			Name: "echo", Arguments: args, Meta: mcp.Meta{"acme/n": "7"},
		}}
		direct, err := sup.Client().Do(t.Context(), call)
		require.NoError(t, err)
		want, wantMeta := string(arguments), string(meta)
		crossed := again(t, call).(*messages.CallTool)
		_, isMap := args.(map[string]any)
		_, stillMap := crossed.Params.Arguments.(map[string]any)
		require.Equal(t, isMap, stillMap)
		reply, err := sup.Client().Do(t.Context(), crossed)
		require.NoError(t, err)
		require.Equal(t, want, string(arguments), "%#v", args)
		require.Equal(t, wantMeta, string(meta))

		require.Equal(t, direct.(*messages.ToolResult).Result, reply.(*messages.ToolResult).Result)
		require.Equal(t, reply, again(t, reply), "a result of a server has the same Go values")
	}
}

func TestDigitsSurviveInAllValues(t *testing.T) {
	const big = int64(1)<<62 + 1
	elicited := again(t, &messages.Elicited{Result: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"id": big, "list": []any{big, 0.5, nil}, "none": nil}}}).(*messages.Elicited)
	require.Equal(t, map[string]any{"id": big, "list": []any{big, 0.5, nil}, "none": nil}, elicited.Result.Content)
	for _, data := range []any{big, json.Number("1e400"), []any{uint64(1<<64 - 1)}, nil} {
		require.Equal(t, data, again(t, &messages.ServerLog{Data: data}).(*messages.ServerLog).Data)
	}

	op := again(t, &messages.Custom{Name: "acme/x", Params: json.RawMessage(`{"id":12345678901234567890123}`)}).(*messages.Custom)
	require.JSONEq(t, `{"id":12345678901234567890123}`, string(op.Params.(json.RawMessage)))
	require.Equal(t, json.RawMessage("null"), again(t, &messages.Custom{Params: json.RawMessage("null")}).(*messages.Custom).Params)
}

func TestArgumentsMayHaveNumbersThatNoFloatIsCloseTo(t *testing.T) {
	args := map[string]any{"n": json.Number("1e400"), "list": []any{json.Number("-1e-400"), 1.5, "1e400"}}
	require.Equal(t, args, again(t, &messages.CallTool{Params: &mcp.CallToolParams{Arguments: args}}).(*messages.CallTool).Params.Arguments)
	require.Equal(t, args, again(t, &messages.Custom{Name: "acme/x", Params: args}).(*messages.Custom).Params)
}

func TestAllExactFindsNumbersOutsideOfStrings(t *testing.T) {
	for text, want := range map[string]bool{
		`1`: true, `-0`: true, `0.5`: true, `[1,2.25,-3]`: true, `9007199254740993`: false, `9007199254740992`: true,
		`1e21`: false, `1e+21`: true, `1e400`: false, `0.12345678901234567`: false, `0.12345678901234568`: true,
		`{"9007199254740993":"9007199254740993"}`: true, `{"a\"9007199254740993":1}`: true, `{"a\\":9007199254740993}`: false, `["\\\"",9007199254740993]`: false,
	} {
		require.True(t, json.Valid([]byte(text)), text)
		require.Equal(t, want, allExact([]byte(text)), text)
	}
	require.True(t, allExact([]byte(`"`+strings.Repeat(`\"`, 1000)+`"`)))
}

// FuzzDecode decodes any bytes as any type. What can be decoded can be encoded, and is then the
// same.
func FuzzDecode(f *testing.F) {
	all := names()
	for i, name := range all {
		f.Add(i, []byte(`{}`))
		f.Add(i, []byte(`{"Header":{"Key":{"server":"s","scope":"a"},"Deadline":1,"Owner":"h/a"},"params":{"name":"x","arguments":{"json":{"n":12345678901234567890123},"map":true}}}`))
		f.Add(i, []byte(fmt.Sprintf("{}\n"+`{"content":[{"type":"text","text":%q,"_meta":{"n":9007199254740993}}],"inputRequests":{"a":null}}`, name)))
	}
	f.Fuzz(func(t *testing.T, i int, body []byte) {
		name := all[((i%len(all))+len(all))%len(all)]
		first, err := Decode(name, body)
		if err != nil {
			return
		}
		// The SDK decodes some values that it does not encode, such as a reference without a type.
		typ, encoded, err := Encode(first)
		if err != nil {
			return
		}
		require.Equal(t, name, typ)
		second, err := Decode(name, encoded)
		if err != nil {
			return
		}
		require.IsType(t, first, second)
		_, again, err := Encode(second)
		require.NoError(t, err)
		if !strings.Contains(string(encoded), `"Deadline"`) { // which is less by now
			require.Equal(t, string(encoded), string(again))
		}
	})
}

func BenchmarkCodec(b *testing.B) {
	call := &messages.CallTool{Header: messages.To("search", "conversation-7"), Params: &mcp.CallToolParams{Name: "search", Arguments: map[string]any{"query": "weather in Oslo", "limit": 10}}}
	result := func(size int) *messages.ToolResult {
		return &messages.ToolResult{Receipt: messages.Receipt{Key: call.Key, ID: "7", Target: "search", Generation: 1, Attempt: 1, Supervisor: "member-1"}, Result: &mcp.CallToolResult{
			Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("0123456789", size/10)}},
		}}
	}
	for _, row := range []struct {
		name string
		v    any
	}{{"message=call", call}, {"message=result/size=100", result(100)}, {"message=result/size=10M", result(10_000_000)}} {
		typ, body, err := Encode(row.v)
		require.NoError(b, err)
		b.Run(row.name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				_, _, err := Encode(row.v)
				require.NoError(b, err)
			}
		})
		b.Run(row.name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				_, err := Decode(typ, body)
				require.NoError(b, err)
			}
		})
	}
}
