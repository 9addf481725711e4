package rpc

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBeginningOfACallIsReadAsAllOfIt(t *testing.T) {
	for body, read := range map[string]bool{
		`{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"x"}}`: true,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                              true,
		`{"jsonrpc":"2.0","id":0,"method":"tools/list","params":{}}`:            true,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`:                false,
		`{"jsonrpc":"2.0","id":1,"result":{"method":"x"}}`:                      false,
		`{"jsonrpc":"2.0","id":"1","method":"ping"}`:                            false,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                            false,
		`{"jsonrpc":"2.0","id":1,"method":"a\u0062"}`:                           false,
		`{"id":1,"jsonrpc":"2.0","method":"ping"}`:                              false,
		`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 200) + `"}`:  true,
	} {
		_, ok := Scan([]byte(body))
		require.Equal(t, read, ok, body)
		req, err := http.NewRequest(http.MethodPost, "http://test", strings.NewReader(body))
		require.NoError(t, err)
		msg, onWire := NewIDs(nil).Renumber(req, nil)
		require.Equal(t, Parse([]byte(body)), msg, body)
		sent, err := io.ReadAll(onWire.Body)
		require.NoError(t, err)
		require.EqualValues(t, len(sent), onWire.ContentLength)
		require.Equal(t, sent, BodyOf(onWire))
		require.Equal(t, len(body) < len(sent), read && msg.IsCall(), body)
	}
}
