package rpc

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

func TestMessagesAreEncodedAsTheSDKEncodesThem(t *testing.T) {
	number, err := jsonrpc.MakeID(float64(1 << 31))
	require.NoError(t, err)
	text, err := jsonrpc.MakeID("a\"b")
	require.NoError(t, err)
	params, err := EncodeParams(map[string]any{"text": "<&>\u2028\x00é", "n": 1.5, "list": []any{nil, true}})
	require.NoError(t, err)
	for _, msg := range []jsonrpc.Message{
		&jsonrpc.Request{ID: number, Method: "tools/call", Params: params},
		&jsonrpc.Request{ID: number, Method: "ping"},
		&jsonrpc.Request{ID: number, Method: "odd\n\"<é", Params: params},
		&jsonrpc.Request{ID: text, Method: "ping", Params: params},
		&jsonrpc.Request{Method: "notifications/initialized", Params: json.RawMessage("{}")},
		&jsonrpc.Response{ID: number, Result: params},
		&jsonrpc.Response{ID: text, Error: &jsonrpc.Error{Code: -1, Message: "no"}},
	} {
		want, err := jsonrpc.EncodeMessage(msg)
		require.NoError(t, err)
		got, err := Encode(msg)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
}

func TestParametersThatAreNoJSON(t *testing.T) {
	_, err := EncodeParams(map[string]any{"f": func() {}})
	var kind *json.UnsupportedTypeError
	require.ErrorAs(t, err, &kind)
}

// panicking panics when it is encoded, in the middle of parameters.
type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("because") }

func TestParametersThatPanicSpoilNoOthers(t *testing.T) {
	for range 100 {
		require.Panics(t, func() { EncodeParams([]any{"before", panicking{}}) })
		data, err := EncodeParams([]int{1})
		require.NoError(t, err)
		require.Equal(t, "[1]", string(data))
	}
}
