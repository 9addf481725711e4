package rounds

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func answers(keys ...string) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for _, key := range keys {
		all[key] = json.RawMessage(`{"of":"` + key + `"}`)
	}
	return all
}

func TestQuestionsAreAskedInRounds(t *testing.T) {
	var c Call[string]
	_, replied := c.Reply(0)
	require.False(t, replied)
	first := c.Ask(Question{Method: "elicitation/create"})
	second := c.Ask(Question{Method: "roots/list"}) // the round has its reply
	reply, replied := c.Reply(0)
	require.True(t, replied)
	require.Equal(t, map[string]Question{first: {Method: "elicitation/create"}}, reply.Questions)
	_, replied = c.Reply(1)
	require.False(t, replied)

	got, err := c.Answer(0, answers(first, "unknown"))
	require.NoError(t, err)
	require.Equal(t, answers(first), got)
	reply, replied = c.Reply(1)
	require.True(t, replied, "the other question came meanwhile")
	require.Equal(t, map[string]Question{second: {Method: "roots/list"}}, reply.Questions)

	got, err = c.Answer(0, answers(first, second)) // again
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = c.Answer(1, nil) // without an answer
	require.NoError(t, err)
	require.Empty(t, got)
	reply, replied = c.Reply(2)
	require.True(t, replied)
	require.Contains(t, reply.Questions, second)

	got, err = c.Answer(2, answers(second))
	require.NoError(t, err)
	require.Equal(t, answers(second), got)
	_, replied = c.Reply(3)
	require.False(t, replied)
	c.Finish("done")
	reply, replied = c.Reply(3)
	require.True(t, replied)
	require.Equal(t, Reply[string]{Result: "done"}, reply)
	got, err = c.Answer(2, answers(second))
	require.NoError(t, err, "the same round twice has the same reply")
	require.Empty(t, got)
	_, err = c.Answer(3, nil)
	require.ErrorIs(t, err, ErrRound)
	_, err = c.Answer(-1, nil)
	require.ErrorIs(t, err, ErrRound)
}

func TestEndOfACallWhileItsClientIsAskedIsTheNextReply(t *testing.T) {
	var c Call[string]
	key := c.Ask(Question{Method: "elicitation/create"})
	c.Finish("lost")
	reply, _ := c.Reply(0)
	require.Contains(t, reply.Questions, key, "that was said")
	got, err := c.Answer(0, answers(key))
	require.NoError(t, err)
	require.Empty(t, got, "nobody waits for it")
	reply, replied := c.Reply(1)
	require.True(t, replied)
	require.Equal(t, "lost", reply.Result)
}

func TestWithdrawnQuestionIsNotAskedAgain(t *testing.T) {
	var c Call[string]
	key := c.Ask(Question{Method: "elicitation/create"})
	require.True(t, c.IsAsking())
	c.Withdraw(key)
	require.False(t, c.IsAsking())
	got, err := c.Answer(0, answers(key))
	require.NoError(t, err)
	require.Empty(t, got)
	_, replied := c.Reply(1)
	require.False(t, replied)
}
