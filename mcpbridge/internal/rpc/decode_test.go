package rpc

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/wellformed"
)

// Messages are decoded as the SDK decodes them.
func FuzzDecode(f *testing.F) {
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for _, data := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{}}`, ` {"result":null,"id":7,"jsonrpc":"2.0"}` + "\n", `{"jsonrpc":"2.0","id":7,"result":{}}{}`,
		`{"jsonrpc":"2.0","id":7,"id":8,"result":{}}`, `{"jsonrpc":"2.0","id":1e999,"id":7,"result":{}}`, `{"jsonrpc":"2.0","ID":7,"result":{}}`, `{"jsonrpc":"2.0","id":7.0,"result":{}}`,
		`{"jsonrpc":"2.0","id":7,"result":{},"error":null}`, `{"jsonrpc":"2.0","id":7,"result":{},"method":null}`, `{"jsonrpc":"2.0","id":7}`,
		`{"jsonrpc":"2.0","id":7,"result":` + nested(wellformed.MaxDepth) + `}`, `{"jsonrpc":"2.0","id":7,"result":` + nested(wellformed.MaxDepth-1) + `}`,
		`{"jsonrpc":"2.0","id":7,"result":[` + strings.Repeat(`"[\\"[",[],`, 600) + `1]}`, `{"jsonrpc":"2.0","id":7,"result":"` + "\xff\x00" + `"}`, `{"\u006asonrpc":"2.0","id":7,"result":1}`,
		`{"jsonrpc":"2.0","id":7,"result":{},"params":[{"a":1}],"x":"\ud800"}`, `[{"jsonrpc":"2.0","id":7,"result":{}}]`, `null`, ``, `{"jsonrpc":2,"id":7,"result":01}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`, `{"jsonrpc":"2.0","id":7,"error":5,"error":null}`, `{"jsonrpc":"2.0","id":null,"error":{}}`,
		`{"jsonrpc":"2.0","id":"7","method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications\/progress","params":{}}`, `{"jsonrpc":"2.0","id":-0,"method":""}`,
		`{"jsonrpc":"2.0","id":12345678901234567890,"result":1}`, `{"jsonrpc":"2.0","id":9007199254740993,"result":1}`, `{"jsonrpc":"2.0","id":01,"result":1}`,
		`{"jsonrpc":"2.0","id":"\u0037","result":1}`, `{"jsonrpc":"2.0","id":{},"result":1}`, `{"jsonrpc":"2.0","id":true,"method":"a","method":"b"}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, wanted := jsonrpc.DecodeMessage(data)
		before := bytes.Clone(data)
		msg, err := Decode(data)
		require.Equal(t, before, data)
		if resp, is := msg.Message.(*jsonrpc.Response); err == nil && wanted != nil && is && resp.Error != nil {
			return // the SDK refuses the form of the error
		}
		require.Equal(t, wanted == nil, err == nil, "%v, and the SDK: %v", err, wanted)
		if err != nil {
			return
		}
		require.Equal(t, want, msg.Message)
		resp, ok := msg.Message.(*jsonrpc.Response)
		if !ok {
			return
		}
		resp.ID, _ = jsonrpc.MakeID(float64(4))
		restored, err := jsonrpc.DecodeMessage(msg.Restored(data))
		require.NoError(t, err)
		require.Equal(t, resp.ID, restored.(*jsonrpc.Response).ID)
		require.Equal(t, want.(*jsonrpc.Response).Error, restored.(*jsonrpc.Response).Error)
	})
}

// The JSON library calls itself for each level, and a stack that is too large ends the process.
func TestMessageThatIsVeryDeepIsAnError(t *testing.T) {
	for _, level := range []string{"[", `{"a":`} {
		data := []byte(`{"jsonrpc":"2.0","id":7,"result":` + strings.Repeat(level, 8<<20))
		_, err := Decode(data)
		require.ErrorContains(t, err, "depth")
		require.Nil(t, UnnamedError(data))
	}
}

func TestMostMessagesAreDecodedInPlace(t *testing.T) {
	for data, inPlace := range map[string]bool{
		`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a"}]}}`: true,
		`{"result":{"content":[]},"jsonrpc":"2.0","id":7}` + "\n":                    true,
		`{"jsonrpc":"2.0","id":7,"method":"ping"}`:                                   true,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`:            true,
		`{"jsonrpc":"2.0","id":"a-1","method":"roots/list"}`:                         true,
		`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`:                  false,
		`{"jsonrpc":"2.0","id":7.5,"result":{}}`:                                     false,
	} {
		m, ok := parse([]byte(data))
		require.True(t, ok)
		require.Equal(t, inPlace, m.plain() != nil, data)
	}
}

// The words of an error are kept, whatever its form.
func TestErrorOfAnyFormIsRead(t *testing.T) {
	for form, want := range map[string]jsonrpc.Error{
		`{"code":-32000,"message":"not today"}`:              {Code: -32000, Message: "not today"},
		`{"code":"E_NOPE","message":"not today","data":[1]}`: {Message: "not today (code E_NOPE)", Data: []byte(`[1]`)},
		`{"code":-32602.0,"message":"not today"}`:            {Code: -32602, Message: "not today"},
		`{"code":-3.26e4,"message":"not today"}`:             {Code: -32600, Message: "not today"},
		`{"code":1.5,"message":"not today"}`:                 {Message: "not today (code 1.5)"},
		`{"code":"-32042","message":"not today"}`:            {Message: "not today (code -32042)"}, // it decides: it is read strictly
		`{"code":1e400,"message":"not today"}`:               {Message: "not today (code 1e400)"},
		`{"code":null,"message":"not today"}`:                {Message: "not today"},
		`{"code":{"a": 1}}`:                                  {Message: `(code {"a":1})`},
		`{"code":-1,"message":{"en": "not today"}}`:          {Code: -1, Message: `{"en":"not today"}`},
		`{"code":-1,"message":5}`:                            {Code: -1, Message: "5"},
		`{"error":"not today"}`:                              {Message: `{"error":"not today"}`},
		`{"code":-1,"detail": "not today","data":5}`:         {Code: -1, Message: `{"detail":"not today"}`, Data: []byte(`5`)},
		`{"code":-1,"message":null,"reason":"not today"}`:    {Code: -1, Message: `{"reason":"not today"}`},
		`{"code":-1,"data":"not today"}`:                     {Code: -1, Data: []byte(`"not today"`)},
		`"not today"`:                                        {Message: "not today"},
		`["not today"]`:                                      {Message: `["not today"]`},
		`true`:                                               {Message: "true"},
		`{}`:                                                 {},
	} {
		msg, err := Decode([]byte(`{"jsonrpc":"2.0","id":7,"error":` + form + `}`))
		require.NoError(t, err, form)
		require.Equal(t, &want, msg.Message.(*jsonrpc.Response).Error, form)
		var e Error
		require.NoError(t, json.Unmarshal([]byte(form), &e))
		require.Equal(t, Error{want.Code, want.Message, want.Data}, e)
	}
}

func TestErrorWithoutTheIDOfARequest(t *testing.T) {
	for data, unnamed := range map[string]bool{
		`{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}`:           true,
		`{"jsonrpc":"2.0","id":"","error":{"code":-1,"message":"no"}}`:             true,
		`{"jsonrpc":"2.0","id":"server-error","error":{"code":-1,"message":"no"}}`: true,
		`{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}`:                     true,
		`{"jsonrpc":"2.0","error":5}`:                                              true,
		`{"jsonrpc":"2.0","id":4,"error":{"code":-1,"message":"no"}}`:              false,
		`{"jsonrpc":"2.0","id":null,"result":{}}`:                                  false,
		`{"jsonrpc":"2.0","id":null,"method":"x","error":{"code":-1}}`:             false,
	} {
		require.Equal(t, unnamed, UnnamedError([]byte(data)) != nil, data)
	}
}
