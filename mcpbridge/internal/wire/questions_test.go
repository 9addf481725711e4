package wire

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// asked returns the parameters of a request, as the SDK decodes them.
func asked(t *testing.T, request []byte) *mcp.ElicitParams {
	t.Helper()
	var msg struct {
		ID     json.RawMessage   `json:"id"`
		Method string            `json:"method"`
		Params *mcp.ElicitParams `json:"params"`
	}
	require.NoError(t, json.Unmarshal(request, &msg))
	require.Equal(t, "7", string(msg.ID))
	require.Equal(t, "elicitation/create", msg.Method)
	return msg.Params
}

func TestAMarkedRequestHasItsExchangeAndNothingMore(t *testing.T) {
	for name, c := range map[string]struct{ request, message, meta string }{
		"plain":          {`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"<a> & 1e400"}}`, "<a> & 1e400", "null"},
		"with _meta":     {`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"m","_meta":{"k":1}}}`, "m", `{"k":1}`},
		"_meta null":     {`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"m","_meta":null}}`, "m", "null"},
		"no parameters":  {`{"jsonrpc":"2.0","id":7,"method":"elicitation/create"}`, "", "null"},
		"null":           {`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":null}`, "", "null"},
		"a stray number": {`{"id":7,"jsonrpc":"2.0","params":{"message":"m","x":12345678901234567890},"method":"elicitation/create"}`, "m", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			var q Questions
			one, other := &Exchange{Over: make(chan struct{})}, &Exchange{Over: make(chan struct{})}
			q.Mark([]byte(c.request), other)
			params := asked(t, q.Mark([]byte(c.request), one))
			require.Same(t, one, q.Origin(params, nil))
			require.Equal(t, c.message, params.Message)
			meta, err := json.Marshal(params.Meta)
			require.NoError(t, err)
			require.Equal(t, c.meta, string(meta))
			require.Nil(t, q.Origin(params, nil), "the mark is taken once")
		})
	}
}

func TestARequestWhoseOperationIsOverSaysSo(t *testing.T) {
	var q Questions
	ex := &Exchange{Over: make(chan struct{})}
	request := []byte(`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"m"}}`)
	params := asked(t, q.Mark(request, ex))
	q.Forget(ex)
	q.Forget(ex)
	require.Empty(t, q.marks)
	require.Empty(t, q.exchanges)
	over := q.Origin(params, "the owner")
	require.True(t, over.IsOver())
	require.Equal(t, "the owner", over.Owner)

	done := make(chan struct{})
	close(done)
	late := asked(t, q.Mark(request, &Exchange{Over: done}))
	require.True(t, q.Origin(late, nil).IsOver())
	require.Empty(t, q.marks, "an operation that is over is not kept")
}

func TestWhatCannotBeMarkedIsLeftAlone(t *testing.T) {
	var q Questions
	ex := &Exchange{Over: make(chan struct{})}
	var none *mcp.ElicitParams
	require.Nil(t, q.Origin(&mcp.ElicitParams{}, nil), "nothing was marked so far")
	for _, request := range []string{`[1]`, `{"params":[1]}`, `{"params":{"_meta":"x"}}`, `{`} {
		require.Equal(t, request, string(q.Mark([]byte(request), ex)))
	}
	require.Nil(t, q.Origin(none, nil))
	require.Nil(t, q.Origin(nil, nil))
	forged := &mcp.ElicitParams{Meta: mcp.Meta{"mcpactor-0000000000000000": "1"}}
	require.Nil(t, q.Origin(forged, nil), "a server does not know the key")
}
