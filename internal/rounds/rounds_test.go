package rounds

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestRoundsEndWithTheServersPatienceOrOurs(t *testing.T) {
	asks := &Asked{Questions: map[string]Question{"q": {}}}
	var r Rounds
	for range maxRounds - 1 {
		var step Step
		r, step = r.After(asks)
		require.Equal(t, Ask, step)
		r = r.Answered(map[string]json.RawMessage{})
	}
	_, step := r.After(asks)
	require.Equal(t, GiveUp, step)

	r, step = Rounds{}.After(&Asked{State: json.RawMessage(`"s"`)})
	require.Equal(t, Send, step)
	r, step = r.After(&Asked{})
	require.Equal(t, Send, step)
	_, step = r.After(&Asked{})
	require.Equal(t, GiveUp, step)
}

// A round is the operation again, with what the last one was answered, and nothing of the rounds before.
func TestNextRoundHasTheAnswersAndTheState(t *testing.T) {
	op := &messages.CallTool{Params: &mcp.CallToolParams{Name: "t"}}
	op.Extra = map[string]json.RawMessage{"mine": json.RawMessage("1"), "requestState": json.RawMessage(`"old"`)}
	var r Rounds
	require.Same(t, op, r.Request(op))
	r, isNew := r.Send()
	require.False(t, isNew)

	asked, err := Decode([]byte(`{"inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"message":"?","x":1.0}}},"requestState":"<s>"}`))
	require.NoError(t, err)
	require.IsType(t, &mcp.ListRootsParams{}, asked.Questions["a"].Params)
	require.JSONEq(t, `{"message":"?","x":1.0}`, string(asked.Questions["b"].Raw))
	r, _ = r.After(asked)
	r, isNew = r.Answered(map[string]json.RawMessage{"a": json.RawMessage(`{"roots":[]}`)}).Send()
	require.True(t, isNew)
	sent := r.Request(op).(*Next).Sent()
	require.Equal(t, map[string]json.RawMessage{
		"mine": json.RawMessage("1"), "requestState": json.RawMessage(`"<s>"`), "inputResponses": json.RawMessage(`{"a":{"roots":[]}}`),
	}, sent.Head().Extra)
	require.Len(t, op.Extra, 2, "the operation is not changed")
	_, isNew = r.Send()
	require.False(t, isNew, "it is a replay")
	_, isNew = r.Unsent().Send()
	require.True(t, isNew)

	for _, wrong := range []string{`{}`, `{"requestState":null}`, `{"inputRequests":{"a":{"method":"later/kind","params":{}}}}`, `[]`} {
		_, err := Decode([]byte(wrong))
		require.Error(t, err, wrong)
	}
}
