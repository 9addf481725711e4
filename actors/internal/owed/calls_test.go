package owed

import (
	"slices"
	"strconv"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/messages"
)

func durable(id string, durable bool) *contract.Call {
	op := &messages.CallTool{Params: &mcp.CallToolParams{}, Durable: durable}
	op.ID = id
	return &contract.Call{Op: op}
}

// Calls about one subscription, and durable calls with one id, run one after the other.
func TestCallsOfOneSubscriptionAndOfOneDurableIDAreBlocked(t *testing.T) {
	var all Calls
	subscribe := func(uri string) *contract.Call { return &contract.Call{Op: &messages.Subscribe{URI: uri}} }
	first := subscribe("a")
	all.Begin(first)
	all.Begin(durable("1", true))
	all.Begin(durable("2", false))
	require.True(t, all.IsBlocked(subscribe("a")))
	require.True(t, all.IsBlocked(&contract.Call{Op: &messages.Unsubscribe{URI: "a"}}))
	require.False(t, all.IsBlocked(subscribe("b")))
	require.True(t, all.IsBlocked(durable("1", true)))
	require.False(t, all.IsBlocked(durable("1", false)))
	require.False(t, all.IsBlocked(durable("2", true)))
	all.End(first)
	require.False(t, all.IsBlocked(subscribe("a")))
	all.Begin(subscribe("a"))
	all.End(first) // for the second time
	require.True(t, all.IsBlocked(subscribe("a")))
}

// A call that has its reply may still run, and is not owed.
func TestOwedCallsHaveNoReply(t *testing.T) {
	var all Calls
	parked, running, replied := durable("1", false), durable("2", false), durable("3", false)
	all.Parked.Push(parked)
	all.Begin(replied)
	all.Begin(running)
	replied.Run.Replied = true
	require.Equal(t, []*contract.Call{parked, running}, all.Owed())
	require.Equal(t, []*contract.Call{running}, slices.Collect(all.Unanswered()))
	require.True(t, all.AnyUnanswered())
	_, only := all.OnlyOperation()
	require.False(t, only)
	all.End(replied)
	op, only := all.OnlyOperation()
	require.True(t, only)
	require.Same(t, running.Op, op)
	running.Run.Replied = true
	require.False(t, all.AnyUnanswered())
	_, only = all.OnlyOperation()
	require.False(t, only)
}

// A task is cancelled once nobody waits for it: at once, or by the next connection. That of a durable call outlives a drain.
func TestTasksAreCancelledWhenNobodyWaitsForThem(t *testing.T) {
	var c Cancellations
	key := messages.Key{Server: "s"}
	k := durable("1", true)
	require.Nil(t, c.Cancel(k, true, false), "no task")
	k.Run.Task = &tasks.Task{ID: "t", Status: tasks.Working}
	require.Equal(t, "t", c.Cancel(k, true, false).ID)
	require.Nil(t, c.Cancel(k, true, true), "durable")
	require.Nil(t, c.Cancel(k, false, false))
	waited := c.Take(key)
	require.Len(t, waited, 1)
	require.Equal(t, "t", waited[0].ID)
	require.Equal(t, key, waited[0].Key)
	for i := range maxCancellations + 1 {
		k.Run.Task = &tasks.Task{ID: strconv.Itoa(i), Status: tasks.Working}
		require.Nil(t, c.Cancel(k, false, false))
	}
	require.Len(t, c.Take(key), maxCancellations)
	require.Empty(t, c.Take(key))
	k.Run.Task = &tasks.Task{ID: "t", Status: tasks.Completed}
	require.Nil(t, c.Cancel(k, true, false), "over")
}
