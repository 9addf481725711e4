package rpc

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is taken for the result of a call, the SDK takes for it too.
func FuzzResult(f *testing.F) {
	deep := strings.Repeat("[", maxPlain) + strings.Repeat("]", maxPlain)
	for _, data := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{}}`, ` {"result":null,"id":7,"jsonrpc":"2.0"}` + "\n", `{"jsonrpc":"2.0","id":7,"result":{}}{}`,
		`{"jsonrpc":"2.0","id":7,"id":8,"result":{}}`, `{"jsonrpc":"2.0","id":1e999,"id":7,"result":{}}`, `{"jsonrpc":"2.0","ID":7,"result":{}}`, `{"jsonrpc":"2.0","id":7.0,"result":{}}`,
		`{"jsonrpc":"2.0","id":7,"result":{},"error":null}`, `{"jsonrpc":"2.0","id":7,"result":{},"method":null}`, `{"jsonrpc":"2.0","id":7}`,
		`{"jsonrpc":"2.0","id":7,"result":` + deep + `}`, `{"jsonrpc":"2.0","id":7,"result":"` + "\xff\x00" + `"}`, `{"\u006asonrpc":"2.0","id":7,"result":1}`,
		`{"jsonrpc":"2.0","id":7,"result":{},"params":[{"a":1}],"x":"\ud800"}`, `[{"jsonrpc":"2.0","id":7,"result":{}}]`, `null`, ``, `{"jsonrpc":2,"id":7,"result":01}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		n := &IDs{strays: new(atomic.Uint64)}
		n.OnWire(9)
		msg, from := n.Restore(data)
		if from != OwnAnswer {
			require.Equal(t, before, data)
			return
		}
		if !IsPlain(data, msg) {
			return
		}
		resp := ResponseOf(data)
		require.NotNil(t, resp)
		require.Equal(t, IDOf(json.RawMessage(msg.ID)), resp.ID)
		require.NoError(t, resp.Error)
	})
}

func TestMostResultsArePlain(t *testing.T) {
	for data, plain := range map[string]bool{
		`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a"}]}}`: true,
		`{"result":{"content":[]},"jsonrpc":"2.0","id":7}` + "\n":                    true,
		`{"jsonrpc":"2.0","id":70,"result":{}}`:                                      false,
		`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`:                  false,
		`{"jsonrpc":"2.0","id":7,"method":"ping"}`:                                   false,
	} {
		n := &IDs{strays: new(atomic.Uint64)}
		n.OnWire(9)
		msg, from := n.Restore([]byte(data))
		require.Equal(t, plain, from == OwnAnswer && IsPlain([]byte(data), msg), data)
	}
}
