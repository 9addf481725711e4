package owed

import (
	"slices"
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

// Calls about one subscription run one after the other.
func TestCallsOfOneSubscriptionAreBlocked(t *testing.T) {
	var all Calls
	subscribe := func(uri string) *contract.Call { return &contract.Call{Op: &messages.Subscribe{URI: uri}} }
	first := subscribe("a")
	all.Running.Push(first)
	require.True(t, all.IsBlocked(subscribe("a")))
	require.True(t, all.IsBlocked(&contract.Call{Op: &messages.Unsubscribe{URI: "a"}}))
	require.False(t, all.IsBlocked(subscribe("b")))
	require.False(t, all.IsBlocked(durable("1", true)))
	all.Running.Remove(first)
	require.False(t, all.IsBlocked(subscribe("a")))
	all.Running.Push(subscribe("a"))
	all.Running.Remove(first) // for the second time
	require.True(t, all.IsBlocked(subscribe("a")))
}

// A call that has its reply may still run, and is not owed.
func TestOwedCallsHaveNoReply(t *testing.T) {
	var all Calls
	parked, running, replied := durable("1", false), durable("2", false), durable("3", false)
	all.Parked.Push(parked)
	all.Running.Push(replied)
	all.Running.Push(running)
	replied.Run.Replied = true
	require.Equal(t, []*contract.Call{parked, running}, all.Owed())
	require.Equal(t, []*contract.Call{running}, slices.Collect(all.Unanswered()))
	require.True(t, all.AnyUnanswered())
	_, only := all.OnlyOperation()
	require.False(t, only)
	all.Running.Remove(replied)
	op, only := all.OnlyOperation()
	require.True(t, only)
	require.Same(t, running.Op, op)
	running.Run.Replied = true
	require.False(t, all.AnyUnanswered())
	_, only = all.OnlyOperation()
	require.False(t, only)
}

// A task is cancelled once nobody waits for it. That of a durable call outlives a drain.
func TestTasksAreCancelledWhenNobodyWaitsForThem(t *testing.T) {
	var all Cancellations
	k := durable("1", true)
	k.Key = messages.Key{Server: "s"}
	all.Add(k, false)
	require.Empty(t, all, "no task")
	k.Run.Task = &tasks.Task{ID: "t", Status: tasks.Completed}
	all.Add(k, false)
	require.Empty(t, all, "over")
	k.Run.Task.Status = tasks.Working
	all.Add(k, true)
	require.Empty(t, all, "durable")
	all.Add(k, false)
	require.Len(t, all, 1)
	require.Equal(t, "t", all[0].ID)
	require.Equal(t, k.Key, all[0].Key)
	for range maxCancellations {
		all.Add(k, false)
	}
	require.Len(t, all, maxCancellations)
}
