package questions

import (
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/operations"
	"github.com/mcpactor/mcpactor/messages"
)

// The handler of an operation answers if the question certainly belongs to it, or to others with the same handler.
func TestQuestionGoesToTheHandlerOfItsOperation(t *testing.T) {
	one, other, scope, all := &actor.PID{Id: "one"}, &actor.PID{Id: "other"}, &actor.PID{Id: "scope"}, &actor.PID{Id: "all"}
	call := func(handler *actor.PID) *contract.Call {
		return &contract.Call{Op: &messages.Ping{Header: messages.Header{Handler: handler}}}
	}
	replied := call(other)
	replied.Run.Replied = true
	of := call(one)
	for name, test := range map[string]struct {
		of      messages.Operation
		running []*contract.Call
		others  []*actor.PID
		want    *actor.PID
	}{
		"of an operation":         {of.Op, []*contract.Call{of, call(other)}, []*actor.PID{scope, all}, one},
		"the only operation":      {nil, []*contract.Call{call(one), replied}, []*actor.PID{scope, all}, one},
		"the same handler":        {nil, []*contract.Call{call(one), call(one)}, []*actor.PID{scope, all}, one},
		"different handlers":      {nil, []*contract.Call{call(one), call(other)}, []*actor.PID{scope, all}, scope},
		"one without a handler":   {nil, []*contract.Call{call(one), call(nil)}, []*actor.PID{nil, all}, all},
		"no operation":            {nil, nil, []*actor.PID{scope, all}, scope},
		"nobody has a handler":    {nil, []*contract.Call{call(nil)}, []*actor.PID{nil, nil}, nil},
		"a set-up has no running": {of.Op, nil, []*actor.PID{scope, all}, one},
	} {
		t.Run(name, func(t *testing.T) {
			q := &Question{of: test.of}
			require.Equal(t, len(test.running) > 0, q.attribute(slices.Values(test.running)))
			require.Same(t, test.want, q.chooseHandler(test.others))
		})
	}
}

// A question ends with the last call that it may belong to, and names the operation if there is one only.
func TestQuestionEndsWithTheLastCallThatItMayBelongTo(t *testing.T) {
	now := time.Unix(1000, 0)
	first := &contract.Call{Op: &messages.Ping{}, Deadline: now.Add(time.Second)}
	last := &contract.Call{Op: &messages.Ping{}, Deadline: now.Add(time.Minute)}
	ask := func(running ...*contract.Call) *messages.Origin {
		q := &Question{req: &messages.ListRoots{Origin: messages.Origin{Deadline: now.Add(time.Hour)}}}
		q.attribute(slices.Values(running))
		q.describe()
		return q.req.GetOrigin()
	}
	require.Equal(t, now.Add(time.Minute), ask(first, last).Deadline)
	require.Empty(t, ask(first, last).Operation.Method)
	require.Equal(t, now.Add(time.Second), ask(first).Deadline)
	require.Equal(t, operations.RefTo(first.Op), ask(first).Operation)
	require.Equal(t, now.Add(time.Hour), ask().Deadline)
}
